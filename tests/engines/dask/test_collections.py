"""Dask collections: the labels and centers of the native engine in one process, to the last bit."""

import pickle
import subprocess
import sys
from copy import copy

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.engines import instruction_set
from lloydformer.estimators import ALGORITHMS, medoids

da = pytest.importorskip("dask.array", reason="dask is not installed (extra `dask`)")
pytestmark = [
    pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
CHUNKS = ((7000, 1, 2999, 0, 12_000, 8000), 5)
SETTINGS = {"n_clusters": 30, "random_state": 3, "max_iter": 4, "init": "k-means||"}


def assert_same_bits(alone, found):
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.objective_history_, found.objective_history_)
    np.testing.assert_array_equal(alone.labels_, found.labels_.compute())
    assert alone.inertia_ == found.inertia_


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_on_two_worker_processes(name, rows, rng, client):
    weights = rng.integers(0, 4, size=len(rows)) * rng.random(len(rows))
    make = ALGORITHMS[name].estimator
    alone = make(**SETTINGS).fit(rows, sample_weight=weights)
    X, W = da.from_array(rows, chunks=CHUNKS), da.from_array(weights, chunks=11_000)
    found = make(**SETTINGS).fit(X, sample_weight=W)
    assert_same_bits(alone, found)
    assert found.labels_.chunks[0] == CHUNKS[0]


def test_a_search_for_medoids_in_one_part_of_a_worker(rows, client):
    settings = {"n_clusters": 5, "random_state": 0, "init": rows[:5]}
    found = lf.KMedoids(**settings).fit(da.from_array(rows[:500], chunks=100))
    assert_same_bits(lf.KMedoids(**settings).fit(rows[:500]), found)


def test_a_search_for_medoids_brings_few_rows_to_the_client(rows, client, monkeypatch):
    monkeypatch.setattr(medoids, "_MOST_HERE", 100)
    with pytest.raises(ValueError, match="method: found 'relocate' for 30,000 rows in parts"):
        lf.KMedoids(3).fit(da.from_array(rows, chunks=CHUNKS))


@pytest.mark.long
def test_learned_steps_and_mini_batches(rows, client):
    X = da.from_array(rows, chunks=9000)
    for make in (
        lambda: lf.LearnedKMeans(30, random_state=3, n_steps=3, max_iter=2, init="k-means||"),
        lambda: lf.KMeans(30, random_state=3, batch_size=500, max_iter=1),
    ):
        assert_same_bits(make().fit(rows), make().fit(X))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("kmeans", "trimmed") else pytest.mark.long)
        for name in ALGORITHMS
    ],
)
def test_every_algorithm_with_the_threaded_scheduler(name, rows):
    import dask

    make = ALGORITHMS[name].estimator
    with dask.config.set(scheduler="threads"):
        found = make(**SETTINGS).fit(da.from_array(rows, chunks=CHUNKS))
        assert_same_bits(make(**SETTINGS).fit(rows), found)


def test_kmeans_plus_plus_and_a_small_problem(rows, client):
    X = da.from_array(rows[:5000], chunks=700)
    for settings in ({"n_clusters": 5}, {"n_clusters": 5, "n_init": 3, "init": "random"}):
        settings |= {"random_state": 0}
        assert_same_bits(lf.KMeans(**settings).fit(rows[:5000]), lf.KMeans(**settings).fit(X))


@pytest.mark.long
@pytest.mark.parametrize("processes", [True, False])
@pytest.mark.parametrize("n_workers", [1, 5])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_and_five_workers(name, n_workers, processes, rows):
    from distributed import Client, LocalCluster

    make = ALGORITHMS[name].estimator
    alone = make(**SETTINGS).fit(rows)
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        assert_same_bits(alone, make(**SETTINGS).fit(da.from_array(rows, chunks=CHUNKS)))
        assert_same_bits(alone, make(**SETTINGS).fit(da.from_array(rows, chunks=(4001, 2))))


def test_data_frames_and_delayed_blocks(rows, client, tmp_path):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    import dask

    frame = pd.DataFrame(rows[:9000], columns=list("abcde"))
    alone = lf.KMeans(4, random_state=0).fit(frame)
    frames = dd.from_pandas(frame, npartitions=3)
    found = lf.KMeans(4, random_state=0).fit(frames)
    assert_same_bits(alone, found)
    assert list(found.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(found.predict(frames).compute(), alone.predict(frame))
    blocks = [dask.delayed(rows[i : i + 4000]) for i in (0, 4000, 8000)]
    blocks[-1] = dask.delayed(rows[8000:9000])
    weights = [dask.delayed(np.ones(len(b))) for b in (rows[:4000], rows[:4000], rows[:1000])]
    again = lf.KMeans(4, random_state=0).fit(blocks, sample_weight=weights)
    alone = lf.KMeans(4, random_state=0).fit(rows[:9000], sample_weight=np.ones(9000))
    assert_same_bits(alone, again)


def test_predict_and_transform_are_lazy_and_keep_the_chunks(rows, client):
    X = da.from_array(rows, chunks=CHUNKS)
    model = lf.SoftKMeans(4, random_state=0, max_iter=3).fit(rows)
    for method in ("predict", "transform", "predict_proba", "distances_to_centers"):
        found = getattr(model, method)(X)
        assert isinstance(found, da.Array)
        assert found.chunks[0] == CHUNKS[0]
        expected = getattr(model, method)(rows)
        assert found.dtype == expected.dtype
        slack = 0 if method in ("predict", "transform") else 1e-5  # torch adds up by blocks
        np.testing.assert_allclose(found.compute(), expected, rtol=0, atol=slack)
    assert model.score(X) == model.score(rows)


def by_chebyshev(a, b):
    return float(np.abs(a - b).max())


@pytest.mark.parametrize("metric", ["sqeuclidean", "manhattan", "cosine", by_chebyshev])
def test_distances_to_medoids_are_lazy(rows, metric):
    some = rows[:600]
    model = lf.KMedoids(3, metric=metric, random_state=0).fit(some)
    X = da.from_array(some, chunks=(250, -1))
    for method in ("predict", "transform", "distances_to_centers"):
        found = getattr(model, method)(X)
        assert isinstance(found, da.Array)
        assert found.chunks[0] == (250, 250, 100)
        computed, expected = found.compute(scheduler="threads"), getattr(model, method)(some)
        assert found.dtype == computed.dtype == expected.dtype
        np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-5)


def test_unknown_chunk_lengths_are_counted(rows, client):
    X = da.from_array(rows, chunks=9000)
    X = X[X[:, 0] > 0]
    alone = lf.KMeans(4, random_state=0).fit(rows[rows[:, 0] > 0])
    assert_same_bits(alone, lf.KMeans(4, random_state=0).fit(X))


def test_numbers_of_clusters_trimmed_points_and_rows_of_zeros(rows, client):
    rows = rows.copy()
    rows[[5, 9000]] = 0
    X = da.from_array(rows, chunks=8000)
    model = lf.TrimmedKMeans(4, random_state=0, keep=0.9, max_iter=3)
    alone, found = model.fit(rows), lf.TrimmedKMeans(4, random_state=0, keep=0.9, max_iter=3).fit(X)
    np.testing.assert_array_equal(alone.outliers_, found.outliers_.compute())
    again = lf.KMeans(4, random_state=0, reference_centers=rows[:4]).fit(X)
    assert_same_bits(lf.KMeans(4, random_state=0, reference_centers=rows[:4]).fit(rows), again)
    with pytest.raises(ValueError, match="only zeros in row 5"):
        lf.SphericalKMeans(4).fit(X)
    settings = {"random_state": 0, "zero_rows": "ignore"}
    assert_same_bits(
        lf.SphericalKMeans(4, **settings).fit(rows), lf.SphericalKMeans(4, **settings).fit(X)
    )


def test_lazy_labels_are_not_pickled_nor_saved(rows, client, tmp_path):
    X = da.from_array(rows[:9000], chunks=4000)
    model = lf.TrimmedKMeans(4, random_state=0, max_iter=2).fit(X)
    for again in (pickle.loads(pickle.dumps(model)), copy(model)):
        assert not hasattr(again, "labels_")
        assert not hasattr(again, "outliers_")
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert len(pickle.dumps(model)) < 10_000  # rows take 180,000
    model.save_pretrained(tmp_path / "model")
    again = lf.TrimmedKMeans.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    model.labels_ = model.labels_.compute()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)


@pytest.mark.long
def test_importing_lloydformer_does_not_import_dask():
    code = "import sys, lloydformer as lf; lf.KMeans(1).fit([[0.0]]); print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
