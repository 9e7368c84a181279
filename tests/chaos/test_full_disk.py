"""A disk that is full at any write: one line of words, old files as before, nothing left over.

Every operation on files that a command makes fails in turn: opening, creating a folder, renaming,
syncing, and writing at several sizes.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from full_disk import Fault, Outcome, run_with

import lloydformer as lf
from lloydformer.app.cli import app
from lloydformer.learning.checkpoint import load_checkpoint

ROWS = np.random.default_rng(0).normal(size=(300, 2))
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "bench_small.json"
TRAIN = (
    "train -d 2 -k 3 --points 20 --steps 4 --evaluate-every 2 --validation 4 --batch 2 "
    "--device cpu -o out --plot plot.png"
)
KEPT = re.compile(r"/pieces/|/\.[\w-]+\.safetensors\.[0-9a-f]{8}$")
"""Finished parts of `reproduce`; weights of `train` whose card is there, and whose last rename
failed: they are read under this name."""
Tree = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """What makes the old outputs, and what replaces them.

    `at_once`: all outputs are replaced together. `short`, `full`: how many faults are tried in
    `make test` and in `make chaos`, for commands that take seconds.
    """

    before: str
    command: str
    at_once: bool = True
    short: int = 0
    full: int = 10_000

    @property
    def commands(self) -> set[str]:
        return {words.split(" ")[0] for words in (*self.before.split(";"), self.command)}


CASES = {
    "fit": Case("fit good.csv -k 3 -o out", "fit good.csv -k 4 -o out --force", short=4),
    "fit, a new folder": Case("", "fit good.csv -k 4 -o deep/out"),
    "fit, other files": Case(
        "fit good.csv -k 3 -o out",
        "fit good.csv -k 4 -o out --force --report --labels parquet",
        full=40,
    ),
    "predict": Case(
        "fit good.csv -k 3 -o out;predict out good.csv -o new.parquet",
        "predict out other.csv -o new.parquet --force",
        short=4,
    ),
    "save": Case("save 3", "save 4", short=8),
    "recipes": Case(
        "recipes lloyd --diagram one.svg", "recipes soft --diagram one.svg --force", short=4
    ),
    "demo": Case("", "demo --output demo.html", full=10),
    "bench": Case(
        "", "bench --result bench.json -o new.json -o new.svg -o new.png", at_once=False, full=40
    ),
    "train": Case(TRAIN, f"{TRAIN} --seed 1 --force", at_once=False, full=100),
    "train, resumed": Case(TRAIN, f"{TRAIN} --resume", at_once=False, full=100),
    "reproduce": Case(
        "reproduce lrn-attn-map --trials 1 -o out",
        "reproduce lrn-attn-map --trials 1 --page -o out --force",
        at_once=False,
        full=40,
    ),
}


def work(words: str) -> Callable[[], int]:
    """A command of the program, or `save K`: `save_pretrained` of a model with K clusters."""

    def command() -> int:
        sys.argv = ["lloydformer", *words.split()]
        try:
            app.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    def save() -> int:
        model = lf.RelocatingKMeans(int(words.split()[1]), random_state=0).fit(ROWS)
        try:
            model.save_pretrained("model", force=True)
        except (OSError, ValueError) as error:
            print(f"lloydformer: {error}", file=sys.stderr)
            return 2
        return 0

    return save if words.startswith("save") else command


def tree(folder: Path) -> Tree:
    """The files below a folder; folders count by what is in them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def prepared(case: Case, folder: Path) -> None:
    folder.mkdir()
    for name, rows in (("good.csv", ROWS), ("other.csv", ROWS[::-1])):
        pd.DataFrame(rows, columns=["a", "b"]).to_csv(folder / name, index=False)
    shutil.copy(RESULTS, folder / "bench.json")
    for words in filter(None, case.before.split(";")):
        done = run_with(work(words), folder, Fault())
        assert done.status == 0, done.err


def faults(counts: dict[str, int], before: Tree, after: Tree) -> Iterator[Fault]:
    """Every operation by its number, and the sizes at which each new file is cut."""
    for kind, count in counts.items():
        for lasting in (False, True):
            yield from (Fault(kind, at, lasting) for at in range(count))
    new = {n: d for n, d in after.items() if d and before.get(n) != d}
    sizes = {size for data in new.values() for size in (0, len(data) // 2, len(data) - 1)}
    yield from (Fault("size", size) for size in sorted(sizes))


def spread(found: list[Fault], most: int) -> list[Fault]:
    """At most so many of them, from all over the list."""
    return [found[i] for i in sorted({i * len(found) // most for i in range(most)})]


def complaint(case: Case, outcome: Outcome, before: Tree, after: Tree, now: Tree) -> str:
    """What is wrong with the end of a run; empty if nothing is."""
    if outcome.status not in (0, 2) or "Traceback" in outcome.err:
        return f"status {outcome.status}: {outcome.err[-2000:]}"
    if outcome.status == 2 and not (
        outcome.err.startswith("lloydformer: ") and outcome.err.count("\n") == 1
    ):
        return f"not one line: {outcome.err}"
    left = now.keys() - before.keys() - after.keys()
    if left := {name for name in left if not KEPT.search(name)}:
        return f"left over: {sorted(left)}"
    if outcome.status == 0:
        return "" if now.keys() == after.keys() else f"missing: {after.keys() - now.keys()}"
    if case.at_once:
        return "" if now == before else f"changed: {changed(before, now)}"
    if gone := before.keys() - now.keys() - (before.keys() - after.keys()):
        return f"gone: {sorted(gone)}"
    return ""


def changed(before: Tree, now: Tree) -> list[str]:
    return sorted(n for n in before.keys() | now.keys() if before.get(n, 0) != now.get(n, 0))


def check_readable(folder: Path) -> None:
    """Read every file with the reader of its kind, and every model and card."""
    for path in folder.rglob("*"):
        if path.suffix in READERS:
            READERS[path.suffix](path)
        if path.name == "config.json":
            if path.parent.name == "checkpoint":
                load_checkpoint(path.parent)
            else:
                lf.RelocatingKMeans.from_pretrained(path.parent)
        elif path.suffix == ".safetensors" and path.with_suffix(".json").exists():
            lf.learning.load_pretrained(str(path.with_suffix(".json")))


def ends_with(*endings: bytes) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        assert path.read_bytes().rstrip().endswith(endings), path

    return read


READERS: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: json.loads(path.read_text()),
    ".csv": pd.read_csv,
    ".parquet": pd.read_parquet,
    ".html": ends_with(b"</html>"),
    ".svg": ends_with(b"</svg>"),
    ".png": ends_with(b"IEND\xaeB`\x82"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_operation_fails_in_turn(name, tmp_path, amount):
    case, old = CASES[name], tmp_path / "old"
    most = amount(case.short, case.full)
    if not most:
        pytest.skip("takes longer: make chaos runs it")
    app.application([name for name in app.COMMANDS if name in case.commands])  # import them once
    prepared(case, old)
    before = tree(old)
    shutil.copytree(old, tmp_path / "whole")
    whole = run_with(work(case.command), tmp_path / "whole", Fault())
    assert whole.status == 0, whole.err
    after = tree(tmp_path / "whole")
    every = list(faults(whole.counts, before, after))
    assert len(every) >= 5
    wrong = {}
    for number, fault in enumerate(spread(every, min(most, len(every)))):
        folder = tmp_path / str(number)
        shutil.copytree(old, folder)
        outcome = run_with(work(case.command), folder, fault)
        if said := complaint(case, outcome, before, after, tree(folder)):
            wrong[str(fault)] = said
        else:
            check_readable(folder)
        shutil.rmtree(folder)
    assert wrong == {}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """disk(pages): a new disk of this size, in place of the one before."""
    folder = tmp_path / "disk"
    folder.mkdir()
    unmount = ["umount", str(folder)]

    def mounted(pages: int) -> Path:
        subprocess.run(unmount, capture_output=True, check=False)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * pages}k", "tmpfs", str(folder)]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("mounting a small disk is not allowed here")
        return folder

    yield mounted
    subprocess.run(unmount, capture_output=True, check=False)


@pytest.mark.parametrize("name", ["fit", "predict"])
def test_disks_of_every_size(name, tmp_path, disk, amount):
    """From one that is full before the command begins to one that is large enough."""
    case, old, most = CASES[name], tmp_path / "old", amount(0, 40)
    if not most:
        pytest.skip("takes longer: make chaos runs it")
    app.application([name for name in app.COMMANDS if name in case.commands])
    prepared(case, old)
    before = tree(old)
    used = sum(-(-len(data) // 4096) for data in before.values())
    statuses = []
    for pages in range(used, used + most):
        folder = disk(pages) / "here"
        shutil.copytree(old, folder)
        outcome = run_with(work(case.command), folder, Fault())
        statuses.append(outcome.status)
        if outcome.status == 0:
            break
        assert complaint(case, outcome, before, before, tree(folder)) == "", pages
        check_readable(folder)
    assert statuses[0] == 2
    assert statuses[-1] == 0
