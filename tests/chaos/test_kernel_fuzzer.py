"""Random problems: every fold and task of the native engine against NumPy in float64.

A failure names the seed of its problem. To repeat it: FUZZ_SEED=SEED pytest THIS_FILE.
"""

import os
import time
from collections import deque
from dataclasses import replace

import pytest
import torch
from kernel_problems import problem
from kernel_reference import Checks

from lloydformer.engines import Native, instruction_set
from lloydformer.engines.native import engine as native_engine
from lloydformer.engines.native.folds import FOLDS
from lloydformer.engines.native.tasks import TASKS
from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.constrained import BoundedAssignment
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.recombining import Mutation, WardMerging
from lloydformer.plans.relocating import RelocatingIterations

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
FIRST = 20_000
"""Seed of the first problem."""


def is_here(name: str) -> bool:
    try:
        Native(instruction_set=name)
    except ValueError:
        return False
    return True


def check(seed: int) -> set[type]:
    """Compare all kernels on one problem; returns the folds and tasks that have run."""
    given = problem(seed, [name for name in ("portable", "avx2", "avx512") if is_here(name)])
    seen = set()
    with given.engine.open(given.data) as session:
        fold, run = session.fold, session.run
        session.fold = lambda f: seen.add(type(f)) or fold(f)
        session.run = lambda t: seen.add(type(t)) or run(t)
        try:
            Checks(given, session).run()
        except Exception as error:
            about = f"{given.n} x {given.d}, k {given.k}, {given.data.dtype}, {vars(given.engine)}"
            raise AssertionError(f"FUZZ_SEED={seed} ({about}): {error}") from error
    return seen


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.__name__)
def test_a_wrong_summary_is_noticed(fold, monkeypatch):
    """Numbers that are off by a thousandth: the comparison can fail."""
    kernel = FOLDS[fold]

    def wrong(points, given):
        found = kernel.run(points, given)
        if isinstance(found, FarthestPoints):
            return FarthestPoints(*map(off, vars(found).values()))
        return None if found is None else tuple(map(off, found))

    def off(part):
        return part if part.dtype == torch.bool else part + abs(part) / 1000

    monkeypatch.setitem(FOLDS, fold, replace(kernel, run=wrong))
    with pytest.raises(AssertionError, match="FUZZ_SEED"):
        deque(map(check, range(FIRST, FIRST + 20)), maxlen=0)


def test_kernels_against_float64(amount, monkeypatch):
    monkeypatch.setattr(native_engine, "_ONE_THREAD", 0)  # several threads for small problems, too
    if "FUZZ_SEED" in os.environ:
        check(int(os.environ["FUZZ_SEED"]))
        return
    end, seed, seen = time.monotonic() + amount(2, 600), FIRST, set()
    while time.monotonic() < end or seed < FIRST + 20:
        seen |= check(seed)
        seed += 1
    # searches whose draws are compared with the plain algorithms in tests/plans: test_recombining,
    # test_medoid_search; tests/estimators/test_constrained.py compares `BoundedAssignment` with a
    # linear programme
    searches = {RelocatingIterations, WardMerging, Mutation, MedoidMove, BoundedAssignment}
    assert seen >= set(FOLDS) | set(TASKS) - searches
    print(f"{seed - FIRST} problems")
