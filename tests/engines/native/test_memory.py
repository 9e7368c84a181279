"""At most 16 bytes a point above the data, and the stated sizes of bounds and of rows in int8.

Measured in fresh processes.
"""

import subprocess
import sys

import pytest
from peak_memory import USED, skip_without_proc

from lloydformer.engines import instruction_set

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        instruction_set() is None, reason="the kernels of the native engine were not built here"
    ),
]
FIXED = 20 * 2**20
"""Threads with their sums, whatever n is."""

SCRIPT = """
import sys, numpy as np, torch
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native
from lloydformer.engines.native.installed import kernels
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.driver import Restarts, solve
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext
n, d, k = map(int, sys.argv[1:4])
bounded, screened = "bounded" in sys.argv, "screened" in sys.argv
rng = np.random.default_rng(0)
X = rng.standard_normal((n, d), dtype=np.float32)
middles = 3 * rng.standard_normal((k, d), dtype=np.float32)
for part in np.array_split(X, 100):
    part += middles[rng.integers(k, size=len(part))]
def peak(n):
    data = TensorBlocks(torch.from_numpy(X[:n]))
    start = data.take(torch.arange(k)).double()
    with Native(2, bounded=bounded, screened=screened).open(data) as session:
        fit = FitContext.create(MeansPlan(), session, Rules(12, 0.0))
        solve(fit, Restarts(1, iter([start])), PlanIterations())
    return used()
before, half, whole = peak(20_000), peak(n // 2), peak(n)
print(whole - before, whole - half, kernels().bytes_of_bounds(True, d, k))
"""
N = 2_000_000


def measured(d: int, k: int, *how: str, n: int = N) -> tuple[int, int, int]:
    """Bytes above a small fit, bytes for the second half, and the stated size of bounds."""
    skip_without_proc()
    done = subprocess.run(
        [sys.executable, "-c", USED + SCRIPT, str(n), str(d), str(k), *how],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    above, growth, bounds = map(int, done.stdout.split())
    return above, growth, bounds


def test_16_bytes_a_point_without_bounds():
    above, growth, _ = measured(4, 20)
    assert above <= 16 * N + FIXED, f"{above / N:.1f} bytes a point"
    assert growth <= 16 * (N // 2), f"{growth / (N // 2):.1f} bytes a point"


@pytest.mark.parametrize(("d", "k"), [(8, 64), (16, 20)])
def test_bounds_take_their_stated_size(d, k):
    """And they do take it, so they were in use."""
    above, growth, bounds = measured(d, k, "bounded")
    assert above <= (16 + bounds) * N + FIXED, f"{above / N:.1f} bytes a point"
    assert growth <= (16 + bounds) * (N // 2), f"{growth / (N // 2):.1f} bytes a point"
    assert growth > (12 + bounds // 2) * (N // 2)


@pytest.mark.parametrize("how", [("screened",), ("screened", "bounded")])
def test_rows_in_int8_take_their_stated_size(how):
    """d bytes, in whole fours, and 12: docs/speed.md has the sum."""
    n, d = 400_000, 61
    above, _, bounds = measured(d, 100, *how, n=n)
    int8 = 64 + 12
    stated = 16 + int8 + (bounds if "bounded" in how else 0)
    assert above <= stated * n + FIXED, f"{above / n:.1f} bytes a point"
    assert above > int8 * n
