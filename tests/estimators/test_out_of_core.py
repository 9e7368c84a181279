"""Data larger than memory: anonymous memory in a process of its own, and the same result."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import lloydformer as lf

D, K = 16, 20
FIXED = 40 * 10**6
"""Bytes of threads with their leaf blocks, and of modules that are loaded on the way."""

MEASURE = """
import sys, threading
import lloydformer as lf
from lloydformer.data import mapped_files

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

path, *cases = sys.argv[1:]
lf.KMeans, lf.SphericalKMeans, lf.data.open_dataset  # names are imported when they are first used
before = anonymous()
for case in cases:
    peak, over = [before], threading.Event()
    def watch():
        while not over.wait(0.005):
            peak[0] = max(peak[0], anonymous())
    watcher = threading.Thread(target=watch)
    watcher.start()
    eval(case, {"lf": lf, "path": path, "scratch": mapped_files})
    over.set()
    watcher.join()
    print(max(peak[0], anonymous()) - before)
"""


def write(path, n: int, order: str = "C"):
    """A mixture of K clusters, written in pieces."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(-3, 3, size=(K, D)).astype(np.float32)
    points = np.lib.format.open_memmap(path, "w+", np.float32, (n, D), order == "F")
    for start in range(0, n, 1 << 18):
        part = points[start : start + (1 << 18)]
        noise = rng.standard_normal(part.shape, dtype=np.float32)
        part[:] = middles[rng.integers(K, size=len(part))] + noise
    points.flush()
    return path


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    """A million rows, row by row."""
    return write(tmp_path_factory.mktemp("million") / "points.npy", 1_000_000)


def anonymous_bytes(path, *cases: str) -> list[int]:
    """The peak above what there is after the import, for each case in turn."""
    if not sys.platform.startswith("linux"):
        pytest.skip("anonymous memory is read from /proc")
    command = [sys.executable, "-c", MEASURE, str(path), *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    return [int(word) for word in done.stdout.split()]


PLAIN = "lf.KMeans(5, init='random', n_init=1, max_iter=1, random_state=0)"
SPHERICAL = PLAIN.replace("KMeans", "SphericalKMeans")
SEARCHED = PLAIN.replace("random'", "k-means||'")
CASES = {
    "C": (
        f"{PLAIN}.fit(lf.data.open_dataset(path))",
        f"{PLAIN}.fit(lf.data.open_dataset(path, scale='standard'))",
        f"{SPHERICAL}.fit(lf.data.open_dataset(path, scale='minmax'))",
        f"{SEARCHED}.fit(lf.data.open_dataset(path)).predict(lf.data.open_dataset(path))",
    ),
    "F": (f"{PLAIN}.fit(lf.data.open_dataset(path))",),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "order", [pytest.param(c, marks=pytest.mark.long if c == "F" else ()) for c in CASES]
)
def test_mapped_data_are_not_copied(million, tmp_path, order):
    """A million rows are 64 MB, and their state is 12 MB."""
    path = million if order == "C" else write(tmp_path / "points.npy", 1_000_000, order)
    found = anonymous_bytes(path, *CASES[order])
    assert all(above <= 12 * 1_000_000 + FIXED for above in found), found


@pytest.mark.long
def test_beyond_the_threshold_state_and_columns_are_on_disk(million):
    """With 1 MB instead of 256 of them nothing of size n is in memory."""
    columns = [str(i) for i in range(1, D)]
    (_, above) = anonymous_bytes(
        million,
        "setattr(mapped_files, '_IN_MEMORY', 10**6)",
        f"lf.TrimmedKMeans(3, init='random', n_init=2, max_iter=2, random_state=0)"
        f".fit(lf.data.open_dataset(path, columns={columns}))",
    )
    assert above <= FIXED, above


@pytest.mark.long
def test_twenty_million_points_in_500_megabytes(tmp_path):
    if shutil.disk_usage(tmp_path).free < 3 * 10**9:
        pytest.skip(f"the file takes 1.3 GB, and there is too little room in {tmp_path}")
    path = write(tmp_path / "points.npy", 20_000_000)
    fit = f"lf.KMeans({K}, max_iter=10, random_state=0).fit(lf.data.open_dataset(path))"
    (above,) = anonymous_bytes(path, fit)
    assert above <= 500 * 10**6, f"{above / 1e6:.0f} MB"
    assert above <= 12 * 20_000_000 + FIXED, f"{above / 1e6:.0f} MB"


@pytest.mark.parametrize("init", ["k-means||", pytest.param("random", marks=pytest.mark.long)])
def test_a_million_mapped_rows_give_what_they_give_in_memory(million, init):
    fit = lf.KMeans(K, init=init, n_init=1, max_iter=5, random_state=0)
    centers = fit.fit(lf.data.open_dataset(million)).cluster_centers_
    labels = fit.labels_
    fit.fit(np.load(million))
    np.testing.assert_array_equal(centers, fit.cluster_centers_)
    np.testing.assert_array_equal(labels, fit.labels_)
