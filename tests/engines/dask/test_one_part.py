"""Small dask collections, which are one part: the same results, and what is refused."""

import sys

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines import instruction_set
from lloydformer.estimators import ALGORITHMS

dask = pytest.importorskip("dask", reason="dask is not installed (extra `dask`)")
da = pytest.importorskip("dask.array", reason="dask is not installed (extra `dask`)")
pytestmark = [
    pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture
def few(rng):
    return rng.normal(size=(300, 3))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_on_one_part(name, few):
    make = ALGORITHMS[name].estimator
    alone = make(3, random_state=0).fit(few)
    found = make(3, random_state=0).fit(da.from_array(few, chunks=100))
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, found.labels_.compute())


def test_dask_without_distributed(few, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with dask.config.set(scheduler="threads"):
        found = lf.KMeans(3, random_state=0).fit(da.from_array(few, chunks=100))
    alone = lf.KMeans(3, random_state=0).fit(few)
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)


def test_another_device_is_refused(few):
    with pytest.raises(ValueError, match="device: found 'cuda' for a dask collection"):
        lf.KMeans(3, device="cuda").fit(da.from_array(few))


def test_one_delayed_block_with_delayed_weights(few):
    from dask import delayed

    alone = lf.KMeans(3, random_state=0).fit(few, sample_weight=np.arange(300))
    block, weights = delayed(few), delayed(np.arange(300))
    found = lf.KMeans(3, random_state=0).fit(block, sample_weight=weights)
    np.testing.assert_array_equal(alone.labels_, found.labels_.compute())
    np.testing.assert_array_equal(alone.predict(few), found.predict(block).compute())
    np.testing.assert_array_equal(alone.transform(few), found.transform(block).compute())


def test_futures_are_refused_but_not_delayed_ones(few, client):
    from dask import delayed

    future = client.scatter(few)
    for X in (future, [future]):
        with pytest.raises(ValueError, match="found a Future"):
            lf.KMeans(3).fit(X)
    found = lf.KMeans(3, random_state=0).fit([delayed(future)])
    alone = lf.KMeans(3, random_state=0).fit(few)
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)


def test_names_of_columns_are_strings_or_none(few):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")

    def fit(names):
        frame = pd.DataFrame(few, columns=names)
        return lf.KMeans(3, random_state=0).fit(dd.from_pandas(frame, npartitions=2))

    assert list(fit(["a", "b", "c"]).feature_names_in_) == ["a", "b", "c"]
    assert not hasattr(fit([0, 1, 2]), "feature_names_in_")
    with pytest.raises(TypeError, match="found column names of the types"):
        fit(["a", 1, 2])


def test_lazy_results_are_not_sent_to_the_workers(few):
    import pickle

    X = da.from_array(few, chunks=100)
    model = lf.TrimmedKMeans(3, random_state=0).fit(X)
    graph = model.predict(X).__dask_graph__()
    assert b"outliers_" not in pickle.dumps(dict(graph))
