"""One learned transformer for every n, d and k: its weights commute with k-means' symmetries."""
