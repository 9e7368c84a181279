"""LearnedKMeans with the symmetric layer: any n, d and k, never worse than Lloyd's algorithm."""

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.engines import instruction_set

FEWER = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def blobs(n=400, d=5, k=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(k, d))[rng.integers(k, size=n)] + 0.1 * rng.normal(size=(n, d))
    return X, X[rng.permutation(n)[:k]]


def heavy(n=300, d=2, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, d)))
    return X, X[rng.permutation(n)[:k]]


def nearest(X, centers):
    squares = ((X[:, None] - centers) ** 2).sum(axis=-1)
    return squares.argmin(axis=1), squares.min(axis=1).sum()


@pytest.mark.parametrize(
    ("n", "d", "k"), [(2, 1, 1), (9, 2, 9), (30, 50, 15), (500, 3, 2), (64, 784, 5), (3000, 1, 40)]
)
def test_attributes_are_consistent_for_any_shape(n, d, k):
    X = np.random.default_rng(n).normal(size=(n, d))
    model = lf.LearnedKMeans(k, random_state=0).fit(X)
    labels, inertia = nearest(X, model.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.inertia_ == pytest.approx(inertia, abs=1e-9)
    assert model.cluster_centers_.shape == (k, d)
    assert len(model.objective_history_) == model.n_iter_ + 1 <= 311
    assert model.objective_history_[-1] == pytest.approx(inertia, abs=1e-9)


@pytest.mark.parametrize("make", [blobs, heavy])
@pytest.mark.parametrize(
    "shape", [{}, {"n": 60, "k": 30, "d": 40}, {"n": 300, "k": 2, "d": 2}], ids=str
)
@FEWER
def test_it_is_never_worse_than_lloyds_algorithm_from_the_same_start(make, shape):
    lost = 0
    for seed in range(5):
        X, start = make(seed=seed, **shape)
        k = len(start)
        lloyd = lf.KMeans(k, init=start, n_init=1, max_iter=20).fit(X).inertia_
        given = {"init": start, "n_init": 1, "max_iter": 10}
        beside = lf.LearnedKMeans(k, **given).fit(X).inertia_
        alone = lf.LearnedKMeans(k, compare_to_lloyd=False, **given).fit(X).inertia_
        assert beside == pytest.approx(min(alone, lloyd), rel=1e-9)
        assert beside <= lloyd * (1 + 1e-12)
        lost += alone > lloyd
    assert lost < 5  # the layer alone wins at least once


@pytest.mark.parametrize(("n", "d", "k"), [(2000, 3, 5), (2000, 8, 10), (5000, 5, 10)])
def test_by_default_it_is_never_worse_than_a_whole_fit_of_kmeans(n, d, k):
    """Lloyd's algorithm goes far where there are no clusters: ten iterations were not enough."""
    stopped_early = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        given = {"init": X[rng.choice(n, k, replace=False)], "n_init": 1}
        most = lf.KMeans(k, **given).fit(X).inertia_ * (1 + 1e-12)
        assert lf.LearnedKMeans(k, **given).fit(X).inertia_ <= most
        stopped_early += lf.LearnedKMeans(k, max_iter=10, **given).fit(X).inertia_ > most
    assert stopped_early > 0  # so these problems tell


def test_it_finds_what_lloyds_algorithm_misses():
    """Ten separated groups, random starts: Lloyd's algorithm leaves two centers in one group."""
    ours, theirs = [], []
    for seed in range(6):
        X, start = blobs(500, 32, 10, seed)
        ours.append(lf.LearnedKMeans(10, init=start, n_init=1).fit(X).inertia_)
        theirs.append(lf.KMeans(10, init=start, n_init=1).fit(X).inertia_)
    assert np.mean(ours) < 0.8 * np.mean(theirs)


def test_polish_is_lloyds_algorithm_from_where_the_steps_end():
    X, start = heavy(500, 3, 5)
    given = {"n_clusters": 5, "init": start, "n_init": 1, "compare_to_lloyd": False}
    rough = lf.LearnedKMeans(max_iter=0, **given).fit(X)
    fine = lf.LearnedKMeans(max_iter=10, **given).fit(X)
    lloyd = lf.KMeans(5, init=rough.cluster_centers_, n_init=1, max_iter=10).fit(X)
    assert rough.n_iter_ == 10
    np.testing.assert_allclose(fine.cluster_centers_, lloyd.cluster_centers_)
    np.testing.assert_allclose(fine.objective_history_[:10], rough.objective_history_[:10])
    np.testing.assert_allclose(fine.objective_history_[10:], lloyd.objective_history_)


def test_without_steps_it_is_lloyds_algorithm():
    X, start = blobs()
    ours = lf.LearnedKMeans(6, init=start, n_init=1, n_steps=0, max_iter=20).fit(X)
    theirs = lf.KMeans(6, init=start, n_init=1, max_iter=20).fit(X)
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    nothing = lf.LearnedKMeans(
        6, init=start, n_init=1, n_steps=0, max_iter=0, compare_to_lloyd=False
    )
    np.testing.assert_allclose(nothing.fit(X).cluster_centers_, start)


@pytest.mark.parametrize("engine", ["chunked", "auto"])
def test_weight_two_is_a_point_twice(engine):
    X, start = blobs()
    counts = np.random.default_rng(1).integers(0, 4, size=len(X))
    given = {"n_clusters": 6, "init": start, "n_init": 1, "engine": engine}
    one = lf.LearnedKMeans(**given).fit(X, sample_weight=counts)
    two = lf.LearnedKMeans(**given).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, rtol=1e-9)
    assert one.inertia_ == pytest.approx(two.inertia_)


def test_centers_follow_rotation_shift_and_scale():
    X, start = blobs(300, 4, 6)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]

    def moved(rows):
        return 1000 * (rows @ turn) + 7

    one = lf.LearnedKMeans(6, init=start, n_init=1).fit(X)
    two = lf.LearnedKMeans(6, init=moved(start), n_init=1).fit(moved(X))
    np.testing.assert_allclose(two.cluster_centers_, moved(one.cluster_centers_), rtol=1e-6)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_constant_columns_change_nothing():
    X, start = blobs()
    one = lf.LearnedKMeans(6, init=start, n_init=1).fit(X)
    wide = [np.hstack([rows, np.full((len(rows), 2), 3.0)]) for rows in (X, start)]
    two = lf.LearnedKMeans(6, init=wide[1], n_init=1).fit(wide[0])
    np.testing.assert_allclose(two.cluster_centers_[:, :5], one.cluster_centers_, rtol=1e-9)
    np.testing.assert_allclose(two.cluster_centers_[:, 5:], 3.0)


@FEWER
@pytest.mark.parametrize("engine", ["chunked", "auto"])
def test_duplicate_points(engine):
    X = np.repeat([[0.0, 1.0], [2.0, 5.0], [9.0, 9.0]], 20, axis=0)
    for k in (1, 3, 5):
        model = lf.LearnedKMeans(k, random_state=0, engine=engine).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        assert model.inertia_ == pytest.approx(0, abs=1e-9) or k == 1
    same = lf.LearnedKMeans(3, random_state=0, engine=engine).fit(np.full((7, 2), 4.0))
    np.testing.assert_allclose(same.cluster_centers_, 4.0)


def test_one_cluster_is_the_mean():
    X, _ = heavy()
    model = lf.LearnedKMeans(1, random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_[0], X.mean(axis=0))


def test_as_many_clusters_as_points_are_the_points():
    X, _ = blobs(20)
    assert lf.LearnedKMeans(20, random_state=0).fit(X).inertia_ == pytest.approx(0, abs=1e-12)


@pytest.mark.skipif(instruction_set() is None, reason="there are no native kernels here")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_engines_agree(dtype):
    X, start = blobs(3000, 20, 12)
    both = [
        lf.LearnedKMeans(12, init=start, n_init=1, engine=engine).fit(X.astype(dtype))
        for engine in ("chunked", "native")
    ]
    assert both[0].inertia_ == pytest.approx(both[1].inertia_, rel=1e-5)
    assert both[1].cluster_centers_.dtype == dtype


def test_files_sparse_matrices_and_tensors_give_the_same_centers(tmp_path):
    X, start = blobs(5000, 4, 6)
    given = {"n_clusters": 6, "init": start, "n_init": 1}
    wanted = lf.LearnedKMeans(**given).fit(X).cluster_centers_
    np.save(tmp_path / "points.npy", X)
    for other in (
        lf.data.open_dataset(tmp_path / "points.npy"),
        sparse.csr_array(X),
        torch.from_numpy(X),
    ):
        found = lf.LearnedKMeans(**given).fit(other).cluster_centers_
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_several_starts_keep_the_best_and_the_seed_decides():
    X, _ = heavy(300, 4, 8)
    one, many, again = (
        lf.LearnedKMeans(8, init="random", n_init=n, random_state=1).fit(X) for n in (1, 6, 6)
    )
    assert many.inertia_ <= one.inertia_
    np.testing.assert_array_equal(many.cluster_centers_, again.cluster_centers_)
    assert nearest(X, many.cluster_centers_)[1] == pytest.approx(many.inertia_)


def test_the_callback_gets_steps_and_then_polish():
    X, start = heavy(300, 4, 8)
    heard = []
    model = lf.LearnedKMeans(8, init=start, n_init=1, compare_to_lloyd=False, callback=heard.append)
    model.fit(X)
    assert [p.iteration for p in heard] == list(range(model.n_iter_))
    assert [p.objective for p in heard] == pytest.approx(model.objective_history_[:-1])


def test_warm_start_continues():
    X, _ = blobs()
    model = lf.LearnedKMeans(6, init="random", n_init=1, random_state=0, warm_start=True).fit(X)
    before = model.inertia_
    assert model.fit(X).inertia_ <= before * (1 + 1e-12)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_steps": -1}, "n_steps"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"compare_to_lloyd": "yes"}, "compare_to_lloyd"),
        ({"pretrained": "luck"}, "pretrained: found 'luck'; there are .*symmetric"),
        ({"n_clusters": 500}, "n_samples=400 should be >= n_clusters=500"),
        ({"init": np.zeros((6, 4))}, "init: the shape of the initial centers"),
        ({"engine": "abacus"}, "engine"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        lf.LearnedKMeans(**{"n_clusters": 6, **given}).fit(blobs()[0])


def test_bad_data_are_refused():
    X, _ = blobs()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        lf.LearnedKMeans(6).fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        lf.LearnedKMeans(6).fit(blobs()[0], sample_weight=np.ones(3))


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("tiny", [1e-30, 1e-40, 1e-44, 1e-68, 1e-300])
def test_weights_that_hide_all_distances_are_refused(to, tiny):
    """All weight is on equal rows: distances in units of their mean were infinite or NaN."""
    X = np.zeros((10, 1), dtype=np.float32)
    X[0] = -1
    with pytest.raises(ValueError, match="sample_weight: found weights with which"):
        lf.LearnedKMeans(2, random_state=0).fit(to(X), sample_weight=[tiny] + [1.0] * 9)


def test_small_weights_are_weights():
    """Weights enter in units of the largest: their size means nothing."""
    X, start = blobs()
    weights = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    fits = [
        lf.LearnedKMeans(6, init=start).fit(X, sample_weight=weights * 2.0**power)
        for power in (0, -900, 900)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, fits[0].cluster_centers_)
