"""Every statement of the paper, measured on random problems."""
