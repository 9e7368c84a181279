"""Families of mixture distributions; their quantile functions are in `mixtures`."""

FAMILIES = ("normal", "cauchy", "gumbel", "laplace", "lognormal")
"""Names of the families of distributions."""
