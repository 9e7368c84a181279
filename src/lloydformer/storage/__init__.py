"""Files: atomic writes and model folders."""
