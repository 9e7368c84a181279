"""The k-means objective, by hand and against scikit-learn."""

import numpy as np
import torch
from sklearn.cluster import KMeans

from lloydformer.numerics.objectives import kmeans_objective, log_kmeans_objective


def test_by_hand():
    points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [10.0, 1.0]])
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0]])
    assert kmeans_objective(points, centers).item() == 0 + 25 + 1


def test_problems_of_a_batch_are_independent(rng):
    points, centers = (
        torch.tensor(rng.normal(size=(3, 20, 4))),
        torch.tensor(rng.normal(size=(3, 5, 4))),
    )
    alone = torch.stack([kmeans_objective(x, c) for x, c in zip(points, centers, strict=True)])
    assert torch.equal(kmeans_objective(points, centers), alone)


def test_equals_the_inertia_of_scikit_learn(rng):
    points = rng.normal(size=(60, 3))
    fitted = KMeans(4, n_init=1, random_state=0).fit(points)
    ours = kmeans_objective(torch.tensor(points), torch.tensor(fitted.cluster_centers_))
    assert np.isclose(ours.item(), fitted.inertia_, rtol=1e-12)


def test_the_logarithm_is_natural():
    points, centers = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0]])
    assert log_kmeans_objective(points, centers).item() == torch.tensor(4.0).log().item()
