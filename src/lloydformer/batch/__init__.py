"""Many problems at once."""
