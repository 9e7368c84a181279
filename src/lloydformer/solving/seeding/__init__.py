"""Initial centers: k-means++ (plain and robust), k-means||, random rows, by folds of a session."""

from lloydformer.solving.seeding.parallel import kmeans_parallel
from lloydformer.solving.seeding.plusplus import kmeans_plusplus, seeds_of_starts
from lloydformer.solving.seeding.random_rows import random_rows
from lloydformer.solving.seeding.robust import kmeans_robust

__all__ = [
    "kmeans_parallel",
    "kmeans_plusplus",
    "kmeans_robust",
    "random_rows",
    "seeds_of_starts",
]
