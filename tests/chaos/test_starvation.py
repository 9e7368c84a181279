"""Threads that cannot start, and memory that ends: an exception or a result, nothing else."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from lloydformer.engines import instruction_set

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or instruction_set() is None,
    reason="limits are set by calls of glibc, and the kernels must be built",
)
ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "starved.py"
CENTERS = (
    "KMeans", "SoftKMeans", "SphericalKMeans", "TrimmedKMeans", "RobustKMeans", "KMedoids",
    "RelocatingKMeans",
)  # fmt: skip
ESTIMATORS = (
    *CENTERS, "LearnedKMeans", "CircuitClusterer", "GaussianMixture", "BernoulliMixture",
    "PoissonMixture",
)  # fmt: skip
ENGINES = ("native", "chunked")


def outcomes(*cases: str, omp: str = "8", timeout: float = 90) -> dict[str, str]:
    """What each case came to; the process must end by itself, with status 0."""
    environment = {**os.environ, "OMP_NUM_THREADS": omp, "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, str(SCRIPT), *cases]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired as waited:
        raise AssertionError(f"a wait without end after {waited.stdout!r}") from None
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert list(found) == list(cases)
    return found


def check_results(found: dict[str, str]) -> None:
    """Fits that came to a result came to the same one, whatever they ran with."""
    for estimator in ESTIMATORS:
        for engine in ENGINES:
            fits = [
                outcome
                for case, outcome in found.items()
                if case.endswith(f":{estimator}:{engine}") and not case.startswith("wide")
            ]
            assert len({outcome for outcome in fits if outcome.startswith("result")}) <= 1, found


@pytest.mark.long
def test_missing_threads_and_memory_end_in_a_result_or_an_exception(amount):
    """No new threads; then eight threads with 20 to 200 MB of address space left."""
    estimators = ESTIMATORS[: amount(1, len(ESTIMATORS))]
    pairs = [f"{estimator}:{engine}" for estimator in estimators for engine in ENGINES]
    space = range(20, 201, amount(60, 10))
    cases = [f"threads:{pair}" for pair in pairs]
    cases += [f"memory:{extra}:{pair}" for extra in space for pair in pairs]
    cases += [f"pool:{extra}" for extra in (4, 20, 40, 70)]
    cases += [f"iterations:{estimator}" for estimator in CENTERS]
    # Last, as they start threads too: a stack that is left over would let a pool above start one.
    wide = CENTERS[: amount(1, len(CENTERS))]
    cases += [f"wide:{estimator}:{engine}" for estimator in wide for engine in ENGINES]
    found = outcomes(*cases, timeout=amount(90, 900))
    check_results(found)
    for case, outcome in found.items():
        assert outcome.startswith("result") or case.startswith("memory"), (case, outcome)
    started = [int(found[f"pool:{extra}"].split()[1]) for extra in (4, 20, 40, 70)]
    assert started[0] == 0
    assert 0 < started[1] < started[2] <= 7
    # In a process of its own: fits before it leave memory that a kernel could take.
    assert int(outcomes("failure")["failure"].split()[1]) > 0


def test_on_one_core(amount):
    """As most tests run: torch starts no threads at all."""
    if not amount(0, 1):
        pytest.skip("make chaos runs it")
    space = [f"memory:{extra}" for extra in range(20, 201, 30)]
    cases = [f"{s}:{e}:{engine}" for s in space for e in ESTIMATORS for engine in ENGINES]
    check_results(outcomes(*cases, omp="1", timeout=900))
