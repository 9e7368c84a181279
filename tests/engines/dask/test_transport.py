"""Faults of a cluster: dead and slow workers, bad partitions, a closed client, Ctrl-C."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from workers import wait_for_two_workers

import lloydformer as lf
from lloydformer.engines import instruction_set
from lloydformer.engines.partitioned import PartitionedSession

da = pytest.importorskip("dask.array", reason="dask is not installed (extra `dask`)")
distributed = pytest.importorskip("distributed", reason="dask is not installed (extra `dask`)")
pytestmark = [
    pytest.mark.skipif(instruction_set() is None, reason="the kernels were not built here"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SETTINGS = {"n_clusters": 30, "random_state": 3, "max_iter": 8, "init": "k-means||", "tol": 0}


def assert_same_bits(alone, found):
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.objective_history_, found.objective_history_)
    np.testing.assert_array_equal(alone.labels_, found.labels_.compute())


def made(number, rows):
    """A block that is made again where it is needed; it is not sent from the test."""
    return rows[number * 6000 : (number + 1) * 6000]


def generated(rows):
    """Blocks that workers make themselves."""
    import dask

    work = dask.delayed(made)
    blocks = [work(number, rows) for number in range(5)]
    return da.concatenate([da.from_delayed(b, (6000, 5), rows.dtype) for b in blocks])


def killer(client, iteration):
    """A callback that kills a worker process after an iteration, while the next one begins."""
    pids = client.run(os.getpid, on_error="ignore")

    def kill(progress):
        if progress.iteration == iteration:
            victim = min(pids.values())
            threading.Timer(0.01, os.kill, (victim, signal.SIGKILL)).start()

    return kill


def killed_fit(make, rows, client):
    before = set(client.run(os.getpid, on_error="ignore").values())
    found = make(callback=killer(client, 2), **SETTINGS).fit(generated(rows))
    assert min(before) not in client.run(os.getpid, on_error="ignore").values()
    return found


@pytest.mark.parametrize(
    "make", [lf.KMeans, pytest.param(lf.TrimmedKMeans, marks=pytest.mark.long)]
)
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(make, rows, client):
    alone = make(**SETTINGS).fit(rows)
    assert_same_bits(alone, killed_fit(make, rows, client))


@pytest.mark.long
def test_a_worker_is_killed_twenty_times_in_a_row(rows, client):
    alone = lf.KMeans(**SETTINGS).fit(rows)
    for _ in range(20):
        wait_for_two_workers(client)
        assert_same_bits(alone, killed_fit(lf.KMeans, rows, client))


@pytest.mark.long
def test_a_slow_worker_changes_no_bit(rows, client):
    settings = SETTINGS | {"max_iter": 2, "init": rows[:30]}
    alone = lf.KMeans(**settings).fit(rows)
    victim = next(iter(client.nthreads()))

    def slow():
        from lloydformer.engines.partitioned.partitions import PartitionStore

        quick = PartitionStore.handle
        PartitionStore.handle = lambda self, request: (time.sleep(0.5), quick(self, request))[1]
        PartitionStore.quick = quick

    def quick():
        from lloydformer.engines.partitioned.partitions import PartitionStore

        PartitionStore.handle = PartitionStore.quick

    client.run(slow, workers=[victim])
    try:
        found = lf.KMeans(**settings).fit(generated(rows))
    finally:
        client.run(quick, workers=[victim])
    assert_same_bits(alone, found)


def test_a_worker_that_keeps_dying_is_an_error_that_says_so(rows, client):
    import dask

    def deadly(block):
        from distributed import get_worker

        os.kill(os.getpid(), signal.SIGKILL) if get_worker() else None
        return block

    bad = da.from_delayed(dask.delayed(deadly)(rows[:10]), (10, 5), rows.dtype)
    X = da.concatenate([da.from_array(rows[:10], chunks=5), bad])
    with pytest.raises(RuntimeError, match="X: partition 2: workers died again and again"):
        lf.KMeans(2).fit(X)


def test_parts_that_are_lost_are_named_by_their_rows(rows, client):
    def lose(progress):
        if progress.iteration == 2:
            client.cancel([distributed.Future(key, client) for key in client.futures], force=True)

    model = lf.KMeans(callback=lose, **SETTINGS)
    with pytest.raises(RuntimeError, match=r"^X: rows 0 to \d\d+(, .*)?: it was lost"):
        model.fit(generated(rows))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda X: da.where(X[7000, 1] == X, np.nan, X),
            "NaN or infinity in partition 1, row 1000",
        ),
        (lambda X: X[:0], "found 0 rows and 5 columns"),
        (lambda X: X[:, 0], "found a dask array with 1 axes"),
        (lambda X: X.astype(str), "partition 0 is not made of numbers"),
    ],
)
def test_bad_partitions_are_named(change, words, rows, client):
    with pytest.raises(ValueError, match=words):
        lf.KMeans(3).fit(change(da.from_array(rows, chunks=6000)))


def test_partitions_of_different_widths_are_named(rows, client):
    import dask

    blocks = [dask.delayed(rows[:100]), dask.delayed(rows[:100, :3])]
    with pytest.raises(ValueError, match="partition 1 has 3 columns, and partition 0 has 5"):
        lf.KMeans(3).fit(blocks)


def test_a_partition_that_cannot_be_computed_is_an_error(rows, client):
    import dask

    blocks = [dask.delayed(rows[:100]), dask.delayed(lambda: 1 / 0)()]
    with pytest.raises(ZeroDivisionError):
        lf.KMeans(3).fit(blocks)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(7), r"found shape \(7,\)"),
        (-np.ones(30_000), "negative weight -1.0 in partition 0"),
        (np.zeros(30_000), "only zeros"),
        (np.full(30_000, np.nan), "NaN or infinity in partition 0"),
    ],
)
def test_bad_weights_are_refused(weights, words, rows, client):
    X = da.from_array(rows, chunks=6000)
    for given in (weights, da.from_array(weights, chunks=4000)):
        with pytest.raises(ValueError, match=words):
            lf.KMeans(3).fit(X, sample_weight=given)


def test_ctrl_c_leaves_no_task_behind(rows, client):
    def stop(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    model = lf.KMeans(callback=stop, **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(generated(rows))
    assert model.n_iter_ == 3
    del model
    deadline = time.monotonic() + 10
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())


def test_a_fit_on_a_cluster_goes_on_from_its_checkpoint(rows, client, tmp_path):
    settings, heard = SETTINGS | {"checkpoint": tmp_path / "fit"}, []

    def stop(progress):
        if progress.iteration == 4:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lf.KMeans(callback=stop, **settings).fit(generated(rows))
    found = lf.KMeans(callback=heard.append, **settings).fit(generated(rows))
    assert_same_bits(lf.KMeans(**SETTINGS).fit(rows), found)
    assert heard[0].iteration == 4
    assert list(tmp_path.iterdir()) == []


def test_other_partitions_go_on_from_a_checkpoint_in_the_middle_of_the_seeds(
    rows, client, tmp_path, monkeypatch
):
    settings = {"n_clusters": 30, "random_state": 3, "max_iter": 2, "init": "k-means++"}
    alone, calls, find = lf.KMeans(**settings).fit(rows), [], PartitionedSession.draw_by_distance

    def fail(self, fractions):
        calls.append(fractions)
        assert len(calls) != 9, "broken"
        return find(self, fractions)

    settings["checkpoint"] = tmp_path / "fit"
    with monkeypatch.context() as patch:
        patch.setattr(PartitionedSession, "draw_by_distance", fail)
        with pytest.raises(AssertionError, match="broken"):
            lf.KMeans(**settings).fit(da.from_array(rows, chunks=(10_000, 5)))
    found = lf.KMeans(**settings).fit(da.from_array(rows, chunks=(22_000, 5)))
    assert_same_bits(alone, found)


def test_nothing_stays_on_the_workers_after_a_fit(rows, client):
    model = lf.KMeans(**SETTINGS).fit(generated(rows))
    deadline = time.monotonic() + 10
    while any(client.has_what().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.has_what().values())
    assert len(model.labels_.compute()) == len(rows)


def test_a_fit_inside_of_a_task_works_alone(rows, client):
    def fit(points):
        X = da.from_array(points, chunks=500)
        return lf.KMeans(3, random_state=0).fit(X).cluster_centers_

    found = client.submit(fit, rows[:1500]).result(timeout=60)
    np.testing.assert_array_equal(
        found, lf.KMeans(3, random_state=0).fit(rows[:1500]).cluster_centers_
    )
