"""Many problems at once give what they give one by one."""

import numpy as np
import pytest
import sklearn.cluster
import torch

import lloydformer as lf
from lloydformer.circuits.activations import TopK
from lloydformer.solving.batch.by_tensors import random_rows

B, N, D, K = 12, 60, 3, 4


@pytest.fixture
def problems() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    middles = rng.uniform(-3, 3, size=(B, K, D))
    points = middles[np.arange(B)[:, None], rng.integers(K, size=(B, N))] + rng.normal(
        size=(B, N, D)
    )
    return points, points[:, :K].copy()


def test_equal_to_a_loop_over_scikit_learn(problems):
    points, starts = problems
    starts[0, 0] += 100  # an empty cluster
    result = lf.fit_batch(points, K, init=starts)
    for i in range(B):
        one = sklearn.cluster.KMeans(K, init=starts[i], n_init=1).fit(points[i])
        assert np.array_equal(one.labels_, result.labels[i])
        assert one.n_iter_ == result.n_iter[i]
        assert one.inertia_ == pytest.approx(result.inertia[i], rel=1e-9)


CASES = {
    "lloyd": (lf.recipes.lloyd(), lf.KMeans(K)),
    "soft": (lf.recipes.soft(0.5), lf.SoftKMeans(K, inverse_temperature=0.5)),
    "spherical": (lf.recipes.spherical(), lf.SphericalKMeans(K)),
    "trimmed": (lf.recipes.trimmed(0.8), lf.TrimmedKMeans(K, keep=0.8)),
    "robust": (lf.recipes.robust(0.2), lf.RobustKMeans(K, inverse_temperature=0.2)),
    "softmax": (
        lf.recipes.robust(0.2, "softmax"),
        lf.RobustKMeans(K, inverse_temperature=0.2, activation="softmax"),
    ),
    "top": (
        lf.recipes.robust(0.2, TopK(6)),
        lf.RobustKMeans(K, inverse_temperature=0.2, activation=TopK(6)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_estimator_with_weights(problems, name):
    points, starts = problems
    recipe, model = CASES[name]
    weights = np.random.default_rng(1).uniform(0.2, 2, size=(B, N))
    rules = {"tol": 0.0, "max_iter": 15}
    result = lf.fit_batch(points, K, recipe=recipe, init=starts, sample_weight=weights, **rules)
    for i in range(B):
        model.set_params(init=starts[i], **rules).fit(points[i], sample_weight=weights[i])
        assert np.abs(model.cluster_centers_ - result.centers[i]).max() < 1e-9
        assert np.array_equal(model.labels_, result.labels[i])
        assert model.inertia_ == pytest.approx(result.inertia[i], rel=1e-9)


def test_masked_points_are_not_there(problems):
    points, starts = problems
    mask = np.ones((B, N), dtype=bool)
    mask[:, 40:] = False
    spoiled = points.copy()
    spoiled[:, 40:] = 1e6
    result = lf.fit_batch(spoiled, K, init=starts, mask=mask)
    alone = lf.fit_batch(points[:, :40], K, init=starts)
    assert np.abs(result.centers - alone.centers).max() < 1e-9
    assert np.array_equal(result.labels[:, :40], alone.labels)
    assert (result.labels[:, 40:] == -1).all()


@pytest.mark.parametrize("name", ["lloyd", "soft", "trimmed", "robust"])
def test_a_masked_point_is_no_seed_where_points_are_fewer_than_clusters(name):
    points = np.zeros((20, 6, 2))
    points[:, 3:] = 1.0
    points[:, 5] = 1e3
    mask = np.tile([True, True, True, True, True, False], (20, 1))
    result = lf.fit_batch(points, 3, recipe=CASES[name][0], mask=mask, random_state=0)
    assert np.abs(result.centers).max() <= 1.0


def test_medoids_are_points_and_draws_depend_on_the_problem(problems):
    points, _ = problems
    same = np.repeat(points[:1], 5, axis=0)
    result = lf.fit_batch(same, K, recipe=lf.recipes.medoids(), max_iter=7, random_state=0)
    away = np.abs(result.centers.reshape(-1, 1, D) - points[0]).sum(axis=-1)  # (5 k, n)
    assert away.min(axis=1).max() < 1e-12
    assert len(np.unique(result.centers.round(9), axis=0)) > 1


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_more_starts_are_not_worse_and_seeds_decide(problems, init):
    points, _ = problems
    once = lf.fit_batch(points, K, init=init, random_state=3)
    again = lf.fit_batch(points, K, init=init, random_state=3)
    often = lf.fit_batch(points, K, init=init, n_init=5, random_state=3)
    assert np.array_equal(once.centers, again.centers)
    assert (often.inertia <= once.inertia + 1e-9).all()


def test_threads_do_not_change_a_bit(problems):
    points = np.random.default_rng(2).normal(size=(3000, 30, 2))
    before = torch.get_num_threads()
    results = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        results.append(lf.fit_batch(points, K, random_state=0).centers)
        assert torch.get_num_threads() == n_threads
    torch.set_num_threads(before)
    assert np.array_equal(*results)


def test_tensors_stay_tensors_and_float32_stays(problems):
    points, _ = problems
    result = lf.fit_batch(torch.tensor(points, dtype=torch.float32), K, random_state=0)
    assert isinstance(result.labels, torch.Tensor)
    assert result.centers.dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"points": np.zeros((5, 2))}, "points"),
        ({"n_clusters": 100}, "n_clusters"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"init": np.zeros((1, 2, 3))}, "init"),
        ({"init": "best"}, "init"),
        ({"mask": np.ones((2, 2))}, "mask"),
        ({"sample_weight": -np.ones((B, N))}, "sample_weight"),
        ({"points": np.full((B, N, D), np.nan)}, "points"),
        ({"recipe": lf.recipes.lloyd("average")}, "encoder_cross"),
    ],
)
def test_wrong_input_is_named(problems, change, word):
    arguments = {"points": problems[0], "n_clusters": K} | change
    with pytest.raises(ValueError, match=word):
        lf.fit_batch(**arguments)


@pytest.mark.parametrize("light", [0, 4, 8])
def test_random_rows_have_weight(light):
    """Also where a weight is so small that its inverse is no float."""
    weights = torch.zeros(1, 9, dtype=torch.float64)
    weights[0, 2], weights[0, light] = 1.0, 1e-310
    uniform = torch.rand(1, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert sorted(random_rows(weights, 2, uniform)[0].tolist()) == sorted([2, light])
