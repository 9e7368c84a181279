"""The same bits for any number of threads, the same labels for any instruction set."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

import lloydformer as lf
from lloydformer import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.plans.lower import lower

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
PLANS = {
    "means": lower(recipes.lloyd()),
    "directions": lower(recipes.spherical()),
    "soft": lower(recipes.soft(0.5)),
    "trimmed": lower(recipes.trimmed(0.8)),
    "robust": lower(recipes.robust(0.02)),
    "softmax": lower(recipes.robust(0.5, "softmax")),
    "top": lower(recipes.robust(0.5, TopK(9))),
    "medoids": lower(recipes.medoids(1.0)).with_seed(5),
}
N, D, K = 70_000, 4, 6
"""More than 2^18 numbers, for which several threads are up."""


def problem(plan, dtype, weighted: bool) -> tuple[TensorBlocks, torch.Tensor]:
    """Points about as many middles as there are centers."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, D)) + rng.uniform(-4, 4, size=(K, D))[rng.integers(K, size=N)]
    weights = torch.from_numpy(rng.uniform(0.5, 1.5, size=N)) if weighted else None
    data = TensorBlocks(torch.from_numpy(x).to(dtype), weights, directions=plan.directions)
    return data, data.take(torch.arange(K)).double()


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=PLANS)
def plan(request):
    return PLANS[request.param]


def test_threads_do_not_change_a_bit(course, plan, dtype):
    n_iter = 12 if plan.stops_on == "labels" else 3  # so that bounds are in use
    for weighted in (False, True):
        data, centers = problem(plan, dtype, weighted)
        alone = course(Native(1), data, plan, centers, n_iter)
        for n_threads in (2, 3, 7):
            assert alone.same_bits(course(Native(n_threads), data, plan, centers, n_iter))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
def test_threads_start_with_a_session_and_end_with_it():
    data, _ = problem(PLANS["means"], torch.float32, weighted=False)

    def count() -> int:
        return len(os.listdir("/proc/self/task"))

    before = count()
    with Native(7).open(data) as session:
        assert count() - before == 6  # the calling thread works, too
        assert session.layout.n_rows == N
    assert count() == before


def is_here(name: str) -> bool:
    try:
        Native(instruction_set=name)
    except ValueError:
        return False
    return True


def instruction_sets() -> list[str]:
    """Those that this machine has, the widest last."""
    return [name for name in ("portable", "avx2", "avx512") if is_here(name)]


def test_the_widest_instruction_set_is_the_default():
    assert instruction_sets()[0] == "portable"
    assert instruction_set() == instruction_sets()[-1]


def test_instruction_sets_agree(course, plan, dtype):
    """Labels at each step; sums differ by their order only."""
    data, centers = problem(plan, dtype, weighted=True)
    n_iter = 12 if plan.stops_on == "labels" else 3
    one, *others = (
        course(Native(instruction_set=name), data, plan, centers, n_iter)
        for name in instruction_sets()
    )
    for other in others:
        for a, b in zip(one.seen, other.seen, strict=True):
            close = 1e-12 if dtype == torch.float64 else 1e-5
            torch.testing.assert_close(a.centers, b.centers, rtol=close, atol=close)
            if dtype == torch.float64:
                assert torch.equal(a.labels, b.labels)


def test_an_instruction_set_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="sse9"):
        Native(instruction_set="sse9")


ALLOWED = """
import torch
from threadpoolctl import threadpool_limits
from lloydformer.engines.thread_pool import allowed_threads
print(allowed_threads())
with threadpool_limits(1):
    print(allowed_threads())
torch.set_num_threads(1)
print(allowed_threads())
"""


@pytest.mark.long
def test_limits_of_threadpoolctl_and_of_torch_hold():
    """In a process that may use two threads."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", ALLOWED],
        capture_output=True, text=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    assert done.stdout.split() == ["2", "1", "1"]


def test_limits_here():
    with threadpool_limits(1):
        assert allowed_threads() == 1


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.long), "threading"])
def test_fits_in_workers(backend):
    """Small fits, two at a time, after this process has had threads of its own."""
    x = np.random.default_rng(0).normal(size=(66_000, 4)).astype(np.float32)
    models = [lf.KMeans(3, engine="native", random_state=seed, max_iter=3) for seed in range(4)]
    alone = [lf.KMeans(**m.get_params()).fit(x) for m in models]
    together = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(m.fit)(x) for m in models)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.labels_, other.labels_)
        assert one.inertia_ == other.inertia_
