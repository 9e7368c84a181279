"""Random fits: no label contradicts exact arithmetic.

A failure names the seed of its problem. To repeat it: FUZZ_SEED=SEED pytest THIS_FILE. To search
for longer: FUZZ_SECONDS=3600 pytest THIS_FILE; FUZZ_FIRST=N begins with another problem.
"""

import os
import time

import numpy as np
import pytest
from label_problems import check, check_labels, draw_problem

from lloydformer.engines import Native, instruction_set
from lloydformer.engines.native import engine as native_engine

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
FIRST = int(os.environ.get("FUZZ_FIRST", "50_000"))
"""Seed of the first problem."""


def is_here(name: str) -> bool:
    try:
        Native(instruction_set=name)
    except ValueError:
        return False
    return True


def test_a_wrong_label_is_noticed():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(50, 3)), rng.normal(size=(7, 3))
    squares = np.square(X[:, None] - centers).sum(axis=2)
    check_labels(X, centers, squares.argmin(axis=1), whole=False)
    wrong = np.where(np.arange(50) == 17, squares.argsort(axis=1)[:, 1], squares.argmin(axis=1))
    with pytest.raises(AssertionError, match="row 17"):
        check_labels(X, centers, wrong, whole=False)
    with pytest.raises(AssertionError, match="the first of the nearest"):
        check_labels(np.zeros((1, 1)), np.array([[1.0], [-1.0]]), np.array([1]), whole=True)


def test_labels_against_exact_arithmetic(amount, monkeypatch):
    monkeypatch.setattr(native_engine, "_ONE_THREAD", 0)  # several threads for small problems, too
    sets = [name for name in ("portable", "avx2", "avx512") if is_here(name)]
    seconds = float(os.environ.get("FUZZ_SECONDS", amount(3, 600)))
    end, only = time.monotonic() + seconds, os.environ.get("FUZZ_SEED")
    seed, n_refused = int(only or FIRST), 0
    while time.monotonic() < end or seed < FIRST + 20:
        problem = draw_problem(seed, sets)
        for name, value in problem.native.items():
            monkeypatch.setitem(Native.__init__.__kwdefaults__, name, value)
        try:
            n_refused += not check(problem)
        except Exception as error:
            raise AssertionError(f"FUZZ_SEED={seed} ({problem}): {error}") from error
        if only:
            return
        seed += 1
    assert n_refused <= (seed - FIRST) / 4
    print(f"{seed - FIRST} problems, {n_refused} of them refused")
