"""How long it takes beside others: the same data, the same start, the same threads."""
