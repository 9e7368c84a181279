"""A fit from beginning to end: settings, the runs, what was found, its files and its page."""
