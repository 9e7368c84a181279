"""Where points come from: rows, and blocks of them that can be read again."""
