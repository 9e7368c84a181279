"""Initial centers: greedy k-means++, k-means|| and random rows, as folds like the plans'."""

from lloydformer.solving.seeding.by_weight import random_rows
from lloydformer.solving.seeding.oversampling import kmeans_parallel
from lloydformer.solving.seeding.plusplus import kmeans_plusplus

__all__ = ["kmeans_parallel", "kmeans_plusplus", "random_rows"]
