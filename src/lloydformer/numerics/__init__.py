"""Numbers without an opinion about clustering: noise, origins, distances, sums, checks."""
