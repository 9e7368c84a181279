"""Screening changes no bit of relocations, searches for medoids and seeds."""

import numpy as np
import pytest
import torch

from lloydformer import KMedoids
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES, Native, instruction_set
from lloydformer.plans.relocating import ClusterErrors, NoiseDraws, Relocation, TwoNearest
from lloydformer.plans.seeding import PlusPlusSeeds

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
SETS = ["portable", "avx2", "avx512"]
DTYPES = [torch.float32, torch.float64]


def mixture(rng, n, d, k):
    return rng.normal(size=(n, d)) + rng.uniform(-6, 6, size=(k, d))[rng.integers(k, size=n)]


def uniform(rng, n, d, k):
    return rng.uniform(size=(n, d))


def grid(rng, n, d, k):
    """Whole numbers, full of ties."""
    return rng.integers(-4, 5, size=(n, d)).astype(float)


def duplicated(rng, n, d, k):
    few = mixture(rng, max(k // 2, n // 20), d, k)
    return few[rng.integers(len(few), size=n)]


def outliers(rng, n, d, k):
    points = mixture(rng, n, d, k)
    points[rng.integers(n, size=3)] *= 1e6
    return points


def farther(rng, n, d, k):
    """Rows so far away that they are not screened."""
    points = mixture(rng, n, d, k)
    points[rng.integers(n, size=3)] *= 1e16
    return points


def tails(rng, n, d, k):
    return np.exp(2 * rng.normal(size=(n, d)))


def tiny(rng, n, d, k):
    """Products of float32 underflow."""
    return 1e-21 * mixture(rng, n, d, k)


KINDS = [mixture, uniform, grid, duplicated, outliers, farther, tails, tiny]


def engines(isa: str = "") -> list[Native]:
    if isa and SETS.index(isa) > SETS.index(instruction_set()):
        pytest.skip(f"this machine does not have {isa}")
    return [Native(1, screened=screened, instruction_set=isa) for screened in (False, True)]


def problem(kind, seed: int, dtype, k: int, n: int = 700) -> tuple[TensorBlocks, torch.Tensor]:
    """Blocks and centers, some of them twice; every second problem has weights, some zero."""
    rng = np.random.default_rng([seed, k])
    d = int(rng.integers(1, 40))
    points = torch.from_numpy(kind(rng, n, d, k)).to(dtype)
    weights = rng.uniform(0, 2, size=n) * (rng.random(n) < 0.9) if seed % 2 else None
    data = TensorBlocks(points, None if weights is None else torch.from_numpy(weights))
    centers = data.take(torch.from_numpy(rng.choice(n, size=k, replace=seed % 3 == 0))).double()
    if seed % 4 > 1:  # between two rows: ties, and centers that are no rows
        centers = (centers + centers.flip(0)) / 2
    return data, centers


def same(one, other) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def two_nearest(engine, data, centers):
    """Everything that the two folds find."""
    with engine.open(data) as session:
        sums = session.fold(TwoNearest(centers.to(data.dtype)))
        labels, second = session.labels().clone(), session.state.column("second").clone()
        errors = session.fold(ClusterErrors(centers.to(data.dtype)))
        return [*sums, labels, second, *errors, session.state.column("distances").clone()]


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_two_nearest_centers(kind, dtype, isa):
    plain, screened = engines(isa)
    for seed, k in enumerate([2, 3, 20, 65, 130, 300]):
        data, centers = problem(kind, seed, dtype, k)
        assert same(two_nearest(plain, data, centers), two_nearest(screened, data, centers))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_nearest_of_many_features(dtype):
    """Centers in parts, as they do not stay in the cache together."""
    rng = np.random.default_rng(0)
    points = torch.from_numpy(mixture(rng, 400, 2100, 150)).to(dtype)
    data = TensorBlocks(points)
    centers = data.take(torch.arange(150)).double() + 0.1
    plain, screened = engines()
    assert same(two_nearest(plain, data, centers), two_nearest(screened, data, centers))


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_relocations(kind, dtype, isa):
    for seed, k in enumerate([3, 30, 70]):
        data, centers = problem(kind, seed, dtype, k)
        found = []
        for engine in engines(isa):
            with engine.open(data) as session:
                found.append(session.run(Relocation(centers, 4, NoiseDraws(seed, 0, 3))))
        plain, screened = found
        assert torch.equal(plain.centers, screened.centers)
        assert (plain.before, plain.after) == (screened.before, screened.after)


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [mixture, uniform, grid, duplicated, outliers, tails])
def test_searches_for_medoids(kind, dtype, metric, isa, monkeypatch):
    rng = np.random.default_rng(2)
    # Few features, so that distances are not kept in a matrix.
    X = kind(rng, 2300, 7, 12).astype(dtype) + (metric == "cosine") * dtype(0.1)
    fits = []
    for engine in engines(isa):
        monkeypatch.setitem(ENGINES, "native", lambda engine=engine: engine)
        model = KMedoids(12, metric=metric, effort="low", random_state=0, engine="native")
        fits.append(model.fit(X))
    one, other = fits
    np.testing.assert_array_equal(one.medoid_indices_, other.medoid_indices_)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert (one.inertia_, one.n_iter_) == (other.inertia_, other.n_iter_)
    np.testing.assert_array_equal(one.objective_history_, other.objective_history_)


@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind, isa):
    """Also with rows so far away that no candidate can be ruled out; they are no candidates."""
    for seed in range(4):
        points = problem(kind, seed, torch.float32, 30)[0].points
        data = TensorBlocks(points, (points.abs().amax(dim=1) < 1e12).double())
        draws = np.random.default_rng(seed).random((1, 29, 5))
        found = []
        for engine in engines(isa):
            with engine.open(data) as session:
                found.append(session.run(PlusPlusSeeds(np.array([1]), draws)))
        assert same(*found)
