"""Every registered algorithm on a GPU beside the chunked engine on the CPU."""

import numpy as np
import pytest
import torch

import lloydformer as lf
import lloydformer.engines.cuda.trimmed_robust as trimmed_robust
from lloydformer.estimators.registry import ALGORITHMS
from lloydformer.solving.iterations import PlanLoop

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]

OTHERS = {
    "learned": lambda **given: lf.LearnedKMeans(**given),
    "medium": lambda **given: lf.RelocatingKMeans(effort="medium", **given),
    "paper": lambda **given: lf.KMedoids(method="paper", **given),
    "parallel": lambda **given: lf.KMeans(init="k-means||", **given),
    "softmax": lambda **given: lf.RobustKMeans(activation="softmax", **given),
}
"""Those that the register does not have, or has with other settings."""


def made(name, **given):
    return (OTHERS.get(name) or ALGORITHMS[name].estimator)(n_clusters=6, random_state=3, **given)


def points(dtype, *, ties):
    """Multiples of 1/8, so that both devices compute the same distances; or whole numbers."""
    rng = np.random.default_rng(0)
    middles = rng.integers(-20, 20, size=(6, 5))
    X = middles[rng.integers(6, size=4001)] + 1.5 * rng.normal(size=(4001, 5))
    return (np.round(X) if ties else np.round(8 * X) / 8).astype(dtype)


@pytest.mark.parametrize("name", [*ALGORITHMS, *OTHERS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_it_agrees_with_the_cpu_and_with_itself(name, dtype, weighted, ties):
    X = points(dtype, ties=ties)
    weights = np.random.default_rng(1).integers(0, 4, len(X)) if weighted else None
    here = made(name, engine="chunked").fit(X, sample_weight=weights)
    there, again = (made(name, device="cuda").fit(X, sample_weight=weights) for _ in range(2))
    for attribute in ("cluster_centers_", "labels_", "objective_history_"):
        assert np.array_equal(getattr(there, attribute), getattr(again, attribute))
    close = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(there.inertia_, here.inertia_, rtol=close)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, atol=20 * close)
    weighing = np.ones(len(X), bool) if weights is None else weights > 0
    assert np.mean((there.labels_ == here.labels_)[weighing]) > (0.99 if ties else 0.999)
    kept = there.labels_ >= 0  # trimmed points have no label
    assert np.array_equal(there.predict(X)[kept], there.labels_[kept])


@pytest.mark.parametrize("name", [*ALGORITHMS, *OTHERS])
def test_initial_centers_in_any_layout(name):
    X = points(np.float32, ties=False)
    if "init" not in made(name).get_params() or name == "parallel":
        pytest.skip("it takes no initial centers")
    start = X[:6]
    want = made(name, device="cuda").set_params(init=start).fit(X)
    found = made(name, device="cuda").set_params(init=np.asfortranarray(start)).fit(X)
    assert np.array_equal(want.cluster_centers_, found.cluster_centers_)


@pytest.mark.parametrize("k", [440, 880])  # shared memory of the kernels is full
@pytest.mark.parametrize("make", [lf.TrimmedKMeans, lf.RobustKMeans])
def test_numbers_of_clusters_that_fill_the_shared_memory(make, k):
    X = np.random.default_rng(0).normal(size=(4001, 32)).astype(np.float32)
    here, there = (
        make(k, init=X[:k], max_iter=2, device=device).fit(X) for device in (None, "cuda")
    )
    np.testing.assert_allclose(there.inertia_, here.inertia_, rtol=1e-4)


@pytest.mark.parametrize("name", [*ALGORITHMS, *OTHERS])
def test_later_starts_leave_the_labels_of_the_best_one_alone(name):
    X = points(np.float32, ties=False)
    if "init" not in made(name).get_params() or name == "parallel":
        pytest.skip("its starts are its own")
    for seed in range(4):
        given = {"init": "random", "n_init": 5, "device": "cuda"}
        model = made(name, **given).set_params(random_state=seed).fit(X)
        kept = model.labels_ >= 0
        assert np.array_equal(model.predict(X)[kept], model.labels_[kept])


def test_many_clusters_are_split_at_once():
    X = np.random.default_rng(0).normal(size=(3000, 200)).astype(np.float32)
    given = {
        "n_clusters": 150,
        "search_options": {"n_moved": 140},
        "random_state": 0,
        "max_iter": 300,
    }
    here = lf.RelocatingKMeans(engine="chunked", **given).fit(X)
    there = lf.RelocatingKMeans(device="cuda", **given).fit(X)
    np.testing.assert_allclose(there.inertia_, here.inertia_, rtol=1e-3)


@pytest.mark.parametrize(
    ("make", "inverse_temperature"),
    [(lf.SoftKMeans, 3.0), (lf.RobustKMeans, 0.3), (lf.RobustKMeans, 0.01)],
)
def test_iterations_are_counted_as_on_the_cpu(make, inverse_temperature):
    X = np.random.default_rng(0).normal(size=(20_001, 8))
    given = {"n_clusters": 5, "init": X[:5], "inverse_temperature": inverse_temperature}
    here = make(engine="chunked", **given).fit(X)
    there = make(device="cuda", **given).fit(X)
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.objective_history_, here.objective_history_, rtol=1e-9)


@pytest.mark.parametrize("rounds", [1, 2, 8])
def test_thresholds_that_need_more_steps_are_found_on_the_gpu(rounds, monkeypatch):
    X = np.random.default_rng(0).normal(size=(20_001, 8))
    given = {"n_clusters": 5, "init": X[:5], "inverse_temperature": 0.01, "max_iter": 30}
    here = lf.RobustKMeans(engine="chunked", **given).fit(X)
    on_host = []
    by_host = PlanLoop.advance
    monkeypatch.setattr(PlanLoop, "advance", lambda *given: on_host.append(1) or by_host(*given))
    monkeypatch.setattr(trimmed_robust, "_N_STEPS", rounds)
    there = lf.RobustKMeans(device="cuda", **given).fit(X)
    assert not on_host
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.objective_history_, here.objective_history_, rtol=1e-9)
