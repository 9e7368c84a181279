"""Bad input of `fit` and `predict`: one line, status 2, and no new or changed file."""

import errno
import os
import re
import resource
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lloydformer.app.jobs.fit import outputs

PROGRAM = [sys.executable, "-m", "lloydformer"]
GOOD = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])


def lines(*rows):
    return "\n".join(rows) + "\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with good data and many kinds of bad data."""
    monkeypatch.chdir(tmp_path)
    GOOD.to_csv("good.csv", index=False)
    GOOD.to_csv("centers.csv", index=False)
    texts = {
        "empty.csv": "", "names.csv": "a,b\n", "blank.csv": "\n\n",
        "ragged.csv": lines("a,b", "1,2", "3,4,5", "6,7"),
        "text.csv": lines("a,b", "1,2", "3,four", "5,6"),
        "missing.csv": lines("a,b", "1,2", "3,", "5,6"),
        "infinite.csv": lines("a,b", "1,2", "3,inf", "5,6"),
        "twice.csv": lines("a,a", "1,2", "3,4"),
        "points.xyz": "1", "a file": "1",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    GOOD.to_parquet("whole.parquet")
    np.save("whole.npy", GOOD.to_numpy())
    np.savez("whole.npz", X=GOOD.to_numpy())
    np.save("zeros.npy", np.zeros((9, 2)))
    np.save("huge.npy", 1e300 * GOOD.to_numpy())
    for kind in ("parquet", "npy", "npz"):
        whole = (tmp_path / f"whole.{kind}").read_bytes()
        (tmp_path / f"cut.{kind}").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "nothing").mkdir()
    (tmp_path / "different").mkdir()
    GOOD.to_csv("different/1.csv", index=False)
    GOOD.rename(columns={"b": "c"}).to_csv("different/2.csv", index=False)
    (tmp_path / "odd" / "labels.csv").mkdir(parents=True)
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "labels.csv").write_text("old")
    return tmp_path


FIT = {
    "missing file": ("nowhere.csv -k 2", "nowhere.csv: no such file or folder; check the path"),
    "a name": ("goood -k 2", "goood: no such .*did you mean good.csv. Or pass openml:goood to"),
    "empty file": ("empty.csv -k 2", "empty.csv: the file is empty; pass one with rows"),
    "names and no rows": ("names.csv -k 2", "names.csv: .*rows of numbers"),
    "empty lines": ("blank.csv -k 2", "blank.csv: .*rows of numbers"),
    "ragged row": ("ragged.csv -k 2", "ragged.csv: line 3: found 3 values for 2 columns; give"),
    "text": ("text.csv -k 2", "text.csv: line 3, column b: found 'four'; correct it, or choose"),
    "missing value": ("missing.csv -k 2", "line 3, column b: found a missing value; .*--missing"),
    "infinity": ("infinite.csv -k 2", "infinite.csv: line 3, column b: found inf; correct"),
    "a name twice": ("twice.csv -k 2", "twice.csv: column a appears twice .columns 1, 2.; give"),
    "k too large": ("good.csv -k 41", "-k: found 41 clusters for the 40 rows of good.csv; pass"),
    "a range too large": ("good.csv -k 2:99", "-k: found 99 clusters for the 40 rows"),
    "k no number": ("good.csv -k many", "-k: found 'many'; pass a number such as 8"),
    "k zero": ("good.csv -k 0", "-k: found '0'; pass 1 or more"),
    "k backwards": ("good.csv -k 9:2", "-k: found '9:2'; pass 1 or more, and ranges from"),
    "different columns": ("different -k 2", "2.csv: its columns differ from those of 1.csv; put"),
    "cut Parquet": ("cut.parquet -k 2", "cut.parquet: not a readable Parquet file"),
    "cut npy": ("cut.npy -k 2", "cut.npy: not a readable .npy file"),
    "cut npz": ("cut.npz -k 2", "cut.npz: not a readable .npz file"),
    "folder without data": ("nothing -k 2", "nothing: no .csv, .parquet, .npy or .npz file"),
    "unknown ending": ("points.xyz -k 2", "points.xyz: .xyz files are not supported; pass"),
    "no direction": ("zeros.npy -k 2 --algorithm spherical", "zeros.npy: .* row 1, counted from 1"),
    "too large to square": (
        "huge.npy -k 2 --scale none", "huge.npy: found values that span .*; rescale them",
    ),
    "too large to scale": (
        "huge.npy -k 2", "huge.npy: found values in column number 1 whose spread .*; divide them",
    ),
    "unknown column": ("good.csv -k 2 --columns a,z", "good.csv: columns: found 'z'; there are a"),
    "unknown algorithm": ("good.csv -k 2 --algorithm kmean", "--algorithm: found 'kmean'; pass"),
    "foreign option": ("good.csv -k 2 --keep 0.9", "--keep: relocating does not have.* trimmed"),
    "tol of medoids": ("good.csv -k 2 --algorithm medoids --tol 1", "--tol: medoids does not"),
    "keep too large": ("good.csv -k 2 --algorithm trimmed --keep 2", "--keep: found 2.0; pass a"),
    "unknown effort": (
        "good.csv -k 2 --algorithm relocating --effort huge",
        "--effort: found 'huge'; pass best or high or low or medium or a whole number",
    ),
    "effort below 0": ("good.csv -k 2 --algorithm relocating --effort -1", "--effort: found -1"),
    "no time": ("good.csv -k 2 --algorithm relocating --time-limit -1", "--time-limit: found -1.0"),
    "time of kmeans": (
        "good.csv -k 2 --algorithm kmeans --time-limit 1",
        "--time-limit: kmeans does not have this",
    ),
    "unknown init": ("good.csv -k 2 --init best", "--init: found 'best'; pass k-means.. or k-m"),
    "unknown scale": ("good.csv -k 2 --scale logs", "--scale: found 'logs'; pass one of auto, s"),
    "unknown labels": ("good.csv -k 2 --labels xls", "--labels: found 'xls'; labels are written"),
    "a word for a number": ("good.csv -k 2 --n-init few", "Invalid value for '--n-init'"),
    "no starts": ("good.csv -k 2 --n-init 0", "Invalid value for '--n-init'"),
    "output is a file": ("good.csv -k 2 -o good.csv", "good.csv is .*; pass"),
    "output below a file": ("good.csv -k 2 -o empty.csv/out", "empty.csv cannot be written to"),
    "output exists": ("good.csv -k 2 -o done", "done/labels.csv exists; pass --force"),
    "labels are a folder": ("good.csv -k 2 -o odd --force", "odd/labels.csv is a folder, which"),
    "output would be the data": ("centers.csv -k 2 -o . --force", "centers.csv is the data; pass"),
    "no name": (" -k 2", "source: found an empty name; pass a file"),
    "output is the data": ("different -k 2 -o different", "different is the folder of the data"),
    "no permission": ("good.csv -k 2 -o /proc/out", "/proc cannot be written to .*; pass another"),
    "no model": ("good.csv --start-from nothing", "nothing/config.json: there is no such file"),
    "model and init": ("good.csv --start-from nothing --init random", "--start-from: found to"),
}  # fmt: skip
PREDICT = {
    "no model": ("nothing good.csv", "nothing/config.json: there is no such file"),
    "a file as model": ("good.csv good.csv", "config.json: there is no such file"),
    "missing column": ("fitted one.csv", "one.csv: column b is missing, .* columns are a"),
    "other width": ("fitted three.npy", "three.npy: found 3 columns; this model was fitted on 2"),
    "unknown ending": ("fitted good.csv -o new.txt", "new.txt: found 'txt'; labels are written"),
    "output exists": ("fitted good.csv -o text.csv", "text.csv exists; pass --force"),
    "output is a folder": ("fitted good.csv -o odd.csv", "odd.csv is a folder; pass the name"),
    "no permission": ("fitted good.csv -o /proc/new.csv", "/proc cannot be written to .*; pass"),
    "missing file": ("fitted nowhere.csv", "nowhere.csv: no such file or folder"),
    "output is the data": ("fitted good.csv -o good.csv --force", "good.csv is the data; pass"),
    "output among the data": ("fitted different -o different/new.csv", "is the folder of the data"),
    "other columns": ("fitted good.csv --columns b,a", "^lloydformer: good.csv: found columns"),
}  # fmt: skip


def tree(folder):
    return {str(p): None if p.is_dir() else p.read_bytes() for p in folder.rglob("*")}


def check_complaint(found, words):
    status, out, err = found
    assert (status, out) == (2, "")
    assert err.startswith("lloydformer: ")
    assert err.count("\n") == 1
    assert re.search(words, err), err


@pytest.mark.parametrize("fault", FIT)
def test_fit_refuses(command, here, fault):
    arguments, words = FIT[fault]
    before = tree(here)
    check_complaint(command("fit", *arguments.split(" ")), words)
    assert tree(here) == before


@pytest.mark.parametrize("fault", PREDICT)
def test_predict_refuses(command, here, fault):
    command("fit", "good.csv", "-k", "3", "-o", "fitted")
    GOOD[["a"]].to_csv("one.csv", index=False)
    np.save("three.npy", np.zeros((5, 3)))
    (here / "odd.csv").mkdir()
    arguments, words = PREDICT[fault]
    before = tree(here)
    check_complaint(command("predict", *arguments.split()), words)
    assert tree(here) == before


def test_predict_counts_rows_of_zeros_from_1(command, here):
    command("fit", "good.csv", "-k", "3", "-o", "fitted", "--algorithm", "spherical")
    np.save("one.npy", np.vstack([GOOD.to_numpy(), np.zeros((1, 2))]))
    words = "one.npy: found only zeros in row 41, counted from 1, which has no direction; remove"
    check_complaint(command("predict", "fitted", "one.npy"), words)


def test_a_page_without_matplotlib_is_refused_before_the_work(command, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    before = tree(here)
    words = r'--report: matplotlib is missing; get it with: pip install "lloydformer\[plots\]"'
    check_complaint(command("fit", "good.csv", "-k", "3", "--report"), words)
    assert tree(here) == before


def test_a_failed_write_does_not_change_an_existing_folder(command, here, monkeypatch):
    def fail(path, *found):
        raise OSError(errno.ENOSPC, "No space left on device")

    command("fit", "good.csv", "-k", "3", "-o", "out")
    before = tree(here)
    monkeypatch.setattr(outputs, "write_centers", fail)
    words = "No space left on device: 'out'; free some space, or write somewhere else"
    check_complaint(command("fit", "good.csv", "-k", "2", "-o", "out", "--force"), words)
    assert tree(here) == before


# in processes of their own


def run(*arguments, **more):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False,
                          **more)  # fmt: skip


def limited():
    """Limit files to 20 kB, so that writing fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.long
def test_a_limit_on_the_size_of_files(here):
    np.save("many.npy", np.random.default_rng(0).normal(size=(5000, 2)))
    before = tree(here)
    found = run("fit", "many.npy", "-k", "3", "-o", "new/deep/out", preexec_fn=limited)
    words = "File too large: 'new/deep/out'; raise the limit"
    check_complaint((found.returncode, found.stdout, found.stderr), words)
    assert tree(here) == before


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
@pytest.mark.parametrize("output", ["disk", pytest.param("disk/new", marks=pytest.mark.long)])
def test_a_full_disk(here, small_disk, output):
    np.save("many.npy", np.random.default_rng(0).normal(size=(5000, 2)))
    found = run("fit", "many.npy", "-k", "3", "-o", output)
    words = f"No space left on device: '{output}'; free some space, or write somewhere else"
    check_complaint((found.returncode, found.stdout, found.stderr), words)
    assert list(small_disk.iterdir()) == []


@pytest.mark.long
def test_closed_standard_output(here):
    found = subprocess.run([*PROGRAM, "fit", "good.csv", "-k", "3"], stderr=subprocess.PIPE,
                           preexec_fn=lambda: os.close(1), check=False)  # fmt: skip
    assert (found.returncode, found.stderr) == (0, b"")
    assert (here / "good-clusters" / "labels.csv").exists()


@pytest.mark.long
def test_standard_output_on_a_full_disk(here):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        found = subprocess.run([*PROGRAM, "fit", "good.csv", "-k", "3"], stdout=full,
                               stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    words = "No space left on device; free some space"
    check_complaint((found.returncode, "", found.stderr), words)


@pytest.mark.parametrize(
    "more", [pytest.param([], marks=pytest.mark.long), ["--json"]], ids=["table", "json"]
)
def test_a_closed_pipe_is_no_error_and_the_files_are_written(here, more):
    """The data have enough columns that the JSON does not fit into the buffer of a pipe."""
    np.save("wide.npy", np.random.default_rng(0).normal(size=(300, 100)))
    with subprocess.Popen(
        [*PROGRAM, "fit", "wide.npy", "-k", "120", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read().decode().splitlines()
        assert [line for line in errors if not line.startswith("advice: ")] == []
    assert process.returncode == 0
    names = {path.name for path in (here / "wide-clusters").iterdir()}
    assert names == {"labels.csv", "centers.csv", "summary.json", "model"}
