"""Checkpoints: a fit that was killed goes on, to the bits of one that was not."""

import hashlib
import os
import pickle
import signal
import zipfile

import numpy as np
import pytest
from forked import in_child
from scipy import sparse

import lloydformer as lf
from lloydformer.data.storage.pickles import dump_data, load_data
from lloydformer.estimators import ALGORITHMS, initial_centers
from lloydformer.solving.checkpoint import _HEAD, CheckpointFile

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OWN = {"medoids": {"method": "paper"}, "soft": {"inverse_temperature": 0.5}}
CASES = {name: (ALGORITHMS[name].estimator, OWN.get(name, {})) for name in ALGORITHMS} | {
    "starts": (lf.KMeans, {"n_init": 3}),
    "batches": (lf.KMeans, {"batch_size": 512}),
    "learned": (lf.LearnedKMeans, {"n_steps": 4}),
}


class BrokenError(Exception):
    """Something that ends a fit."""


def breaking(calls):
    """A callback that ends the fit when it is called for the last time."""
    left = iter(range(calls - 1))

    def hear(progress):
        if next(left, None) is None:
            raise BrokenError

    return hear


@pytest.fixture
def rows(rng):
    """Two leaves, and with 60 clusters more than one call of the kernels takes."""
    middles = rng.normal(size=(9, 5))
    return (6 * middles[rng.integers(9, size=16_000)] + rng.normal(size=(16_000, 5))).astype("f4")


def assert_same_bits(one, other):
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.objective_history_, other.objective_history_)
    assert one.inertia_ == other.inertia_


ORDINARY = [("kmeans", 60), ("kmeans", 4), ("relocating", 60), ("medoids", 60), ("batches", 60),
            ("starts", 60), ("trimmed", 4)]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "k"),
    [
        pytest.param(name, k, marks=() if (name, k) in ORDINARY else pytest.mark.long)
        for name in CASES
        for k in (60, 4)
    ],
)
def test_a_broken_fit_goes_on_to_the_same_bits(name, k, rows, tmp_path):
    make, own = CASES[name]
    settings = {"n_clusters": k, "random_state": 1, "init": "random"} | own
    if make is not lf.LearnedKMeans:
        settings["max_iter"] = 9
    rows = rows if k == 60 else rows[:2000]
    alone = make(**settings).fit(rows)
    settings["checkpoint"] = tmp_path / "fit"
    for calls in (3, 4) if k == 60 else (2,):
        with pytest.raises(BrokenError):
            make(**settings, callback=breaking(calls)).fit(rows)
    assert_same_bits(alone, make(**settings).fit(rows))
    assert list(tmp_path.iterdir()) == []  # a fit that has ended needs it no more


def test_iterations_before_the_checkpoint_are_not_run_again(rows, tmp_path):
    heard = []
    settings = {"n_clusters": 60, "random_state": 0, "max_iter": 8, "tol": 0}
    path = tmp_path / "new folder" / "fit"
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, checkpoint=path, callback=breaking(6)).fit(rows)
    again = lf.KMeans(**settings, checkpoint=str(path), callback=heard.append).fit(rows)
    assert [progress.iteration for progress in heard] == [5, 6, 7]
    assert again.n_iter_ == 8
    assert len(again.objective_history_) == 9


def kill(progress):
    if progress.iteration == 4:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_a_checkpoint(rows, tmp_path):
    settings = {"n_clusters": 60, "random_state": 7, "max_iter": 8, "init": "random", "n_init": 1}
    alone = lf.KMeans(**settings).fit(rows)
    settings["checkpoint"] = tmp_path / "fit"

    def fit():
        lf.KMeans(**settings, callback=kill).fit(rows)

    assert in_child(fit) == "no answer"
    written = (tmp_path / "fit").stat().st_size
    assert written < 20 * 8 * 60 * 5  # some numbers of the size of the centers, not of the rows
    assert_same_bits(alone, lf.KMeans(**settings).fit(rows))


def test_draws_without_a_seed_go_on_as_well(rows, tmp_path):
    settings = {"n_clusters": 60, "max_iter": 4, "n_init": 2, "init": "random"}
    settings["checkpoint"] = tmp_path / "fit"
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    kept = (tmp_path / "fit").read_bytes()
    first = lf.KMeans(**settings).fit(rows)
    (tmp_path / "fit").write_bytes(kept)
    assert_same_bits(first, lf.KMeans(**settings).fit(rows))


def test_ctrl_c_writes_the_last_iteration(rows, tmp_path):
    def stop(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    settings = {"n_clusters": 60, "random_state": 7, "max_iter": 6, "checkpoint": tmp_path / "fit"}
    heard = []
    with pytest.raises(KeyboardInterrupt):
        lf.KMeans(**settings, callback=stop).fit(rows)
    found = lf.KMeans(**settings, callback=heard.append).fit(rows)
    assert heard[0].iteration == 3
    assert_same_bits(lf.KMeans(**settings).fit(rows), found)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"n_clusters": 61}, r"written by a fit with n_clusters=60, and here it is 61"),
        ({"random_state": 8}, r"with random_state=7, and here it is 8"),
        ({"init": np.zeros((60, 5))}, r"with init="),
        ({"tol": 0.5}, r"with tol=0.0001, and here it is 0.5"),
    ],
)
def test_other_parameters_are_refused(more, words, rows, tmp_path):
    settings = {"n_clusters": 60, "random_state": 7, "checkpoint": tmp_path / "fit"}
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    with pytest.raises(ValueError, match=words):
        lf.KMeans(**settings | more).fit(rows)
    with pytest.raises(ValueError, match=r"with estimator='KMeans', and here it is 'SoftKMeans'"):
        lf.SoftKMeans(**settings).fit(rows)


def test_other_data_are_refused(rows, tmp_path):
    settings = {"n_clusters": 60, "random_state": 7, "checkpoint": tmp_path / "fit"}
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    other = rows.copy()
    other[4, 2] += 1e-3
    for X, weight in ((other, None), (rows[1:], None), (rows, np.ones(len(rows)) * 2)):
        with pytest.raises(ValueError, match=r"checkpoint: .* of other rows or weights; pass"):
            lf.KMeans(**settings).fit(X, sample_weight=weight)


def with_checksum(value):
    content = dump_data(value)
    return _HEAD + hashlib.sha256(content).digest() + content


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", _HEAD + b"nonsense", *map(with_checksum, [(1, 2), (1, 2, 3), print])],
)
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(content, rows, tmp_path):
    path = tmp_path / "fit"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint: cannot read .*fit .*; remove it, or pass"):
        lf.KMeans(60, checkpoint=path).fit(rows)
    assert path.read_bytes() == content


def test_where_there_is_no_checkpoint_an_error_says_so(rows, tmp_path):
    path = tmp_path / "fit"
    for model, X in (
        (lf.KMeans(3, checkpoint=path), sparse.csr_matrix(rows)),
        (lf.RelocatingKMeans(3, checkpoint=path, time_limit=9), rows),
        (lf.KMedoids(3, checkpoint=path), rows),
        (lf.CircuitClusterer(3, recipe=lf.recipes.lloyd("average"), checkpoint=path), rows[:40]),
    ):
        with pytest.raises(ValueError, match=r"^checkpoint: .*; leave it at None"):
            model.fit(X)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="checkpoint: cannot write"):
        lf.KMeans(60, checkpoint=tmp_path / "file" / "fit").fit(rows)


def test_bytes_with_anything_but_data_are_refused():
    assert load_data(dump_data({"a": (1, frozenset({2}), None)})) == {"a": (1, {2}, None)}
    for value in (print, os.system, in_child, zipfile.ZipFile):
        with pytest.raises(Exception, match="which is not data"):
            load_data(dump_data(value))


def test_a_class_that_a_module_has_only_imported_is_refused(tmp_path):
    target = tmp_path / "thesis"
    target.write_bytes(b"my thesis")
    call = f"clloydformer.data.numpy_files\nZipFile\n(V{target}\nVw\ntR.".encode()
    with pytest.raises(pickle.UnpicklingError, match="which is not data"):
        load_data(call)
    assert target.read_bytes() == b"my thesis"


def test_a_damaged_checkpoint_is_refused(rows, tmp_path):
    path = tmp_path / "fit"
    settings = {"n_clusters": 60, "random_state": 7, "checkpoint": path}
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    whole = path.read_bytes()
    for at in (30, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"cannot read .*damaged"):
            lf.KMeans(**settings).fit(rows)
    path.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=r"cannot read .*damaged"):
        lf.KMeans(**settings).fit(rows)


OTHERS = [
    (lf.KMeans, {"random_state": np.int64(0)}, {"random_state": np.int64(1)}, "random_state=0"),
    (lf.SoftKMeans, {"inverse_temperature": np.float32(0.05)},
     {"inverse_temperature": np.float32(2)}, "inverse_temperature=0.05"),
    (lf.CircuitClusterer, {"recipe": lf.recipes.soft(0.5)}, {"recipe": lf.recipes.lloyd()},
     "recipe="),
    (lf.KMeans, {"init": lambda X, k, random_state: X[:k]},
     {"init": lambda X, k, random_state: X[-k:]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("make", "one", "other", "words"), OTHERS)
def test_parameters_of_any_kind_are_compared(make, one, other, words, rows, tmp_path):
    """Two functions of the same name cannot be told apart, but their centers can."""
    settings = {"n_clusters": 60, "random_state": 0, "init": "random", "n_init": 1, "max_iter": 4}
    path = tmp_path / "fit"
    with pytest.raises(BrokenError):
        make(**settings | one, callback=breaking(3), checkpoint=path).fit(rows)
    again = make(**settings | other, checkpoint=path)
    if words is None:
        assert_same_bits(make(**settings | other).fit(rows), again.fit(rows))
        return
    with pytest.raises(ValueError, match=f"was written by a fit with {words}"):
        again.fit(rows)


def test_data_with_the_same_sums_are_other_data(rng, tmp_path):
    rows = rng.integers(0, 255, size=(16_000, 5)).astype("f4")
    settings = {"n_clusters": 60, "random_state": 7, "checkpoint": tmp_path / "fit"}
    with pytest.raises(BrokenError):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    swapped = rows.copy()
    swapped[[0, 1], 2] = swapped[[1, 0], 2] if rows[0, 2] != rows[1, 2] else (0, 255)
    for X, weights in ((swapped, None), (rows[::-1], None), (rows, rng.permutation(16_000))):
        with pytest.raises(ValueError, match=r"checkpoint: .* of other rows or weights; pass"):
            lf.KMeans(**settings).fit(X, sample_weight=weights)


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_another_number_of_threads_goes_on(init, weighted, rng, tmp_path, monkeypatch):
    X, heard = rng.normal(size=(70_000, 2)).astype("f4"), []
    settings = {"n_clusters": 40, "random_state": 1, "init": init, "n_init": 1, "max_iter": 6}
    weights = rng.integers(0, 3, size=len(X)) if weighted else None
    alone = lf.KMeans(**settings).fit(X, sample_weight=weights)
    settings["checkpoint"] = tmp_path / "fit"
    for threads in (1, 2):
        monkeypatch.setattr("lloydformer.estimators.checkpoint.allowed_threads", lambda: threads)  # noqa: B023
        if threads == 1:
            with pytest.raises(BrokenError):
                lf.KMeans(**settings, callback=breaking(4)).fit(X, sample_weight=weights)
    found = lf.KMeans(**settings, callback=heard.append).fit(X, sample_weight=weights)
    assert heard[0].iteration == 3
    assert_same_bits(alone, found)


def test_a_write_that_fails_in_the_middle_warns_and_hides_no_error(rows, tmp_path, monkeypatch):
    write = CheckpointFile._write
    calls = []

    def fail(self):
        calls.append(self)
        if len(calls) > 1:
            raise OSError("checkpoint: cannot write it (disk full)")
        write(self)

    monkeypatch.setattr(CheckpointFile, "_write", fail)
    # Every iteration is written: on a slow disk the fit would end before the second write is due.
    monkeypatch.setattr("lloydformer.solving.checkpoint._PAUSE", 0)
    settings = {"n_clusters": 60, "random_state": 7, "max_iter": 3, "checkpoint": tmp_path / "fit"}
    with pytest.warns(RuntimeWarning, match="disk full"):
        lf.KMeans(**settings).fit(rows)
    calls.clear()
    with (
        pytest.warns(RuntimeWarning, match="disk full"),
        pytest.raises(BrokenError) as stop,
    ):
        lf.KMeans(**settings, callback=breaking(2)).fit(rows)
    assert "disk full" in stop.value.__notes__[0]


def test_wrong_paths_and_engines_are_named(rows, tmp_path):
    for folder in (tmp_path, ""):
        with pytest.raises(ValueError, match=r"^checkpoint: found .*, which is a folder; pass the"):
            lf.KMeans(60, checkpoint=folder).fit(rows)
    with pytest.raises(ValueError, match="engine: found 'nonsense'"):
        lf.KMeans(60, engine="nonsense", checkpoint=tmp_path / "fit").fit(rows)
    with pytest.raises(ValueError, match="checkpoint: partial_fit writes none; leave it at None"):
        lf.KMeans(60, checkpoint=tmp_path / "fit").partial_fit(rows)


def stop_at(number):
    """Return a callback that raises `KeyboardInterrupt` when it is called for that time."""
    calls = []

    def callback(progress):
        calls.append(progress)
        if len(calls) == number:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("number", [4, 7])
def test_a_fit_that_is_stopped_while_it_polishes_resumes_to_the_same_bits(number, tmp_path):
    # More than 2^22 products: below that one engine call solves the data, and nothing is resumed.
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    settings = {
        "n_steps": 2,
        "max_iter": 12,
        "tol": 0,
        "random_state": 0,
        "compare_to_lloyd": False,
    }
    whole = lf.LearnedKMeans(9, **settings, callback=lambda progress: None).fit(X)
    settings["checkpoint"] = tmp_path / "c"
    with pytest.raises(KeyboardInterrupt):
        lf.LearnedKMeans(9, **settings, callback=stop_at(number)).fit(X)
    resumed = lf.LearnedKMeans(9, **settings, callback=lambda progress: None).fit(X)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(resumed.objective_history_, whole.objective_history_)


def test_ctrl_c_in_the_second_seeding_keeps_the_first_result(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 3))
    calls = []

    def seed(X, n_clusters, random_state):
        calls.append(len(X))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return X[random_state.permutation(len(X))[:n_clusters]]

    settings = {"init": seed, "n_init": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    model = lf.KMeans(5, **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.labels_.shape == (500,)
    assert model.n_iter_ > 0
    resumed = lf.KMeans(5, **settings).fit(X)
    whole = lf.KMeans(5, **settings | {"checkpoint": None}).fit(X)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert resumed.inertia_ <= model.inertia_


def test_initial_centers_that_are_all_saved_are_not_made_again(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    settings = {"random_state": 0, "checkpoint": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt):
        lf.KMeans(9, **settings, callback=stop_at(3)).fit(X)
    monkeypatch.setattr(initial_centers, "seeds_of_starts", lambda *arguments: iter(()))
    assert lf.KMeans(9, **settings).fit(X).n_iter_ > 3
