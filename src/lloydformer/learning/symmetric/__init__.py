"""A learned layer for every n, d and k, which commutes with the symmetries of k-means."""
