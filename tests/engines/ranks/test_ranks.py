"""Ranks: the same bits as one process, whatever the shards; errors of one rank on all of them."""

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rank_program
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.estimators.registry import BUILT_IN

SIZES = rank_program.SIZES
LIMIT = 120
"""Seconds that the processes may take in all."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each rank of each number of ranks has found: found[size][rank]."""
    folder = tmp_path_factory.mktemp("ranks")
    done = subprocess.run(
        [sys.executable, rank_program.__file__, str(folder)], timeout=LIMIT, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(max(SIZES))]
    return {
        "folder": folder,
        "vanished": [told[rank]["vanished"] for rank in range(2)],
        **{size: [told[rank][size] for rank in range(size)] for size in SIZES},
    }


@pytest.fixture(scope="module")
def alone():
    """The same fits in one process that has all rows, by the native engine."""
    torch.set_num_threads(1)
    models = {}
    for name, make in rank_program.FITS.items():
        X, weight = rank_program.data_of(name)
        models[name] = make().set_params(random_state=3).fit(X, sample_weight=weight)
    return {name: rank_program.attributes(model) for name, model in models.items()}


def test_all_registered_algorithms_are_tried():
    assert {name.split(",")[0] for name in rank_program.FITS} >= set(BUILT_IN)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", rank_program.FITS)
def test_every_rank_has_the_bits_of_one_process(found, alone, name, size):
    X, _ = rank_program.data_of(name)
    for rank, told in enumerate(found[size]):
        here, wanted = told["fits"][name], alone[name]
        np.testing.assert_array_equal(here["centers"], wanted["centers"])
        np.testing.assert_array_equal(here["rows"], wanted["rows"])
        close = 1e-8 if name == "relocating" else 1e-13  # the kernel measures in float64
        np.testing.assert_allclose(here["history"], wanted["history"], rtol=close)
        assert here["inertia"] == pytest.approx(wanted["inertia"], rel=1e-13)
        for part in ("centers", "inertia", "history"):
            np.testing.assert_array_equal(here[part], found[size][0]["fits"][name][part])
        mine = rank_program.shard_of(X, rank, size)
        np.testing.assert_array_equal(here["labels"], wanted["labels"][mine])
        assert here["labels"].dtype == np.int32


WORDS = {
    "with_nan": "X: found NaN or infinity",
    "other_width": "X: found 6 features on rank 0 and 2 on rank",
    "other_clusters": "n_clusters: found 3 on rank 0 and 4 on rank",
    "wrong_clusters": "'n_clusters' parameter of KMeans must be an int",
    "other_start": "init: found",
    "one_weight": "sample_weight: found True as whether it is passed on rank 0 and False on rank 1",
    "no_weight": "sample_weight: found only zeros",
    "no_rows": "X: found no rows on any rank",
    "few_rows": "n_samples=2 should be >= n_clusters=3",
    "zeros": "X: found only zeros in row {row}, which has no direction",
    "function_as_start": "init: found a function",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", rank_program.ERRORS)
def test_an_error_of_one_rank_is_raised_on_all(found, name, size):
    words = WORDS[name].format(row=60 * (size - 1) + 7)
    same = {"other_width", "other_clusters", "other_start", "one_weight"}  # as on rank 0
    for rank, told in enumerate(found[size]):
        message = told["errors"][name]
        if size == 1 and name in same:
            assert message is None
        else:
            assert message is not None
            assert words in message
            if name in ("with_nan", "wrong_clusters") and rank < size - 1:
                assert message.startswith(f"rank {size - 1}: ")


@pytest.mark.parametrize("size", SIZES[:-1])
@pytest.mark.parametrize("name", rank_program.ALONE)
def test_a_rank_that_does_something_else_is_an_error_on_all(found, name, size):
    last = size - 1
    words = {
        "raising_callback": (f"rank {last}: ZeroDivisionError: in the callback",
                             "ZeroDivisionError('in the callback')"),
        "own_warm_start": ("cluster_centers_: found None on rank 0 and an array of shape",) * 2,
        "another_course": ("ranks are out of step: rank 0 is at exchange",) * 2,
        "interrupted": ("ranks are out of step: rank 0 is at exchange",) * 2,
    }[name]  # fmt: skip
    for rank, told in enumerate(found[size]):
        error, seconds = told["alone"][name]
        assert words[rank == last] in error
        assert seconds < 10  # nobody waits for the time limit


def test_a_rank_that_is_gone_ends_the_others(found):
    for words, seconds in found["vanished"]:
        assert words
        assert seconds < rank_program.LIMIT.total_seconds() + 5


@pytest.mark.parametrize("size", SIZES)
def test_ranks_draw_the_same_random_numbers(found, size):
    for told in found[size]:
        np.testing.assert_array_equal(told["seeds"], found[size][0]["seeds"])


@pytest.mark.parametrize("size", SIZES)
def test_ranks_go_on_from_a_checkpoint(found, size):
    X = rank_program.points()
    alone = lf.KMeans(rank_program.K, max_iter=9, random_state=3, **rank_program.ROWS).fit(X)
    for rank, told in enumerate(found[size]):
        here, first, left = told["resumed"]
        np.testing.assert_array_equal(here["centers"], alone.cluster_centers_)
        mine = rank_program.shard_of(X, rank, size)
        np.testing.assert_array_equal(here["labels"], alone.labels_[mine])
        assert first == 3
        assert len(here["history"]) == len(alone.objective_history_)
        assert not left or rank > 0  # rank 0 removes the file at its end


@pytest.mark.parametrize("size", SIZES[:-1])
def test_training_over_ranks_gives_the_same_weights_and_files(found, size):
    wanted, history = found[1][0]["trained"]
    for told in found[size]:
        weights, evaluations = told["trained"]
        assert torch.equal(weights, wanted)
        assert evaluations == history
    files = {}
    for n in (1, size):
        folder = found["folder"] / f"trained-{n}"
        paths = (path for path in folder.rglob("*") if path.is_file())
        files[n] = {path.relative_to(folder): path.read_bytes() for path in paths}
    assert files[size] == files[1]
    assert len(files[1]) == 3  # a log, and a checkpoint of two files


def test_a_shard_without_torchrun_is_all_the_data():
    X = rank_program.points(300)
    shard, plain = (lf.KMeans(4, random_state=0).fit(data) for data in (lf.Shard(X), X))
    np.testing.assert_array_equal(shard.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(shard.labels_, plain.labels_)
    np.testing.assert_array_equal(shard.predict(lf.Shard(X)), plain.labels_)
    np.testing.assert_array_equal(shard.transform(lf.Shard(X)), plain.transform(X))
    tensor = lf.KMeans(4, random_state=0).fit(lf.Shard(torch.from_numpy(X)))
    assert torch.equal(tensor.labels_, torch.from_numpy(plain.labels_))


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda X: lf.KMeans(2).partial_fit(lf.Shard(X)), "X: found a Shard"),
        (
            lambda X: lf.KMeans(2, engine="cuda").fit(lf.Shard(X)),
            "engine: found 'cuda' for a shard",
        ),
        (lambda X: lf.KMeans(2, device="cuda").fit(lf.Shard(X)), "device: found 'cuda' for"),
        (lambda X: timed(2).fit(lf.Shard(X)), "time_limit: found 9 for a shard"),
        (lambda X: lf.KMeans(2).fit(lf.Shard(sparse.csr_matrix(X))), "X: found a sparse matrix"),
        (lambda X: lf.Shard(lf.Shard(X)), "rows: found a Shard in a Shard"),
        (lambda X: lf.KMeans(2).fit([lf.Shard(X)]), "X: found a list of shards"),
        (lambda X: of_matrix(2).fit(lf.Shard(X)), "metric: found 'precomputed' for a shard"),
        (lambda X: averaging(2).fit(lf.Shard(X)), "X: found a Shard; ranks run folds"),
        (lambda X: layer_norm(2).fit(lf.Shard(X)), "X: found a Shard; ranks do not run"),
    ],
)
def test_what_shards_cannot_do_says_so(fit, words):
    with pytest.raises(ValueError, match=words):
        fit(rank_program.points(30))


def timed(k):
    return lf.RelocatingKMeans(k, time_limit=9)


def of_matrix(k):
    return lf.KMedoids(k, metric="precomputed")


def averaging(k):
    return lf.CircuitClusterer(k, recipe=lf.recipes.lloyd(ties="average"))


def layer_norm(k):
    return lf.CircuitClusterer(k, recipe=lf.recipes.spherical(norm="layer"))


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_program_of_the_documentation_under_torchrun(size, tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    page = page[page.index("## Ranks") :]
    program = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    (tmp_path / "program.py").write_text(program[1], encoding="utf-8")
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(size),
    ]
    done = subprocess.run([*torchrun, str(tmp_path / "program.py")], timeout=LIMIT, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == program[2]


@pytest.mark.long
def test_the_train_command_under_torchrun(tmp_path):
    """One table, one set of files, by rank 0; the weights of one process."""
    options = ["train", "-d", "2", "-k", "3", "--points", "30", "--steps", "20", "--batch", "3",
               "--validation", "6", "--evaluate-every", "10", "--device", "cpu", "--seed", "0,1,2",
               "--together", "1", "--json", "-o"]  # fmt: skip
    printed = {}
    for name, start in (
        ("one", []),
        ("two", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]),
    ):
        done = subprocess.run(
            [sys.executable, *start, "-m", "lloydformer", *options, str(tmp_path / name)],
            timeout=LIMIT, check=False, capture_output=True, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed[name] = json.loads(done.stdout)
    for one, two in zip(printed["one"]["rows"], printed["two"]["rows"], strict=True):
        assert {**one, "card": None} == {**two, "card": None}
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.safetensors")}
        for name in printed
    )
    assert one == two
    assert len(one) == 3
