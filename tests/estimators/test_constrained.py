"""ConstrainedKMeans: sizes within bounds at the smallest cost, on every engine."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.algorithms.constrained import bounds_of, solve_linear_programme
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES, instruction_set
from lloydformer.engines.native import Native
from lloydformer.plans.constrained import ConstrainedPlan

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_kernels = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels were not built here"
)


def squares(points, centers):
    return ((points[:, None] - centers) ** 2).sum(axis=2)


def blobs(rng, n=300, d=3, k=5):
    """Clusters of unequal sizes, so that bounds matter."""
    shares = rng.dirichlet(np.ones(k))
    return 4 * rng.normal(size=(k, d))[rng.choice(k, n, p=shares)] + rng.normal(size=(n, d))


def random_problem(seed: int):
    """Points, centers, weights or None, and two-sided bounds with some room."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 90)), int(rng.integers(1, 5))
    k = int(rng.integers(1, min(n, 9) + 1))
    points = rng.normal(size=(n, d)) + 4 * rng.integers(0, 3, size=(n, 1))
    if seed % 5 == 0:
        points = np.round(points)  # ties, and rows that are equal
    centers = points[rng.choice(n, k, replace=False)] + (rng.normal(size=(k, d)) if seed % 2 else 0)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=n) if seed % 4 == 1 else None
    if weights is not None and (weights > 0).sum() < k:
        weights = None
    count = n if weights is None else int((weights > 0).sum())
    lower = rng.integers(0, count // k + 1, size=k)
    upper = np.maximum(lower, rng.integers(count // k, 2 * (count // k) + 2, size=k))
    upper[rng.integers(k)] += max(0, count - upper.sum())
    if seed % 7 == 0:
        lower, upper = np.full(k, count // k), np.full(k, -(-count // k))
    return points, centers, weights, lower, upper


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(i, marks=pytest.mark.long) for i in range(30, 200))]
)
def test_an_assignment_is_the_optimum_of_the_linear_programme(seed, dtype, engine):
    points, centers, weights, lower, upper = random_problem(seed)
    points, centers = points.astype(dtype), centers.astype(dtype).astype(float)
    model = lf.ConstrainedKMeans(
        len(centers), size_min=lower, size_max=upper, init=centers, max_iter=1, engine=engine
    ).fit(points, sample_weight=weights)
    exact, k = points.astype(float), len(centers)
    heavy = np.ones(len(points)) if weights is None else weights
    there, labels = heavy > 0, model.labels_
    assert (model.sizes_ == np.bincount(labels[there], minlength=k)).all()
    assert (model.sizes_ >= lower).all()
    assert (model.sizes_ <= upper).all()
    costs = squares(exact, model.cluster_centers_.astype(float)) * heavy[:, None]
    best = (costs[there] * solve_linear_programme(costs[there], lower, upper)).sum()
    cost = costs[np.arange(len(labels)), labels].sum()
    assert cost == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert model.inertia_ == pytest.approx(cost, rel=1e-9, abs=1e-12)
    assert 0 <= model.gap_ <= 1e-9 or cost < 1e-9
    assert model.labels_[~there].tolist() == model.predict(points)[~there].tolist()


@needs_kernels
@pytest.mark.parametrize("seed", range(4))
def test_lists_of_a_part_of_the_moves_are_enough(seed):
    """Above 2^18 costs only cheap moves are listed; from any prices the result is the optimum."""
    rng = np.random.default_rng(seed)
    n, k, d = 6000, 50, (1, 2, 5, 30)[seed]
    points = blobs(rng, n, d, 12)
    centers = points[rng.choice(n, k, replace=False)]
    weights = rng.choice([0.0, 1.0, 3.0], size=n) if seed == 2 else None
    lower, upper = (100, 130) if seed != 2 else (60, 100)
    found = []
    for prices in (None, tuple(rng.normal(size=k)), tuple(100 * rng.normal(size=k))):
        weight = None if weights is None else torch.from_numpy(weights)
        data = TensorBlocks(torch.from_numpy(points), sample_weight=weight)
        with Native(2).open(data) as session:
            plan = ConstrainedPlan((lower,), (upper,), prices)
            result = plan.assign(
                session, torch.from_numpy(centers) - session.layout.origin, None, True
            )
            labels = session.labels().numpy().copy()
        heavy = np.ones(n) if weights is None else weights
        sizes = np.bincount(labels[heavy > 0], minlength=k)
        assert lower <= sizes.min() <= sizes.max() <= upper
        cost = (squares(points, centers)[np.arange(n), labels] * heavy).sum()
        assert result.cost == pytest.approx(cost, rel=1e-12)
        assert result.bound == pytest.approx(cost, rel=1e-12)
        found.append(cost)
    assert found == pytest.approx([found[0]] * 3, rel=1e-12)


@needs_kernels
def test_threads_do_not_matter(rng):
    points = blobs(rng, 9000, 4, 12).astype(np.float32)
    centers = torch.from_numpy(points[:40])
    labels = []
    for n_threads in (1, 2, 5):
        with Native(n_threads).open(TensorBlocks(torch.from_numpy(points))) as session:
            ConstrainedPlan((1 / 40,), (1 / 40,)).assign(session, centers - session.layout.origin)
            labels.append(session.labels().numpy().copy())
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_never_rises_and_ends_at_the_inertia(seed, engine):
    rng = np.random.default_rng(seed)
    points = blobs(rng)
    model = lf.ConstrainedKMeans(6, size_min=30, size_max=0.3, random_state=seed, engine=engine)
    history = model.fit(points).objective_history_
    assert (np.diff(history) <= 1e-12 * history[0]).all()
    assert history[-1] == model.inertia_
    means = [points[model.labels_ == j].mean(axis=0) for j in range(6)]
    last = lf.ConstrainedKMeans(6, size_min=30, size_max=0.3, init=np.array(means), engine=engine)
    assert last.fit(points).inertia_ <= model.inertia_ * (1 + 1e-12)


def test_balanced_clusters(rng, engine):
    for n, k in ((301, 7), (40, 40), (9, 1)):
        points = blobs(rng, n)
        model = lf.ConstrainedKMeans(
            k, size_min=1 / k, size_max=1 / k, random_state=0, engine=engine
        ).fit(points)
        assert model.sizes_.sum() == n
        assert np.ptp(model.sizes_) <= 1
        assert model.gap_ < 1e-9


def test_bounds_that_do_not_hold_change_nothing(rng, engine):
    points = blobs(rng)
    plain = lf.KMeans(4, random_state=0, engine=engine).fit(points)
    model = lf.ConstrainedKMeans(4, size_max=299, random_state=0, engine=engine).fit(points)
    np.testing.assert_array_equal(plain.labels_, model.labels_)
    np.testing.assert_allclose(plain.cluster_centers_, model.cluster_centers_, atol=1e-12)
    assert model.prices_.tolist() == [0] * 4
    assert model.gap_ == 0


def test_one_bound_for_each_cluster_belongs_to_its_start(rng):
    points = blobs(rng)
    model = lf.ConstrainedKMeans(
        3, size_min=[200, 0, 10], size_max=[0.9, 0.25, 10], init=points[:3]
    ).fit(points)
    assert model.sizes_[0] >= 200
    assert model.sizes_[1] <= 75
    assert model.sizes_[2] == 10
    assert (bounds_of([0.9, 0.25, 10], 300, 3, upper=True) == [270, 75, 10]).all()


def test_prices_are_those_of_the_bounds(rng):
    """A row is in a cluster with its smallest squared distance plus price."""
    points = blobs(rng)
    model = lf.ConstrainedKMeans(5, size_min=40, size_max=70, random_state=1).fit(points)
    paid = squares(points, model.cluster_centers_) + model.prices_
    least = paid.min(axis=1)
    np.testing.assert_allclose(paid[np.arange(300), model.labels_], least, rtol=1e-9, atol=1e-9)
    assert (model.sizes_[model.prices_ > 1e-9] == 70).all()
    assert (model.sizes_[model.prices_ < -1e-9] == 40).all()


def test_predict_takes_the_nearest_center_or_keeps_the_bounds(rng, engine):
    points, new = blobs(rng), blobs(np.random.default_rng(9), 60)
    model = lf.ConstrainedKMeans(4, size_max=0.25, random_state=0, engine=engine).fit(points)
    costs = squares(new, model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(new), costs.argmin(axis=1))
    assert model.score(new) == pytest.approx(-costs.min(axis=1).sum())
    bounded = model.predict(new, bounded=True)
    assert np.bincount(bounded, minlength=4).tolist() == [15] * 4
    best = (costs * solve_linear_programme(costs, np.zeros(4), np.full(4, 15))).sum()
    assert costs[np.arange(60), bounded].sum() == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(model.predict(points, bounded=True), model.labels_)


def test_weights_multiply_costs_and_bounds_count_rows(rng, engine):
    """A factor of all weights changes nothing but the inertia; rows of weight 0 count nowhere."""
    points, weights = blobs(rng, 120), rng.integers(0, 4, size=120).astype(float)
    settings = {"size_min": 10, "size_max": 30, "init": points[weights > 0][:4], "engine": engine}
    model = lf.ConstrainedKMeans(4, **settings).fit(points, sample_weight=weights)
    scaled = lf.ConstrainedKMeans(4, **settings).fit(points, sample_weight=1000 * weights)
    without = lf.ConstrainedKMeans(4, **settings).fit(
        points[weights > 0], sample_weight=weights[weights > 0]
    )
    np.testing.assert_array_equal(model.labels_, scaled.labels_)
    np.testing.assert_array_equal(model.labels_[weights > 0], without.labels_)
    assert scaled.inertia_ == pytest.approx(1000 * model.inertia_)
    np.testing.assert_allclose(scaled.prices_, 1000 * model.prices_, rtol=1e-9, atol=1e-6)
    assert model.sizes_.max() <= 30
    assert model.sizes_.sum() == (weights > 0).sum()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size_min": 4}, "size_min: found bounds that need 12 rows, but there are 10"),
        ({"size_max": 3}, "size_max: found bounds with room for 9 rows, but there are 10"),
        ({"size_max": [3, 4]}, "size_max: found 2 numbers for 3 clusters"),
        ({"size_min": 2, "size_max": [1, 9, 9]}, "size_min: found 2 rows for cluster 0"),
        ({"size_max": 1.5}, "size_max: found 1.5; pass a whole number of rows"),
        ({"size_max": -1}, "size_max"),
        ({"size_min": "all"}, "size_min"),
        (
            {"size_max": [4, 4, 5], "reference_centers": np.zeros((3, 2))},
            "reference_centers: found together with",
        ),
    ],
)
def test_bad_bounds_are_refused(settings, words, rng):
    with pytest.raises(ValueError, match=words):
        lf.ConstrainedKMeans(3, **settings).fit(rng.normal(size=(10, 2)))


def test_a_batch_that_no_assignment_fits_is_refused(rng):
    model = lf.ConstrainedKMeans(3, size_max=4).fit(rng.normal(size=(10, 2)))
    with pytest.raises(ValueError, match="room for 12 rows, but there are 20"):
        model.predict(rng.normal(size=(20, 2)), bounded=True)


def test_it_is_saved_and_read(rng, tmp_path):
    points = blobs(rng)
    model = lf.ConstrainedKMeans(4, size_min=0.1, size_max=[75, 0.3, 90, 80], random_state=0)
    model.fit(points).save_pretrained(tmp_path / "model")
    again = lf.ConstrainedKMeans.from_pretrained(tmp_path / "model")
    assert again.gap_ == model.gap_
    np.testing.assert_array_equal(again.sizes_, model.sizes_)
    np.testing.assert_array_equal(again.prices_, model.prices_)
    np.testing.assert_array_equal(
        again.predict(points, bounded=True), model.predict(points, bounded=True)
    )


def test_tensors_give_tensors(rng):
    points = torch.from_numpy(blobs(rng))
    model = lf.ConstrainedKMeans(4, size_max=80, random_state=0).fit(points)
    assert isinstance(model.sizes_, torch.Tensor)
    assert isinstance(model.prices_, torch.Tensor)
    assert int(model.sizes_.max()) <= 80


def test_too_many_costs_for_the_memory_are_refused(rng, monkeypatch):
    from lloydformer.plans import constrained

    monkeypatch.setattr(constrained, "_MOST_COSTS", 100)
    with pytest.raises(ValueError, match=r'engine: 60 rows and 2 clusters .* engine="native"'):
        lf.ConstrainedKMeans(2, size_max=40, engine="chunked").fit(blobs(rng, 60))


@pytest.mark.long
@needs_kernels
def test_a_thousand_random_problems_without_a_violation():
    for seed in range(1000):
        points, centers, weights, lower, upper = random_problem(seed)
        model = lf.ConstrainedKMeans(
            len(centers), size_min=lower, size_max=upper, init=centers, max_iter=5
        ).fit(points, sample_weight=weights)
        assert (lower <= model.sizes_).all()
        assert (model.sizes_ <= upper).all()
        assert model.gap_ < 1e-9 or model.inertia_ < 1e-9


def test_engines_find_the_same_labels(rng):
    points = blobs(rng, 400)
    models = [
        lf.ConstrainedKMeans(5, size_min=70, size_max=90, random_state=0, engine=name).fit(points)
        for name in ENGINES
        if name != "cuda" and (name != "native" or instruction_set() is not None)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(models[0].labels_, model.labels_)
