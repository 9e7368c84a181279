"""Screening changes nothing: with products in int8 and without, every result has the same bits.

`Native(screened=False)` without bounds compares all rows with all centers; it is the reference of
every other engine here. Whole numbers have a truth of their own, by exact arithmetic.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from kernel_problems import SHAPES, outliers

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import Scaling
from lloydformer.engines import Native, instruction_set
from lloydformer.engines.native import engine as native_engine
from lloydformer.plans.assign import NearestCosines, NearestDistances, NearestSums
from lloydformer.plans.means import LloydIterations
from lloydformer.plans.minibatch import MinibatchSums
from lloydformer.plans.seeding import NewSeed, Oversampling, PlusPlusSeeds, Potential

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
DTYPES = [torch.float32, torch.float64]
# Around the sizes of a vector and of a tile, and two at which centers are compared in parts.
FEATURES = (1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 48, 64, 65, 100, 257, 800, 2000)
CENTERS = (1, 2, 3, 8, 31, 32, 33, 63, 64, 65, 128, 129, 200, 400)


def is_here(name: str) -> bool:
    if instruction_set() is None:
        return False
    try:
        Native(instruction_set=name)
    except ValueError:
        return False
    return True


INSTRUCTION_SETS = [name for name in ("portable", "avx2", "avx512") if is_here(name)]


@dataclass(frozen=True)
class Case:
    """Rows, and centers in their coordinates."""

    data: TensorBlocks
    centers: torch.Tensor

    @property
    def k(self) -> int:
        return len(self.centers)


def case(seed: int, *, most_features: int = 300, most_rows: int = 700) -> Case:
    """Returns any data: sizes, scales, outliers, weights, scaled rows, directions."""
    rng = np.random.default_rng([seed, 36])
    dtype = DTYPES[int(rng.integers(2))]
    d = int(rng.choice([d for d in FEATURES if d <= most_features]))
    n = int(rng.choice([rng.integers(1, 60), rng.integers(60, most_rows)]))
    k = min(int(rng.choice(CENTERS)), 3 * n)
    points = SHAPES[rng.integers(len(SHAPES))](rng, n, d)
    if rng.random() < 0.4:
        points[rng.integers(n)] *= 10.0 ** rng.uniform(2, 9)
    if rng.random() < 0.2:
        points *= np.exp(3 * rng.normal(size=(n, 1)))
    kind = rng.choice(["plain", "scaled", "directions"], p=[0.7, 0.15, 0.15])
    return placed(rng, points, dtype, 10.0 ** rng.uniform(-18, 18), k, kind)


def placed(rng, points, dtype, scale, k: int, kind: str = "plain") -> Case:
    """The rows times a factor, as far as their squares stay finite, and centers near some rows."""
    n, d = points.shape
    most = (1e18 if dtype == torch.float32 else 1e150) / np.sqrt(d)
    points = (points + 0.5 * (kind == "directions")) * scale
    points *= min(1.0, most / max(float(np.abs(points).max()), 1e-300))
    rows = torch.from_numpy(points).to(dtype)
    scaling = None
    if kind == "scaled":
        middle, spread = rows.double().mean(dim=0), rows.double().std(dim=0, correction=0)
        scaling = Scaling(middle, spread.clamp(min=max(float(np.abs(points).max()), 1e-30) / 1e3))
    weights = None
    if rng.random() < 0.5:
        weights = torch.from_numpy(10.0 ** rng.uniform(-3, 3, n) * (rng.random(n) < 0.9))
        weights[0] = 1.0
    data = TensorBlocks(
        rows, weights, int(rng.choice([64, 8192])), directions=kind == "directions", scaling=scaling
    )
    centers = data.take(torch.from_numpy(rng.integers(n, size=k))).clone()
    moved = torch.from_numpy(rng.normal(size=(k, d))).to(dtype)
    moved *= centers.std(dim=0, correction=0) * float(rng.choice([0.0, 1e-6, 0.3]))
    return Case(data, (centers + moved).to(dtype).contiguous())


def results(engine: Native, given: Case, n_iter: int = 5) -> dict[str, torch.Tensor]:
    """Everything that screening takes part in, by name."""
    found: dict[str, torch.Tensor] = {}
    with engine.open(given.data) as session:

        def note(name: str, *numbers: torch.Tensor) -> None:
            columns = {c: session.state.column(c).clone() for c in ("labels", "distances")}
            found.update({f"{name}, {column}": values for column, values in columns.items()})
            found.update({f"{name}, {i}": torch.as_tensor(v) for i, v in enumerate(numbers)})

        seed_rows(session, given, note)
        fold = NearestCosines if given.data.directions else NearestDistances
        centers = given.centers
        for step in range(n_iter):
            sums, masses, changed = session.fold(NearestSums(centers))
            note(f"iteration {step}", sums, masses, changed)
            means = sums / masses.clamp(min=1e-300)[:, None]
            if given.data.directions:
                means = sums / sums.norm(dim=1, keepdim=True).clamp(min=1e-300)
            centers = torch.where(masses[:, None] > 0, means.to(centers), centers)
        note("last assignment", *session.fold(fold(centers)))
        layout = given.data.layout
        exact = layout.to_exact_units(layout.to_data_units(centers.double()))
        note("returned centers", *session.fold(fold(centers, exact)))
        note("predict", *predicted(session, exact))
        note("other centers", *session.fold(fold(given.centers)))
        rows = torch.arange(given.data.n_rows).flip(0)
        batch, total = session.run(MinibatchSums(rows, given.centers))
        note("mini-batch", batch.sums, batch.masses, torch.as_tensor(total))
        session.forget()
        if given.k <= given.data.n_rows:
            task = LloydIterations(given.centers.double(), 0.0, n_iter, 0.0, 1.0)
            ran = session.run(task)
            if ran is not None:
                note("one call", ran.centers, torch.tensor(ran.history))
    return found


def predicted(session, exact: torch.Tensor) -> list[torch.Tensor]:
    """The passes of predict and score (`labels`), and of transform (`distances`)."""
    kernels, n = session.points.kernels, session.points.layout.n_rows
    labels, spread = np.zeros(n, np.int32), np.zeros(len(exact))
    returned = exact.contiguous().numpy()
    # The largest square is added up in another order: it only has to be in range.
    finite, _, zero = kernels.run("labels", labels=labels, spread=spread, returned=returned)
    alone = np.zeros(n, np.int32)
    kernels.run("labels", labels=alone, returned=returned)
    assert np.array_equal(alone, labels)
    away = np.zeros((n, len(exact)), session.points.array("distances").dtype)
    kernels.run("distances", out=away, halved=False, returned=returned)
    return [torch.tensor([finite, zero]), *map(torch.from_numpy, (labels, spread, away))]


def seed_rows(session, given: Case, note) -> None:
    """k-means++ by folds, twenty seeds with candidates of each; in one call; and k-means||."""
    rng = np.random.default_rng(given.data.n_rows)
    n, chosen = given.data.n_rows, given.centers[:1]
    for number in range(min(20, given.k)):
        (mass,) = session.fold(NewSeed(chosen.contiguous(), first=number == 0))
        rows = torch.from_numpy(rng.integers(n, size=int(rng.integers(1, 9))))
        candidates = given.data.take(rows).contiguous()
        (left,) = session.fold(Potential(candidates, mass))
        note(f"seed {number}", mass, left)
        best = int(left.argmin()) if number % 4 else 0
        chosen = candidates[best : best + 1]
    k = min(given.k, n)
    if k > 1:
        done = session.run(PlusPlusSeeds(np.array([0]), rng.random((1, k - 1, 4))))
        if done is not None:
            note("seeds in one call", *done)
    (mass, *drawn) = session.fold(Oversampling(given.centers, 0, 5, 3, 0))
    note("oversampling", mass, *drawn)


def same(found: dict[str, torch.Tensor], plain: dict[str, torch.Tensor]) -> None:
    """Equal names and bits."""
    assert list(found) == list(plain)
    for name, values in plain.items():
        assert torch.equal(found[name], values), name


EVERY_WAY = [(screened, bounded) for screened in (True, None) for bounded in (True, False)]


def check(given: Case, isa: str, n_iter: int = 2, ways=((True, True),)) -> None:
    plain = results(Native(bounded=False, screened=False, instruction_set=isa), given, n_iter)
    for screened, bounded in ways:
        engine = Native(bounded=bounded, screened=screened, instruction_set=isa)
        same(results(engine, given, n_iter), plain)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
def test_any_data(isa):
    for seed in range(8):
        check(case(seed, most_features=100, most_rows=300), isa, 4, EVERY_WAY)


@pytest.mark.long
@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
def test_much_more_data(isa):
    for seed in range(1000, 1300):
        check(case(seed, most_features=2000, most_rows=2500), isa, 12, EVERY_WAY)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("n", "d", "k"), [(15, 2000, 150), (97, 70, 400)])
def test_centers_in_several_tiles_and_parts(isa, dtype, n, d, k):
    rng = np.random.default_rng(d)
    check(placed(rng, outliers(rng, n, d), dtype, 1.0, k), isa)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("threads", [1, 3])
def test_bounds_that_screening_builds_are_in_use(isa, threads, monkeypatch):
    """Well separated blobs: after some iterations few rows are looked at, and none is wrong."""
    monkeypatch.setattr(native_engine, "_ONE_THREAD", 0)
    rng = np.random.default_rng(1)
    at = rng.uniform(-5, 5, size=(70, 24))
    points = at[rng.integers(70, size=3000)] + 0.7 * rng.normal(size=(3000, 24))
    points[::1000] *= 1e6
    data = TensorBlocks(torch.from_numpy(points).float())
    start = data.take(torch.arange(1, 71)).contiguous()
    engines = [
        Native(threads, screened=True, instruction_set=isa),
        Native(bounded=False, screened=False, instruction_set=isa),
    ]
    looked_at, runs = [], []
    for engine in engines:
        with engine.open(data) as session:
            centers, seen = start, []
            for _ in range(12):
                sums, masses, changed = session.fold(NearestSums(centers))
                seen += [sums, masses, changed, session.labels()]
                looked_at.append(session.points.kernels.looked_at())
                centers = (sums / masses.clamp(min=1e-300)[:, None]).to(centers)
            seen += [*session.fold(NearestDistances(centers)), session.labels()]
            runs.append(seen)
    assert all(torch.equal(*pair) for pair in zip(*runs, strict=True))
    assert min(looked_at[:12]) < 1000


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_whole_numbers_by_exact_arithmetic(isa, dtype):
    """Python's integers: no rounding anywhere, and the first of equally near centers."""
    for seed, most in enumerate((1, 3, 100, 4000)):
        rng = np.random.default_rng(seed)
        n, d, k = 90, int(rng.integers(1, 12)), int(rng.integers(2, 90))
        points = rng.integers(-most, most + 1, size=(n, d))
        centers = rng.integers(-most, most + 1, size=(k, d))
        points[0] *= 4000 // most
        squares = ((points.astype(object)[:, None] - centers.astype(object)) ** 2).sum(axis=-1)
        truth = [row.index(min(row)) for row in squares.tolist()]
        data = TensorBlocks(
            torch.from_numpy(points).to(dtype), given_origin=torch.zeros(d, dtype=dtype)
        )
        seen = torch.from_numpy(centers).to(dtype)
        for bounded in (True, False):
            with Native(bounded=bounded, screened=True, instruction_set=isa).open(data) as session:
                for fold in (NearestSums(seen), NearestSums(seen), NearestDistances(seen)):
                    session.fold(fold)
                    assert session.labels().tolist() == truth
                _, labels, _, _ = predicted(session, seen.double())
                assert labels.tolist() == truth


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e-22, 1e-18, 1e18])
def test_scales(isa, dtype, scale):
    """Also numbers whose squares vanish, and denormal ones."""
    rng = np.random.default_rng(5)
    check(placed(rng, rng.normal(size=(60, 17)), dtype, scale, 40), isa)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("far", [1e5, 1e9, 1e14, 1e20, 1e30])
def test_one_row_far_away(isa, dtype, far):
    """The others keep their digits, whatever the unit of the copy in int8 is."""
    rng = np.random.default_rng(6)
    points = rng.normal(size=(80, 20))
    points[7] *= far
    given = placed(rng, points, dtype, 1.0, 40)
    near = given.data.take(torch.arange(8, 48)).contiguous()
    check(given, isa)
    check(Case(given.data, near), isa)


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_candidates_at_the_origin(isa, dtype):
    """They have no scale, and rows are infinitely farther away than they are."""
    points = torch.zeros(40, 20, dtype=dtype)
    points[20:] = 1e16 * torch.arange(1, 401, dtype=dtype).reshape(20, 20)
    data = TensorBlocks(points, given_origin=torch.zeros(20, dtype=dtype))
    found = []
    for screened in (True, False):
        with Native(screened=screened, instruction_set=isa).open(data) as session:
            for number in range(12):
                seed = points[20 + number : 21 + number]
                (mass,) = session.fold(NewSeed(seed, first=number == 0))
            for m in (1, 3, 8):
                found += session.fold(Potential(points[:m].contiguous(), mass))
                found += session.fold(NewSeed(points[:1].contiguous(), first=False))
            found += [session.state.column(name).clone() for name in ("labels", "distances")]
    half = len(found) // 2
    assert all(torch.equal(a, b) for a, b in zip(found[:half], found[half:], strict=True))


def test_many_equal_centers(rng):
    """More candidates than a row can have."""
    points = torch.from_numpy(rng.normal(size=(100, 50))).float()
    data = TensorBlocks(points)
    one = data.take(torch.arange(3))
    check(Case(data, one.repeat(60, 1).contiguous()), "")


def test_predict_of_a_fitted_model(rng):
    """At a size that is screened by default: the labels of the fit, and those of the plain way."""
    X = rng.normal(size=(400, 64)).astype(np.float32)
    X[5] *= 1e9
    model = lf.KMeans(70, init=X[:70], n_init=1, max_iter=4).fit(X)
    away = ((X[:, None].astype(float) - model.cluster_centers_.astype(float)) ** 2).sum(axis=-1)
    labels = model.predict(X)
    np.testing.assert_array_equal(labels, away.argmin(axis=1))
    np.testing.assert_array_equal(labels, model.transform(X).argmin(axis=1))
    assert -model.score(X) == pytest.approx(away.min(axis=1).sum(), rel=1e-12)
