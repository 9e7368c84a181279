"""Every statement of the paper as a measurement on fresh random problems."""
