"""Warm starts: a fit that begins where the last one ended."""

from copy import copy
from typing import Any


def warmed(estimator: Any) -> Any:
    """The estimator as its starts see it: with `warm_start`, the last centers are its `init`."""
    centers = getattr(estimator, "cluster_centers_", None)
    if not estimator.warm_start or centers is None:
        return estimator
    found, wanted = tuple(centers.shape), (estimator.n_clusters, estimator.n_features_in_)
    if found != wanted:
        raise ValueError(
            f"warm_start: the last centers have the shape {found}, and {wanted} is wanted now "
            "(clusters, features); pass warm_start=False to begin anew"
        )
    begun = copy(estimator)
    begun.init, begun.n_init = centers, 1
    return begun
