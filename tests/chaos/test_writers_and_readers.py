"""Processes that write to one folder at the same time: a reader sees a whole model, always."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import TypeAlias

import pytest

import lloydformer as lf
from lloydformer.learning.pretrained import load

Writer: TypeAlias = "subprocess.Popen[str]"
Amount = Callable[[int, int], int]
WRITER = Path(__file__).parents[1] / "support" / "writer.py"
SHIPPED = load("d4-k6")
NUMBERS = (3, 4)
"""Each writer has its own number of clusters."""


def read_model(folder: Path) -> int:
    return len(lf.KMeans.from_pretrained(folder).cluster_centers_)


def read_run(folder: Path) -> int:
    return read_model(folder / "model")


def read_card(folder: Path) -> int:
    found = load(folder / "card.json")
    assert found.weights.equal(SHIPPED.weights * found.card["k"])
    return int(found.card["k"])


READERS = {"models": read_model, "runs": read_run, "cards": read_card}
FILES = {"models": 2, "runs": 4, "cards": 2}


@pytest.fixture(scope="module")
def both() -> Iterator[list[Writer]]:
    """Two processes that write."""
    with ExitStack() as stack:
        started = [
            subprocess.Popen(
                [sys.executable, str(WRITER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            for _ in NUMBERS
        ]  # fmt: skip
        for process in started:
            stack.callback(process.communicate)
            stack.callback(process.kill)
        for process in started:
            heard(process, "ready")
        yield started


def ask(both: list[Writer], kind: str, folder: Path, count: int) -> None:
    """Let each of them write `count` times."""
    for process, number in zip(both, NUMBERS, strict=False):
        assert process.stdin is not None
        process.stdin.write(f"{kind} {folder} {number} {count}\n")
        process.stdin.flush()


def heard(process: Writer, word: str = "done") -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word, "a writer has failed"


@pytest.mark.long
@pytest.mark.parametrize("kind", READERS)
def test_pairs_of_writers(kind: str, both: list[Writer], tmp_path: Path, amount: Amount) -> None:
    """One of the two is there in the end, whole, and nothing else."""
    folder = tmp_path / "out"
    for _ in range(amount(10, 500)):
        ask(both, kind, folder, 1)
        for process in both:
            heard(process)
        assert READERS[kind](folder) in NUMBERS
        found = [path for path in folder.rglob("*") if path.is_file()]
        assert len(found) == FILES[kind], found
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


@pytest.mark.long
@pytest.mark.parametrize("kind", READERS)
def test_reads_while_two_write(
    kind: str, both: list[Writer], tmp_path: Path, amount: Amount
) -> None:
    folder, seen, reads = tmp_path / "out", set(), 0
    ask(both[:1], kind, folder, 1)
    heard(both[0])
    while reads < amount(30, 10_000):
        ask(both, kind, folder, amount(20, 200))
        while not all(has_answered(process) for process in both):
            seen.add(READERS[kind](folder))
            reads += 1
        for process in both:
            heard(process)
    assert seen == set(NUMBERS)


def has_answered(process: Writer) -> bool:
    """Whether a line is there to be read."""
    assert process.stdout is not None
    assert process.poll() is None, "a writer has failed"
    return bool(select([process.stdout], [], [], 0)[0])
