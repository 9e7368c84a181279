"""Numerical functions independent of clustering algorithms: noise, distances, sums, checks."""
