"""SIGKILL at any moment leaves one whole run, and the next run leaves nothing but itself."""

import csv
import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from killer import Killer

import lloydformer as lf
from lloydformer.learning.checkpoint import load_checkpoint
from lloydformer.learning.pretrained import load

Amount = Callable[[int, int], int]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where runs are written; points.csv is beside it."""
    points = np.random.default_rng(0).normal(size=(60, 2)).tolist()
    lines = ["a,b", *(f"{x},{y}" for x, y in points)]
    (tmp_path / "points.csv").write_text("\n".join(lines))
    return tmp_path / "out"


def whole_fit(folder: Path) -> int:
    """The number of clusters of a run, if all its files belong together."""
    k: int = json.loads((folder / "summary.json").read_text())["k"]
    with (folder / "centers.csv").open() as file:
        assert len(list(csv.reader(file))) == k + 1
    if k % 2:
        with (folder / "labels.csv").open() as file:
            clusters = {int(row["cluster"]) for row in csv.DictReader(file)}
        assert f"{k} clusters" in (folder / "report.html").read_text()
    else:
        clusters = set(pyarrow.parquet.read_table(folder / "labels.parquet")["cluster"].to_pylist())
    assert clusters == set(range(k))
    assert len(lf.RelocatingKMeans.from_pretrained(folder / "model").cluster_centers_) == k
    assert (folder / "labels.csv").exists() == (folder / "report.html").exists() == (k % 2 == 1)
    assert (folder / "labels.parquet").exists() == (k % 2 == 0)
    return k


def whole_model(folder: Path) -> int:
    return len(lf.KMeans.from_pretrained(folder).cluster_centers_)


def whole_training(folder: Path) -> int:
    """The seed of the card; card and checkpoint are each whole."""
    load_checkpoint(folder / "checkpoint")
    return load(folder / "d2-k3.json").run.seed


CASES = {
    "fit": (
        whole_fit,
        (3, 4),
        {"summary.json", "centers.csv", "model", "model/config.json", "model/TENSORS", "mine.txt"},
    ),
    "save": (whole_model, (3, 4), {"config.json", "TENSORS", "mine.txt"}),
    "train": (
        whole_training,
        (0, 1),
        {"checkpoint", "checkpoint/config.json", "checkpoint/TENSORS", "log.csv", "d2-k3.json",
         "d2-k3.safetensors", "mine.txt"},
    ),
}  # fmt: skip
"""For each action: the check of its folder, the two runs that take turns, all files after a run
(of a fit also labels and report)."""


def names(folder: Path) -> set[str]:
    """The files below a folder; the name of a tensor file depends on its content."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(p.with_name("TENSORS") if p.name.startswith("model-") else p) for p in found}


@pytest.mark.long
@pytest.mark.parametrize("action", CASES)
def test_a_kill_before_any_file_operation(
    action: str, killer: Killer, folder: Path, amount: Amount
) -> None:
    """All operations in `make chaos`, some in `make test`."""
    whole, (old, new), _ = CASES[action]
    finish(killer, action, folder, old)
    operations = finish(killer, action, folder, new)["operations"]
    assert operations > 8
    chosen = np.unique(np.linspace(1, operations, amount(5, operations)).astype(int)).tolist()
    found = set()
    for stop_at in chosen:
        finish(killer, action, folder, old)
        ended = killer.run(action, folder, new, stop_at=stop_at)
        assert ended["status"] == -signal.SIGKILL, stop_at
        found.add(whole(folder))
        finish(killer, action, folder, new)
    assert found == {old, new}


@pytest.mark.long
@pytest.mark.parametrize("action", CASES)
def test_kills_at_random_moments(action: str, killer: Killer, folder: Path, amount: Amount) -> None:
    whole, (old, new), _ = CASES[action]
    finish(killer, action, folder, old)
    takes = finish(killer, action, folder, new)["seconds"]
    drawn = random.Random(7)
    for turn in range(amount(1, 200)):
        now = (old, new)[turn % 2]
        killer.run(action, folder, now, delay=drawn.uniform(0, takes))
        assert whole(folder) in (old, new)
        if turn % 10 == 9:
            finish(killer, action, folder, now)
    finish(killer, action, folder, old)


def finish(killer: Killer, action: str, folder: Path, which: int) -> dict[str, float]:
    """A run that is not killed: it leaves its own files, and no others."""
    whole, _, expected = CASES[action]
    ended = killer.run(action, folder, which)
    assert ended["status"] == 0
    (folder / "mine.txt").write_text("a file of the user")
    assert whole(folder) == which
    assert names(folder) - {"labels.csv", "report.html", "labels.parquet"} == expected
    assert {path.name for path in folder.parent.iterdir()} == {"points.csv", "out"}
    return ended
