"""The transformer as parts, in the order in which the data walk through them."""
