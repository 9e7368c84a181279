"""Rows and centers that are not finite: labels may be any center, but are one of them.

Estimators refuse such rows. Another thread may write them while a fit runs.
"""

import numpy as np
import pytest
import torch
from scipy import sparse

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.assign import NearestDistances, NearestSums
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.recombining import WardMerging
from lloydformer.plans.soft import SoftSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
SETS = ("portable", "avx2", "avx512")
STRANGE = [np.nan, -np.nan, np.inf, -np.inf, 3e38, 1e-45]


@pytest.fixture(params=SETS)
def isa(request) -> str:
    if SETS.index(request.param) > SETS.index(instruction_set()):
        pytest.skip(f"{request.param}: this machine does not have it")
    return request.param


def assert_labels(session, k: int) -> None:
    labels = session.labels()
    assert labels.min() >= 0
    assert labels.max() < k


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 2, 17, 70])
@pytest.mark.parametrize("strange", STRANGE)
def test_sparse_rows_have_labels(isa, dtype, k, strange):
    """The end of the process before: a label of -1, or of a center that only fills up a vector."""
    rng = np.random.default_rng(0)
    matrix = sparse.random(300, 9, 0.5, format="csr", random_state=0, dtype=dtype)
    finite = torch.from_numpy(rng.normal(size=(k, 9)).astype(dtype))
    for changed in ("centers", "one center", "values", "some values"):
        centers, values = finite.clone(), matrix.copy()
        with Native(2, instruction_set=isa).open(SparseBlocks(values, leaf=32)) as session:
            session.fold(NearestSums(centers))
            if "center" in changed:
                centers[slice(1) if changed == "one center" else slice(None)] = strange
            else:
                values.data[:: 5 if changed == "some values" else 1] = strange
            for fold in (NearestSums, NearestDistances):
                session.fold(fold(centers))
                assert_labels(session, k)
            session.fold(SoftSums(centers, 1.0))
            assert_labels(session, k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 7, 40])
@pytest.mark.parametrize("strange", STRANGE)
def test_dense_rows_have_labels(isa, dtype, k, strange):
    """With bounds, whose groups of centers have unused places."""
    points = torch.randn(3000, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    start = points[:k].clone()
    for step in (1, 7):
        rows, centers = points.clone(), start.clone()
        with Native(2, instruction_set=isa).open(TensorBlocks(rows)) as session:
            for _ in range(4):
                sums, masses, *_ = session.fold(NearestSums(centers))
                centers = (sums / masses.clamp(min=1)[:, None]).to(dtype)
            rows[::step] = strange
            for given in (centers, torch.full_like(centers, strange), centers):
                session.fold(NearestSums(given))
                assert_labels(session, k)
                session.fold(NearestDistances(given))
                assert_labels(session, k)


@pytest.mark.parametrize("strange", STRANGE)
def test_as_many_centers_are_left_as_are_wanted(isa, strange):
    """Merging wrote behind its result where no pair of centers has a finite cost."""
    centers = torch.randn(12, 3, dtype=torch.float64)
    centers[3:] = strange * (1e300 if abs(strange) > 1 else 1)
    with Native(1, instruction_set=isa).open(TensorBlocks(torch.randn(50, 3))) as session:
        merged = session.run(WardMerging(centers, torch.ones(12, dtype=torch.float64), 4))
    assert merged.shape == (4, 3)


@pytest.mark.parametrize("strange", STRANGE)
def test_medoids_are_rows(isa, strange):
    """A list of rows without a member had units of no length: a division by zero."""
    rows = torch.randn(400, 3)
    with Native(2, instruction_set=isa).open(TensorBlocks(rows)) as session:

        def move(name: str, medoids: torch.Tensor, **arguments) -> torch.Tensor:
            _, _, _, found = session.run(MedoidMove(name, medoids, arguments))
            assert found.min() >= 0
            assert found.max() < 400
            return found

        medoids = move("begin", torch.arange(6), metric="sqeuclidean")
        rows[::3] = strange
        rows[200:] = strange
        for layer in range(5):
            medoids = move("descend", medoids, rounds=5, slack=0.0)
            medoids = move("exchange", medoids, seed=0, layer=layer)
            medoids = move("relocate", medoids, seed=0, layer=layer, moved=2, draws=3, slack=0.0)
        move("sweep", medoids, reach=16, most=1000)
