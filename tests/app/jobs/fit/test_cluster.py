"""`lloydformer fit --workers` and `--cluster`: the files of a fit in one process."""

import importlib
import json
import socket
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf
from lloydformer.app.jobs.fit import cluster as cluster_job
from lloydformer.app.jobs.fit.cluster import ClusterFitJob, RowsOnCluster
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.engines.dask import transport
from lloydformer.engines.dask.transport import ClusterError
from lloydformer.numerics.checks import ArgumentError

dask = pytest.importorskip("dask", reason="dask is not installed (extra `dask`)")
distributed = pytest.importorskip("distributed", reason="dask is not installed (extra `dask`)")
X = np.random.default_rng(0).normal(size=(9000, 4)).astype(np.float32)
cli_fit = importlib.import_module("lloydformer.app.cli.fit")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with data in several files and row groups."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for number, rows in enumerate(np.array_split(X, 3)):
        frame = pd.DataFrame(rows, columns=list("abcd"))
        frame.to_parquet(f"data/part-{number}.parquet", row_group_size=1000)
    return tmp_path


@pytest.mark.parametrize("processes", [pytest.param(True, marks=pytest.mark.long), False])
def test_workers_read_the_files_and_write_what_one_process_writes(processes, command, here, client):
    where = ["--workers", "2"] if processes else ["--cluster", client.scheduler.address]
    status, out, err = command("fit", "data/*.parquet", "-k", "4", *where, "--seed", "1")
    assert status == 0, err
    model = lf.RelocatingKMeans(4, random_state=1).fit(X)
    labels = pd.read_csv("data-clusters/labels.csv")
    assert np.array_equal(labels["row"], np.arange(1, 9001))
    assert np.array_equal(labels["cluster"], model.labels_)
    centers = pd.read_csv("data-clusters/centers.csv", dtype=np.float32)
    assert list(centers.columns) == ["cluster", "size", *"abcd"]
    assert np.array_equal(centers.to_numpy()[:, 2:], model.cluster_centers_)
    summary = json.loads((here / "data-clusters" / "summary.json").read_text())
    assert summary["inertia"] == model.inertia_
    assert summary["n"] == 9000
    assert f"objective {model.inertia_:,.6g}"[:12] in out
    status, _, err = command("predict", "data-clusters/model", "data", "-o", "again.csv")
    assert status == 0, err
    assert np.array_equal(pd.read_csv("again.csv")["cluster"], model.labels_)


@pytest.fixture(scope="module")
def client():
    """Workers in this process, which share its memory:// files."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            protocol="tcp",
        ) as cluster,
        distributed.Client(cluster, set_as_default=True) as client,
    ):
        yield client


def test_files_on_another_file_system_and_rows_left_out(client, here):
    import fsspec

    with fsspec.open("memory://points/a.npy", "wb") as file:
        np.save(file, X)
    settings = FitSettings(
        data="memory://points/*.npy",
        clusters="3",
        algorithm="trimmed",
        keep=0.9,
        max_iter=3,
        labels="parquet",
        output=here / "out",
        workers=2,
    )
    model, totals, summary = ClusterFitJob(settings).run(client)
    alone = lf.TrimmedKMeans(3, keep=0.9, random_state=0, max_iter=3).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
    labels = pd.read_parquet(here / "out" / "labels.parquet")
    np.testing.assert_array_equal(labels["outlier"] == 1, alone.labels_ == -1)
    assert sum(totals.sizes) + sum(totals.left_out) == 9000
    assert summary["ranges"] == 1


def test_no_row_comes_to_the_client(client, here, monkeypatch):
    """Whoever reads a range must be a worker."""
    read = cluster_job.read_range

    def on_a_worker(part, columns):
        distributed.get_worker()
        return read(part, columns)

    monkeypatch.setattr(cluster_job, "read_range", on_a_worker)
    assert kmeans_job("data", here).run(client)[2]["n"] == 9000
    with pytest.raises(ValueError, match="No worker"):
        on_a_worker(None, None)


def write_with_nan(name):
    rows = X[:20].astype(np.float64)
    rows[12, 1] = np.nan
    frame = pd.DataFrame(rows, columns=list("abcd"))
    if name.endswith(".npy"):
        np.save(name, rows)
    elif name.endswith(".parquet"):
        frame.to_parquet(name, row_group_size=10)
    else:
        frame.to_csv(name, index=False)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("nan.npy", "nan.npy, row 13;"),
        ("nan.parquet", "nan.parquet, row 13;"),
        ("nan.csv.gz", "nan.csv.gz, row 13;"),
        ("nan.csv", r"nan.csv, bytes 8 to \d+, row 13 of these;"),
    ],
)
def test_a_missing_value_names_the_file_and_the_row(name, place, client, here):
    write_with_nan(name)
    with pytest.raises(ValueError, match=f"found NaN or infinity in .*{place}"):
        kmeans_job(name, here).run(client)
    assert not (here / "out").exists()


def write_without_rows(name):
    frame = pd.DataFrame(X[:0], columns=list("abcd"))
    if name.endswith(".npy"):
        np.save(name, X[:0])
    elif name.endswith(".csv"):
        frame.to_csv(name, index=False)
    else:
        arrow = pytest.importorskip("pyarrow")
        schema = arrow.Table.from_pandas(frame).schema
        arrow.parquet.ParquetWriter(name, schema).close()


@pytest.mark.parametrize("name", ["none.npy", "none.csv", "none.parquet"])
def test_no_rows_at_all_are_an_error(name, client, here):
    write_without_rows(name)
    with pytest.raises(ValueError, match=rf"^{name}: found no rows; points are rows of numbers$"):
        kmeans_job(name, here).run(client)


@pytest.mark.parametrize("name", ["data/0.parquet", "data/z.parquet"])
def test_a_file_without_rows_beside_others(name, client, here):
    write_without_rows(name)
    model, _, summary = kmeans_job("data", here).run(client)
    assert summary["n"] == 9000
    alone = lf.KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, alone.cluster_centers_)


def test_labels_of_files_of_two_precisions_are_those_of_one_process(client, command, here):
    rng = np.random.default_rng(0)
    (here / "mixed").mkdir()
    single = rng.integers(3, size=(400, 2)).astype(np.float32) / np.float32(10)
    for name, rows in {"a": single, "b": rng.integers(3, size=(400, 2)) / 10 + 1e-9}.items():
        pd.DataFrame(rows, columns=["x", "y"]).to_parquet(f"mixed/{name}.parquet")
    address = client.scheduler.address
    for folder, where in {"one": [], "many": ["--cluster", address]}.items():
        status, _, err = command("fit", "mixed", "-k", "4", "-o", folder, *where)
        assert status == 0, err
    assert (here / "one/labels.csv").read_text() == (here / "many/labels.csv").read_text()


def test_workers_that_leave_while_labels_are_written_are_an_error(here, monkeypatch):
    monkeypatch.setattr(transport, "WITHOUT_WORKERS", 1.0)
    monkeypatch.setattr(transport, "_POLL", 0.2)
    done = transport.Waiting.done
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):

        def leave(self, futures, names):
            done(self, futures, names)
            if "row groups" in names[0]:  # the labels are done, and not here yet
                cluster.scale(0)
                deadline = time.monotonic() + 30
                while client.nthreads() and time.monotonic() < deadline:
                    time.sleep(0.05)

        monkeypatch.setattr(transport.Waiting, "done", leave)
        with pytest.raises(ValueError, match="client: there has been no worker for 1 seconds"):
            kmeans_job("data", here).run(client)
    assert not (here / "out").exists()


def test_the_index_of_a_data_frame_is_no_feature(client, here):
    frame = pd.DataFrame(X[:300], columns=list("abcd"), index=pd.Index(np.arange(300.0), name="t"))
    frame.to_parquet("indexed.parquet")
    job = kmeans_job("indexed.parquet", here)
    assert job.run(client)[2]["columns"] == list("abcd")
    again = kmeans_job("indexed.parquet", here, columns="a,t")
    assert again.run(client)[2]["columns"] == ["a", "t"]


def kmeans_job(data, here, **options):
    settings = FitSettings(
        data=data, clusters="3", output=here / "out", force=True, workers=2, **options
    )
    return ClusterFitJob(settings)


OTHER = {
    "texts": (["1", "2"], "string"),
    "words": (["x", "y"], "string"),
    "times": (np.array([1, 2], "M8[ns]"), r"timestamp\[ns\]"),
    "structs": ([{"x": 1}, {"x": 2}], "struct<x: int64>"),
    "lists": ([[1], [2]], "list<.*int64>"),
}


@pytest.mark.parametrize("name", OTHER)
def test_columns_of_other_types_are_refused_before_rows_are_read(name, client, here, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    column, kind = OTHER[name]
    table = arrow.table({"a": arrow.array(column), "b": [1.0, 2.0]})
    arrow.parquet.write_table(table, "other.parquet")
    monkeypatch.setattr(cluster_job, "read_range", None)
    words = rf"other.parquet: a is not numeric \(type: '{kind}'\); use --columns b$"
    with pytest.raises(ValueError, match=words):
        kmeans_job("other.parquet", here).run(client)


def test_a_later_file_may_not_have_other_types(client, here):
    frame = pd.DataFrame({"a": ["x"], "b": 1.0, "c": 1.0, "d": 1.0})
    frame.to_parquet("data/z.parquet")
    with pytest.raises(ValueError, match=r"z.parquet: a is not numeric .*; use --columns b,c,d"):
        kmeans_job("data", here).run(client)


@pytest.mark.parametrize("on_cluster", [True, False])
def test_a_broken_fit_goes_on_from_its_checkpoint(on_cluster, client, command, here, monkeypatch):
    where = ["--cluster", client.scheduler.address] if on_cluster else []
    # So many columns that not all iterations run in one call, which would be resumed from the
    # beginning.
    wide = np.random.default_rng(0).normal(size=(9000, 40)).astype(np.float32)
    pd.DataFrame(wide).add_prefix("x").to_parquet("wide.parquet", row_group_size=1000)
    fit = ["fit", "wide.parquet", "-k", "12", "--max-iter", "9", *where]
    assert command(*fit, "-o", "alone")[0] == 0

    def stop(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    fit += ["-o", "broken", "--checkpoint", "fit.checkpoint"]
    hearing(monkeypatch, stop)
    assert command(*fit)[0] == 130
    assert (here / "fit.checkpoint").exists()
    status, _, err = command(*fit, "--seed", "1")
    assert status == 2
    assert "--checkpoint: " in err
    assert "was written by a fit with random_state=0" in err

    heard = []
    hearing(monkeypatch, heard.append)
    status, _, err = command(*fit)
    assert status == 0, err
    assert heard[0].iteration == 4
    assert not (here / "fit.checkpoint").exists()
    for name in ("labels.csv", "centers.csv"):
        assert (here / "broken" / name).read_text() == (here / "alone" / name).read_text()


def hearing(monkeypatch, callback):
    """Let commands call this after each iteration."""

    @contextmanager
    def progress(numbers, done=None):
        yield callback, lambda run: None

    monkeypatch.setattr(cli_fit, "fit_progress", progress)


def test_a_checkpoint_is_of_one_number_of_clusters(command, here):
    status, _, err = command("fit", "data", "-k", "2:3", "--checkpoint", "fit.checkpoint")
    assert status == 2
    assert "--checkpoint: found together with -k 2:3; pass one number of clusters" in err
    status, _, err = command(
        "fit", "data", "-k", "3", "--checkpoint", "x", "--algorithm", "medoids"
    )
    assert status == 2
    assert "--checkpoint: there is none for method=" in err
    assert "; leave it out" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "2", "--cluster", "tcp://a:1"], "--workers: found together with --cluster"),
        (["--workers", "2", "--scale", "minmax"], "--scale: not with --workers"),
        (["--cluster", "tcp://a:1", "--report"], "--report: not with --cluster"),
        (["--workers", "2", "-k", "2:5"], "-k: found 2:5; with a cluster pass one number"),
        (["--workers", "0"], "--workers"),
        (["--workers", "2", "-k", "0"], "-k: found '0'; pass 1 or more"),
        (["--cluster", "nonsense://x"], "--cluster: no scheduler answers at nonsense://x"),
    ],
)
def test_bad_options_are_one_line(options, words, command, here):
    k = [] if "-k" in options else ["-k", "3"]
    status, out, err = command("fit", "data/*.parquet", *k, *options)
    assert status == 2
    assert words in err
    assert err.count("\n") == 1
    assert out == ""


def test_nobody_at_the_address_is_an_error_within_a_limit(command, here, monkeypatch):
    monkeypatch.setattr(cluster_job, "_SECONDS", 1)
    before = dask.config.get("scheduler", None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        status, _, err = command("fit", "data", "-k", "3", "--cluster", address)
    assert status == 2
    assert f"--cluster: no scheduler answers at {address}" in err
    assert err.count("\n") == 1
    assert dask.config.get("scheduler", None) == before, "a later fit would look for this client"


def test_a_scheduler_without_workers_is_an_error_within_a_limit(command, here, monkeypatch):
    monkeypatch.setattr(cluster_job, "_SECONDS", 1)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        status, _, err = command("fit", "data", "-k", "3", "--cluster", address)
    assert status == 2
    assert "has no worker after 1 seconds; start some with dask worker" in err


LOST = "rows 0 to 9: it was lost with its worker"
ERRORS = {
    "rows": (ClusterError(LOST, "X"), f"points.csv: {LOST}"),
    "a file": (ClusterError("b.csv: workers died"), "b.csv: workers died"),
    "the client": (ClusterError("client: it is closed"), "client: it is closed"),
    "an argument": (ArgumentError("X", "found no rows"), "points.csv: found no rows"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_name_the_data_not_an_argument(kind):
    error, words = ERRORS[kind]
    with (
        pytest.raises(ValueError, match=f"^{words}$"),
        RowsOnCluster("points.csv", [], [], None).name_data(),
    ):
        raise error
