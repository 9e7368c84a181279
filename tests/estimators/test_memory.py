"""Nothing of size n x k: peaks of memory, measured in a process of their own."""

import subprocess
import sys

import pytest
from peak_memory import USED, skip_without_proc

FIXED = 20 * 2**20
"""Threads with their leaf blocks, whatever n is."""

DENSE = """
import sys, numpy as np, lloydformer as lf
n, d, k, init = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
def peak(n):
    lf.KMeans(k, init=init, n_init=1, max_iter=3, tol=0.0, random_state=0).fit(X[:n])
    return used()
before, half, whole = peak(20_000), peak(n // 2), peak(n)
print(whole - before, whole - half)
"""
SPARSE = """
import numpy as np, lloydformer as lf
from scipy import sparse
rng = np.random.default_rng(0)
columns = rng.integers(0, 10_000, size=20_000 * 50)
starts = np.arange(0, 20_000 * 50 + 1, 50)
X = sparse.csr_matrix((rng.exponential(size=20_000 * 50), columns, starts), shape=(20_000, 10_000))
model = lf.SphericalKMeans(n_clusters=20, max_iter=4, random_state=0).fit(X)
assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
print(used())
"""
SPARSE_ROWS = """
import sys, numpy as np, lloydformer as lf
from scipy import sparse
n, d, each, rng = 1_200_000, 40, 2, np.random.default_rng(0)
columns = np.repeat(rng.integers(0, d // 2, size=n, dtype=np.int32), each)
columns[1::each] += d // 2
starts = np.arange(0, n * each + 1, each, dtype=np.int32)
X = sparse.csr_matrix((rng.random(n * each), columns, starts), shape=(n, d))
half = X[: n // 2]
def peak(rows):
    getattr(lf, sys.argv[1])(5, init=sys.argv[2], n_init=1, max_iter=3, random_state=0).fit(rows)
    return used()
before, small, large = peak(X[:50_000]), peak(half), peak(X)
print(large - small, n - n // 2)
"""

LEARNED = """
import sys, numpy as np, lloydformer as lf
engine, k = sys.argv[1], 100
X = np.random.default_rng(0).standard_normal((60_000, 4), dtype=np.float32)
def peak(n):
    lf.LearnedKMeans(k, init=X[:k], n_init=1, n_steps=2, max_iter=1, engine=engine).fit(X[:n])
    return used()
before, whole = peak(10_000), peak(60_000)
print(whole - before)
"""


def measured(script: str, *arguments: object) -> list[int]:
    """The bytes that the script prints."""
    skip_without_proc()
    command = [sys.executable, "-c", USED + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.long
@pytest.mark.parametrize(("n_features", "limit"), [(12, 24), (16, 24 + 16)])
def test_a_million_points_take_24_bytes_each_above_the_data(n_features, limit):
    """And two million more no more than that, without any allowance.

    From 16 features on also a copy in int8, d + 10 bytes, with which seeds are found.
    """
    above, _ = measured(DENSE, 1_000_000, n_features, 20, "k-means++")
    assert above <= limit * 1_000_000 + FIXED, f"{above / 1e6:.1f} bytes a point"
    _, growth = measured(DENSE, 4_000_000, n_features, 20, "k-means++")
    assert growth <= limit * 2_000_000, f"{growth / 2e6:.1f} bytes a point"


@pytest.mark.long
def test_many_clusters_take_no_memory_of_n_times_k():
    """100,000 x 500 scores would be 200 MB in single precision."""
    above, growth = measured(DENSE, 100_000, 4, 500, "random")
    assert above < 100 * 2**20
    assert growth <= 24 * 50_000 + FIXED


@pytest.mark.long
@pytest.mark.parametrize("engine", [pytest.param("chunked", marks=pytest.mark.long), "auto"])
def test_learned_steps_take_no_memory_of_n_times_k(engine):
    """60,000 x 100 scores of four heads would be 96 MB in single precision."""
    (above,) = measured(LEARNED, engine)
    assert above <= 24 * 60_000 + FIXED


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "init"),
    [
        ("KMeans", "k-means++"),
        pytest.param("SphericalKMeans", "random", marks=pytest.mark.long),
    ],
)
def test_sparse_rows_take_16_bytes_each_beside_the_data(kind, init):
    """In float64: two labels and a distance."""
    growth, rows = measured(SPARSE_ROWS, kind, init)
    assert growth <= 16.5 * rows, f"{growth / rows:.1f} bytes a row"


@pytest.mark.long
def test_sparse_rows_stay_sparse():
    """As a dense array they would be 1.6 GB."""
    (peak,) = measured(SPARSE)
    assert peak < 2**30
