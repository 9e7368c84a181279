"""Planted centers, and one point in ten anywhere: trimming finds the centers, k-means does not."""

import numpy as np
import pytest

import lloydformer as lf

PLANTED = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])


def worst(model, X) -> float:
    """How far the farthest planted center is from the nearest one that was found."""
    found = model.fit(X).cluster_centers_
    return float(np.linalg.norm(found[:, None] - PLANTED, axis=-1).min(axis=0).max())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("far", [20, 60])
def test_random_starts_find_the_planted_centers(seed, far):
    rng = np.random.default_rng(seed)
    inliers = PLANTED[np.arange(900) % 4] + rng.normal(size=(900, 2))
    X = np.concatenate([inliers, rng.uniform(-far, far, size=(100, 2))])
    starts = {"init": "random", "n_init": 10, "random_state": seed}
    assert worst(lf.TrimmedKMeans(4, keep=0.85, **starts), X) < 0.5
    assert worst(lf.KMeans(4, **starts), X) > 0.5
