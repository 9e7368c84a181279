"""Kernels for CSR matrices: as a reference in float64 says, and as the dense kernels."""

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer import recipes
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sparse_blocks import SparseBlocks, canonicalise_csr
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.assign import Moments, NearestDistances, NearestSums
from lloydformer.plans.lower import lower
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.seeding import NewSeed, Potential
from lloydformer.plans.soft import SoftSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
SETS = ("portable", "avx2", "avx512")
SHAPES = {
    "text": (300, 200, 0.05, 7),
    "one column": (90, 1, 0.6, 3),
    "all zeros": (50, 6, 0.0, 3),
    "full": (70, 9, 1.0, 5),
    "wide": (40, 700, 0.02, 33),
    "many centers": (150, 30, 0.2, 140),
}


@pytest.fixture(params=SETS)
def isa(request) -> str:
    if SETS.index(request.param) > SETS.index(instruction_set()):
        pytest.skip(f"{request.param}: this machine does not have it")
    return request.param


def drawn(rng, shape: str, dtype: str, index: str) -> sparse.csr_matrix:
    """Rows as SciPy allows them: some empty, some zeros stored, unsorted, entries stored twice."""
    n, d, density, _ = SHAPES[shape]
    counts = rng.binomial(d, density, size=n)
    counts[rng.random(n) < 0.1] = 0
    starts = np.concatenate([[0], counts.cumsum()])
    columns = rng.integers(0, d, size=starts[-1])
    values = rng.normal(size=starts[-1]) * (rng.random(starts[-1]) < 0.9)
    matrix = sparse.csr_matrix((values.astype(dtype), columns, starts), shape=(n, d))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def opened(rng, shape: str, dtype: str, index: str, directions: bool = False):
    """Blocks, the same rows as an array in float64, weights, and centers near some of them."""
    data = canonicalise_csr(drawn(rng, shape, dtype, index))
    weights = rng.integers(0, 3, size=data.shape[0]).astype(float)
    rows = data.toarray().astype(np.float64)
    if directions:
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    k = SHAPES[shape][3]
    centers = rows[rng.integers(len(rows), size=k)] + 0.1 * rng.normal(size=(k, data.shape[1]))
    blocks = SparseBlocks(data, torch.from_numpy(weights), leaf=32, directions=directions)
    return blocks, rows, weights, centers.astype(dtype)


def squares(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((rows[:, None] - centers[None].astype(np.float64)) ** 2).sum(axis=2)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("directions", [False, True])
def test_kernels_as_in_float64(isa, index, dtype, directions):
    rng = np.random.default_rng(0)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    for shape in SHAPES:
        blocks, rows, weights, centers = opened(rng, shape, dtype, index, directions)
        away = squares(rows, centers)
        with Native(2, instruction_set=isa).open(blocks) as session:
            for turn in range(3):
                sums, masses, _ = session.fold(NearestSums(torch.from_numpy(centers)))
                labels = session.labels().numpy()
                least = away[np.arange(len(rows)), labels]
                tie = 1e-6 if dtype == "float32" and directions else 1e-12
                assert (least <= away.min(axis=1) + tie * (1 + away.max())).all(), (shape, turn)
                belongs = np.eye(len(centers))[labels] * weights[:, None]
                np.testing.assert_allclose(sums, belongs.T @ rows, **close)
                np.testing.assert_array_equal(masses, belongs.sum(axis=0))
                centers = centers + (0.2 * rng.normal(size=centers.shape)).astype(dtype)
                away = squares(rows, centers)
            inertia, _ = session.fold(NearestDistances(torch.from_numpy(centers)))
            np.testing.assert_allclose(inertia, weights @ away.min(axis=1), **close)
            seeds = centers[:3]
            for number, seed in enumerate(seeds[:2]):
                session.fold(NewSeed(torch.from_numpy(seed[None]), first=number == 0))
            before, after = away[:, :2].min(axis=1), np.minimum(away[:, 2], away[:, :2].min(axis=1))
            stored = session.state.column("distances").numpy()
            np.testing.assert_allclose(stored, before, **close)
            potential = Potential(torch.from_numpy(seeds[2:]), torch.tensor(weights @ before))
            np.testing.assert_allclose(session.fold(potential)[0][0], weights @ after, **close)
            found = session.fold(Moments())
            there, norms = weights > 0, (rows**2).sum(axis=1)
            np.testing.assert_allclose(found[0], weights @ norms, **close)
            assert found[1] == there.sum()
            np.testing.assert_allclose(found[2], there @ norms, **close)
            np.testing.assert_allclose(found[3], there @ rows, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ties_go_to_the_first_center(isa, dtype):
    """Rows half-way between centers, and centers twice; exactly, and too close for float32."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-2, 3, size=(400, 12)) * (rng.random((400, 12)) < 0.4)
    centers = np.repeat(rng.integers(-2, 3, size=(20, 12)), 2, axis=0).astype(np.float64)
    nudged = centers * (1 + 2.0**-20 * rng.integers(-1, 2, size=centers.shape))
    for some in (centers, nudged):
        given = torch.from_numpy(some).to(dtype)
        data = SparseBlocks(sparse.csr_matrix(rows.astype(str(dtype).removeprefix("torch."))))
        with Native(1, instruction_set=isa).open(data) as session:
            session.fold(NearestSums(given))
            wanted = squares(rows, given.numpy()).argmin(axis=1)
            np.testing.assert_array_equal(session.labels(), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_labels_of_the_dense_kernels(dtype):
    """On the same numbers, seen from the same origin, also where they are large beside the gaps."""
    rng = np.random.default_rng(2)
    rows = (1000 + rng.normal(size=(2000, 40))) * (rng.random((2000, 40)) < 0.2)
    points = torch.from_numpy(rows).to(dtype)
    centers = points[:25] + torch.from_numpy(1e-3 * rng.normal(size=(25, 40))).to(dtype)
    dense = TensorBlocks(points, given_origin=torch.zeros(40, dtype=dtype))
    found = []
    for data in (dense, SparseBlocks(sparse.csr_matrix(points.numpy()))):
        with Native(1).open(data) as session:
            session.fold(NearestDistances(centers))
            found.append((session.labels(), session.state.column("distances").clone()))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1], rtol=2e-5, atol=0)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shares_as_in_float64(isa, index, dtype):
    rng, gamma = np.random.default_rng(4), 0.3
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    for shape in SHAPES:
        blocks, rows, weights, centers = opened(rng, shape, dtype, index)
        away = squares(rows, centers)
        shares = np.exp(-gamma * (away - away.min(axis=1, keepdims=True)))
        total = shares.sum(axis=1, keepdims=True)
        shares *= weights[:, None] / total
        energy = weights @ (away.min(axis=1) - np.log(total[:, 0]) / gamma)
        with Native(1, instruction_set=isa).open(blocks) as session:
            _, *found = session.fold(SoftSums(torch.from_numpy(centers), gamma))
        wanted = shares.T @ rows, shares.sum(axis=0), energy
        for value, expected in zip(found[:3], wanted, strict=True):
            np.testing.assert_allclose(value, expected, **close)


PLANS = {
    "means": lower(recipes.lloyd()),
    "directions": lower(recipes.spherical()),
    "soft": lower(recipes.soft(0.5)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PLANS)
def test_threads_do_not_change_a_bit_of_sparse_rows(course, name, dtype):
    """With more than 2^18 entries, for which several threads are up."""
    rng, plan, (n, d, count, k) = np.random.default_rng(3), PLANS[name], (15_000, 50, 20, 9)
    columns = rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)[:, :count].ravel()
    values, starts = rng.normal(size=n * count).astype(dtype), np.arange(0, n * count + 1, count)
    matrix = canonicalise_csr(sparse.csr_matrix((values, columns, starts), shape=(n, d)))
    for weights in (None, torch.from_numpy(rng.uniform(0.5, 1.5, size=n))):
        data = SparseBlocks(matrix, weights, leaf=1024, directions=plan.directions)
        centers = data.take(torch.arange(k)).double()
        alone = course(Native(1), data, plan, centers, 6)
        for n_threads in (2, 3):
            assert alone.same_bits(course(Native(n_threads), data, plan, centers, 6))
        if name == "soft":
            continue
        found = [in_one_call(Native(n), data, plan, centers) for n in (1, 2, 3)]
        assert found[1:] == found[:1] * 2


def in_one_call(engine, data, plan, centers):
    """Centers, objectives and labels after six iterations of one call."""
    with engine.open(data) as session:
        ran = plan.iterate(session, centers, 0.0, 6)
        return ran.centers.tolist(), ran.history, session.labels().tolist()


def test_ctrl_c_between_two_calls_keeps_the_running_start(monkeypatch):
    """A call of large data has few iterations; here one."""
    rng = np.random.default_rng(5)
    matrix = sparse.random(400, 30, 0.2, format="csr", random_state=6)
    init, iterate, calls = rng.random((6, 30)), MeansPlan.iterate, []

    def interrupted(plan, *arguments):
        calls.append(iterate(plan, *arguments))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr("lloydformer.engines.native.tasks._PRODUCTS", 1)
    monkeypatch.setattr(MeansPlan, "iterate", interrupted)
    model = lf.KMeans(6, init=init, n_init=1, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(matrix)
    assert [len(ran.history) for ran in calls] == [1, 1, 1]
    assert model.n_iter_ == 2
    np.testing.assert_allclose(model.cluster_centers_, calls[1].centers)
