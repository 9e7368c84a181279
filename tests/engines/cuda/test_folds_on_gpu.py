"""Each fold that kernels of a GPU run beside the plain fold on the CPU."""

import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import leaf_rows
from lloydformer.engines.chunked import Chunked, ChunkedSession
from lloydformer.plans.assign import NearestDistances
from lloydformer.plans.medoids import MedoidDraw
from lloydformer.plans.relocating import (
    ClusterErrors,
    Halves,
    NoiseDraws,
    PointsByDistance,
    SecondNearestSums,
    TwoNearest,
)
from lloydformer.plans.robust import (
    HighestScores,
    RobustSums,
    SoftmaxWeights,
    SparsemaxWeights,
    SumsAboveThreshold,
    find_thresholds,
)
from lloydformer.plans.seeding import Oversampling
from lloydformer.plans.soft import SoftSums
from lloydformer.plans.symmetric import NearestCosts
from lloydformer.plans.trimmed import TrimmedSums, find_radii, target_masses

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]

SIZES = [(1, 1, 1), (33, 3, 2), (3001, 2, 5), (5000, 32, 10), (2003, 64, 100), (1500, 200, 17),
         (700, 256, 90), (40_000, 31, 3)]  # fmt: skip
DTYPES = [torch.float32, torch.float64]


def whole(x, centers):
    """Coordinates that are multiples of 1/8, so that distances are exact in both precisions."""
    return (8 * x).round() / 8, (8 * centers).round() / 8


class Pair:
    """The same points opened on the CPU, by plain folds, and on the GPU."""

    def __init__(self, n, d, k, dtype, weighted):
        drawn = torch.Generator().manual_seed(n + d + k)
        x = 3 * torch.randn(n, d, generator=drawn) + 5
        self.x, self.centers = (part.to(dtype) for part in whole(x, x[:k]))
        weights = None
        if weighted:
            weights = torch.randint(0, 4, (n,), generator=drawn).double()
            weights[:k] = 1  # every cluster has some
        self.weights, self.k = weights, k

    def opened(self, device):
        from lloydformer.engines.cuda.engine import Cuda

        x = self.x.to(device)
        weights = None if self.weights is None else self.weights.to(device)
        leaf, origin = leaf_rows(x.device, x.shape[1], self.k), torch.full_like(x[0], 5.0)
        blocks = TensorBlocks(x, weights, leaf, origin)
        return (Chunked() if device == "cpu" else Cuda()).open(blocks)

    def both(self, ask):
        """What `ask(session, centers)` finds: on the CPU, on the GPU, and on the GPU again."""
        found = []
        for device in ("cpu", "cuda", "cuda"):
            with self.opened(device) as session:
                centers = session.layout.to_row_units(self.centers).to(self.x.dtype)
                summary, state = ask(session, centers), session.state
                columns = [state.get(name) for name in ("labels", "trimmed")]
                parts = [part for part in (*summary, *columns) if part is not None]
                found.append([part.detach().cpu().clone() for part in parts])
        return found


def agree(pair, ask, rtol=1e-9):
    here, there, again = pair.both(ask)
    for expected, found, repeated in zip(here, there, again, strict=True):
        assert torch.equal(found, repeated)
        if expected.numel() == 0:
            assert found.numel() == 0
            continue
        scale = expected.double().abs().max().nan_to_num(1.0)
        torch.testing.assert_close(
            found.double(), expected.double(), rtol=rtol, atol=rtol * max(scale.item(), 1e-9)
        )


@pytest.fixture
def kernels_run(monkeypatch):
    """No plain fold may run on the GPU."""
    plain = ChunkedSession.fold

    def fold(self, fold):
        assert self.layout.device.type == "cpu", f"{type(fold).__name__} ran without a kernel"
        return plain(self, fold)

    monkeypatch.setattr(ChunkedSession, "fold", fold)


parametrized = pytest.mark.parametrize(
    ("size", "dtype", "weighted"),
    [(size, dtype, weighted) for size in SIZES for dtype in DTYPES for weighted in (False, True)],
)


def without_level(summary):
    level, sums, masses, *rest = summary
    return level.exp()[:, None] * sums, level.exp() * masses, *rest


@parametrized
@pytest.mark.usefixtures("kernels_run")
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_shares(size, dtype, weighted, gamma):
    # scores of the plain fold are rounded to the precision of the rows
    agree(
        Pair(*size, dtype, weighted),
        lambda session, centers: without_level(session.fold(SoftSums(centers, gamma))),
        rtol=1e-5 if dtype == torch.float32 else 1e-9,
    )


@parametrized
@pytest.mark.usefixtures("kernels_run")
@pytest.mark.parametrize("keep", [0.5, 0.95, 1.0])
def test_trimmed(size, dtype, weighted, keep):

    def ask(session, centers):
        masses = session.fold(NearestDistances(centers))[1]
        radius = find_radii(session, target_masses(masses, keep), centers.dtype)
        return radius, *session.fold(TrimmedSums(radius)), *session.fold(TrimmedSums(radius))

    agree(Pair(*size, dtype, weighted), ask)


@parametrized
@pytest.mark.usefixtures("kernels_run")
def test_robust(size, dtype, weighted):
    gamma = 0.03

    def ask(session, centers):
        k = len(centers)
        session.fold(NearestDistances(centers))
        best, at_best = session.fold(HighestScores(gamma, k))
        above = session.fold(SumsAboveThreshold(gamma, best - 0.5))
        tau = find_thresholds(session, gamma, k)
        sparse = session.fold(RobustSums(SparsemaxWeights(gamma, tau), k))
        radius = torch.full_like(best, 4.0 * size[1])
        exponential = session.fold(RobustSums(SoftmaxWeights(gamma, best, radius), k))
        return best, at_best, *above, *sparse, *exponential

    agree(Pair(*size, dtype, weighted), ask, rtol=1e-7)


def test_a_soft_cluster_without_shares_is_left_to_the_plain_fold():
    pair = Pair(500, 4, 3, torch.float32, False)
    pair.centers[2] = 4000.0
    agree(pair, lambda session, centers: session.fold(SoftSums(centers, 50.0)), rtol=1e-4)


@parametrized
@pytest.mark.usefixtures("kernels_run")
def test_splits(size, dtype, weighted):
    draws = NoiseDraws(seed=2**40 + 3, layer=5, n_draws=3)

    def ask(session, centers):
        known = session.fold(ClusterErrors(centers))
        place = torch.full((len(centers),), -1, device=centers.device)
        chosen = known[2].sort(descending=True, stable=True).indices[:3]
        place[chosen] = torch.arange(len(chosen), device=centers.device)
        score, rows, points = session.fold(PointsByDistance(place, len(chosen), draws))
        halves = session.fold(Halves(place, points.to(centers.dtype)))
        return *known, score.nan_to_num(neginf=-1e9), rows, points, *halves

    agree(Pair(*size, dtype, weighted), ask)


@parametrized
@pytest.mark.usefixtures("kernels_run")
def test_removals(size, dtype, weighted):

    def ask(session, centers):
        if len(centers) < 2:
            return ()
        known = session.fold(TwoNearest(centers))
        candidates = torch.arange(0, len(centers), 2, device=centers.device)[:64]
        parted = session.fold(SecondNearestSums(candidates, len(centers)))
        return *known, *parted, session.state.column("second")

    agree(Pair(*size, dtype, weighted), ask)


@parametrized
@pytest.mark.usefixtures("kernels_run")
@pytest.mark.parametrize("separation", [None, 100.0])
def test_draws_of_medoids(size, dtype, weighted, separation):

    def ask(session, centers):
        first = session.fold(MedoidDraw(centers, separation, 7, 2))
        return *first, *session.fold(MedoidDraw(first[3].to(centers.dtype), separation, 7, 3))

    agree(Pair(*size, dtype, weighted), ask)


@parametrized
@pytest.mark.usefixtures("kernels_run")
def test_nearest_costs(size, dtype, weighted):
    agree(
        Pair(*size, dtype, weighted),
        lambda session, centers: session.fold(NearestCosts(centers)),
    )


@parametrized
@pytest.mark.usefixtures("kernels_run")
def test_oversampling(size, dtype, weighted):

    def ask(session, centers):
        first = session.fold(Oversampling(centers[:1], 0, 20, 2**33 + 5, 0))
        second = session.fold(Oversampling(centers[1:], 1, 20, 2**33 + 5, 1))
        return *first, *second, *session.fold(Oversampling(centers[:0], len(centers), 9, 3, 2))

    agree(Pair(*size, dtype, weighted), ask)
