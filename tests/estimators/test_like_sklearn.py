"""Every parameter, attribute and warning of sklearn.cluster.KMeans means the same here."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import cluster, set_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf

X = np.random.default_rng(0).normal(size=(60, 3))


def test_it_has_every_parameter_with_the_same_default():
    ours, theirs = (inspect.signature(kind).parameters for kind in (lf.KMeans, cluster.KMeans))
    assert {n: p.default for n, p in theirs.items()} == {n: ours[n].default for n in theirs}
    assert list(ours)[: len(theirs)] == list(theirs)


def test_it_has_every_attribute_and_method():
    ours, theirs = (kind(3, random_state=0).fit(X) for kind in (lf.KMeans, cluster.KMeans))
    public = {n for n in vars(theirs) if n.endswith("_")} | {"_n_init"}
    assert public <= set(vars(ours))
    assert {m for m in dir(theirs) if not m.startswith("_")} <= set(dir(ours))
    for name in ("cluster_centers_", "labels_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
        assert getattr(ours, name).shape == getattr(theirs, name).shape


def test_elkan_is_accepted_and_gives_the_same():
    lloyd, elkan = (
        lf.KMeans(3, algorithm=a, random_state=0, copy_x=False).fit(X) for a in ("lloyd", "elkan")
    )
    np.testing.assert_array_equal(lloyd.cluster_centers_, elkan.cluster_centers_)


def test_elkan_with_one_cluster_warns():
    for kind in (lf.KMeans, cluster.KMeans):
        with pytest.warns(RuntimeWarning, match="'elkan' doesn't make sense for a single cluster"):
            kind(1, algorithm="elkan").fit(X)


@pytest.mark.parametrize(
    "init", ["k-means++", "random", X[:3], lambda X, k, random_state: X[:k]], ids=type
)
def test_n_init_auto_is_scikit_learns(init):
    ours, theirs = (k(3, init=init, random_state=0).fit(X) for k in (lf.KMeans, cluster.KMeans))
    assert ours._n_init == theirs._n_init
    many = callable(init) or (isinstance(init, str) and init == "random")
    assert ours._n_init == (10 if many else 1)


def test_several_starts_from_given_centers_warn_and_are_one():
    for kind in (lf.KMeans, cluster.KMeans):
        with pytest.warns(RuntimeWarning, match="performing only one init in KMeans instead of"):
            assert kind(3, init=X[:3], n_init=5).fit(X)._n_init == 1


def test_more_starts_are_never_worse():
    best = [lf.KMeans(8, n_init=n, init="random", random_state=1).fit(X) for n in (1, 20)]
    assert best[1].inertia_ < best[0].inertia_


@pytest.mark.parametrize("given", [X[:3].tolist(), sparse.csr_matrix(X[:3]), X[:3]], ids=type)
def test_init_may_be_a_list_sparse_or_an_array(given):
    model = lf.KMeans(3, init=given).fit(X)
    expected = cluster.KMeans(3, init=X[:3]).fit(X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_a_callable_is_asked_as_scikit_learn_asks_it():
    def init(data, k, random_state):
        assert data is X
        assert isinstance(random_state, np.random.RandomState)
        return data[:k]

    model = lf.KMeans(3, init=init, n_init=1).fit(X)
    np.testing.assert_array_equal(model.labels_, lf.KMeans(3, init=X[:3]).fit(X).labels_)


def test_initial_centers_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"init.*\(2, 3\).*clusters 3"):
        lf.KMeans(3, init=X[:2]).fit(X)


@pytest.mark.parametrize("kind", [lf.KMeans, lf.CircuitClusterer, lf.KMedoids])
def test_more_clusters_than_points(kind):
    with pytest.raises(ValueError, match=r"n_samples=60 should be >= n_clusters=61\."):
        kind(61).fit(X)


@pytest.mark.parametrize(
    "wrong",
    [{"n_clusters": 0}, {"max_iter": 0}, {"tol": -1.0}, {"init": "best"}, {"algorithm": "full"}],
    ids=str,
)
def test_wrong_parameters_are_named_when_fitting(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"The '{name}' parameter of KMeans must be"):
        lf.KMeans(**wrong).fit(X)


def test_feature_names_out_and_clone_and_pickle():
    model = lf.KMeans(2, random_state=3).fit(X)
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
    assert not hasattr(clone(model), "labels_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_frames_go_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = lf.KMeans(2, random_state=0).set_output(transform="pandas").fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.transform(frame).columns.tolist() == ["kmeans0", "kmeans1"]


def test_weights_are_routed_through_a_pipeline():
    set_config(enable_metadata_routing=True)
    try:
        model = lf.KMeans(2, init=X[:2]).set_fit_request(sample_weight=True)
        weights = np.arange(60.0)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        routed = pipeline.fit(X, sample_weight=weights)[-1]
    finally:
        set_config(enable_metadata_routing=False)
    direct = lf.KMeans(2, init=X[:2]).fit(StandardScaler().fit_transform(X), sample_weight=weights)
    np.testing.assert_array_equal(routed.cluster_centers_, direct.cluster_centers_)


def test_a_grid_search_prefers_more_clusters():
    search = GridSearchCV(lf.KMeans(random_state=0), {"n_clusters": [1, 4]}, cv=3).fit(X)
    assert search.best_params_ == {"n_clusters": 4}


def test_transform_and_score_are_scikit_learns():
    ours, theirs = (k(4, init=X[:4], n_init=1).fit(X) for k in (lf.KMeans, cluster.KMeans))
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    weights = np.linspace(0.5, 2, 60)
    assert ours.score(X, sample_weight=weights) == pytest.approx(
        theirs.score(X, sample_weight=weights)
    )


def test_verbose_speaks_and_silence_is_silent(capsys):
    with warnings.catch_warnings():
        lf.KMeans(2, random_state=0).fit(X)
    assert capsys.readouterr().out == ""
    n_iter = lf.KMeans(2, random_state=0, verbose=1).fit(X).n_iter_
    assert capsys.readouterr().out.count("Iteration") == n_iter
