"""RelocatingKMeans: better than many starts, whatever the start, and weights."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import lloydformer as lf

RNG = np.random.default_rng(4)
GRID = np.stack(np.meshgrid(range(5), range(5)), axis=-1).reshape(-1, 2)
MANY = 10 * GRID[np.arange(1000) % 25] + RNG.normal(size=(1000, 2))
DIGITS = load_digits().data


def test_it_finds_every_one_of_many_clusters_from_a_bad_start():
    """All centers begin in one of 25 clusters, where Lloyd's iterations never get out."""
    start = MANY[::25][:25]
    model = lf.RelocatingKMeans(25, init=start, random_state=0).fit(MANY)
    assert len(np.unique(model.labels_[:25])) == 25
    assert model.inertia_ < 0.1 * lf.KMeans(25, init=start).fit(MANY).inertia_


@pytest.mark.parametrize("seed", range(3))
def test_better_than_the_best_of_ten_starts(seed):
    peer = KMeans(30, n_init=10, random_state=seed).fit(DIGITS)
    assert lf.RelocatingKMeans(30, random_state=seed).fit(DIGITS).inertia_ < peer.inertia_


def test_never_worse_than_lloyd_from_the_same_start():
    """Relocations begin where Lloyd's iterations end."""
    for seed in range(5):
        start = DIGITS[np.random.default_rng(seed).choice(len(DIGITS), 10, replace=False)]
        ours = lf.RelocatingKMeans(10, init=start, random_state=seed).fit(DIGITS)
        assert ours.inertia_ <= lf.KMeans(10, init=start).fit(DIGITS).inertia_


def test_max_iter_counts_every_layer(engine):
    heard = []
    model = lf.RelocatingKMeans(
        25, init="random", n_init=1, max_iter=20, random_state=1, engine=engine,
        search_options={"n_iter_between": 2},
        callback=heard.append,
    ).fit(MANY)  # fmt: skip
    assert 10 < model.n_iter_ == len(heard) <= 20
    assert (np.diff(model.objective_history_) <= 0).all()


def test_more_patience_is_no_worse(engine):
    """The first relocations are the same draws."""
    found = [
        lf.RelocatingKMeans(40, patience=p, random_state=2, engine=engine).fit(MANY).inertia_
        for p in (0, 1, 4)
    ]
    assert found == sorted(found, reverse=True)


def test_rows_without_weight_at_the_end_are_not_there():
    """Rows keep their numbers, and so their noise."""
    weights = np.r_[np.ones(1000), np.zeros(50)]
    longer = np.concatenate([MANY, MANY[:50] + 100])
    fit = lf.RelocatingKMeans(25, init=MANY[::25][:25], random_state=0, tol=0)
    one = fit.fit(longer, sample_weight=weights).cluster_centers_
    np.testing.assert_allclose(one, fit.fit(MANY).cluster_centers_, atol=1e-9)


def test_weights_of_one_are_no_weights(engine):
    fit = lf.RelocatingKMeans(30, random_state=0, init=MANY[:30], tol=0, engine=engine)
    one = fit.fit(MANY, sample_weight=np.ones(1000)).cluster_centers_
    np.testing.assert_allclose(one, fit.fit(MANY).cluster_centers_, atol=1e-9)


def test_a_weight_is_so_many_points_where_there_is_one_best_answer():
    """Points that are there twice draw other noise; what is found is the same."""
    counts = np.random.default_rng(6).integers(1, 4, size=1000)
    fit = lf.RelocatingKMeans(25, random_state=0, tol=0)
    one = fit.fit(MANY, sample_weight=counts.astype(float)).cluster_centers_
    two = fit.fit(np.repeat(MANY, counts, axis=0)).cluster_centers_
    np.testing.assert_allclose(one[np.lexsort(one.T.round())], two[np.lexsort(two.T.round())])


def test_sparse_rows_are_taken():
    counts = sparse.random(300, 40, density=0.1, format="csr", random_state=0)
    start = counts[:6].toarray()
    one = lf.RelocatingKMeans(6, init=start, random_state=0, max_iter=40).fit(counts)
    two = lf.RelocatingKMeans(6, init=start, random_state=0, max_iter=40).fit(counts.toarray())
    np.testing.assert_allclose(one.inertia_, two.inertia_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [1, 3, 6])
def test_fewer_different_points_than_clusters(k, engine):
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], 4, axis=0)
    model = lf.RelocatingKMeans(k, init=points[:k], random_state=0, engine=engine).fit(points)
    assert model.inertia_ == pytest.approx(0 if k > 1 else points.var(axis=0).sum() * 12)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"patience": -1}, "patience"), ({"max_iter": 0}, "max_iter"),
     ({"search_options": {"n_moved": 0}}, "search_options: found 0 for 'n_moved'; pass an int"),
     ({"search_options": {"n_draws": 1.5}}, "search_options: found 1.5 for 'n_draws'"),
     ({"search_options": {"draws": 1}}, "search_options: found the key 'draws'; there are n_moved"),
     ({"search_options": 3}, "search_options")],
)  # fmt: skip
def test_wrong_parameters_are_named(wrong, word):
    with pytest.raises(ValueError, match=word):
        lf.RelocatingKMeans(3, **wrong).fit(MANY)
