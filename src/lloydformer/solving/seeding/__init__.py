"""Initial centers: greedy k-means++, k-means|| and random rows, by the folds of a session."""

from lloydformer.solving.seeding.parallel import kmeans_parallel
from lloydformer.solving.seeding.plusplus import kmeans_plusplus, seeds_of_starts
from lloydformer.solving.seeding.random_rows import random_rows

__all__ = ["kmeans_parallel", "kmeans_plusplus", "random_rows", "seeds_of_starts"]
