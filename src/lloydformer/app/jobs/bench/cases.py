"""The cases of each question, and the points that they are made of."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from lloydformer.app.jobs.bench.measure import BenchCase, BenchProblem
from lloydformer.data.numpy_files import read_npz

Size = tuple[int, int, int]  # n, d, k
Draw = Callable[[int, int, int, int], np.ndarray]  # of n, d, k and the seed

# The question "iteration": from two features to 128, and from 5 centers to 1000.
SIZES = (
    (1_000_000, 2, 5),
    (200_000, 32, 10),
    (200_000, 32, 100),
    (100_000, 128, 100),
    (100_000, 128, 1000),
    (1_000_000, 16, 64),
)

# The question "large_k": the matrix product of points and centers dominates.
MANY = (
    (100_000, 128, 1000),
    (100_000, 64, 1000),
    (50_000, 256, 500),
    (20_000, 784, 1000),
    (50_000, 256, 4000),
)

# The question "seeding": whole fits, in which greedy k-means++ takes more time than the descent.
SEEDED = ((100_000, 128, 1000), (200_000, 32, 300), (1_000_000, 16, 100))

# The question "predict", beside a million rows.
PREDICTED = ((100_000, 128, 1000), (20_000, 784, 1000), (50_000, 256, 4000))

# The question "sparse": n, d, numbers in a row, k.
SPARSE = ((20_000, 10_000, 50, 20), (200_000, 2_000, 20, 20), (200_000, 2_000, 20, 100))

# The question "convergence", and a real data set of about d columns for each size.
CONVERGING = {
    (1_000_000, 16, 64): "pendigits",
    (500_000, 8, 256): "shuttle",
    (200_000, 32, 500): "puma32h",
    (100_000, 64, 1000): "optdigits",
}

# The question "tails": each kind of rows has sizes of few and of many features and centers. The
# largest takes about a second per fit, so that the whole question takes minutes.
TAIL_SIZES = ((100_000, 2, 10), (50_000, 20, 100), (20_000, 128, 1000))
WIDE_SIZES = ((100_000, 20, 10), (20_000, 512, 100))
FAR_SIZES = ((100_000, 2, 10), (50_000, 128, 100), (20_000, 512, 1000))

# Real data sets with heavy tails, and the numbers of centers.
TAILED = ("eeg-eye-state", "mc1", "jm1", "page-blocks", "shuttle")
TAILED_CENTERS = (10, 100)

# Means of a mixture are uniform in [-3, 3] in each feature; its noise has deviation 1.
BOX = 3.0

# Standard deviation of the noise added to a repeated row, in those of its column: copies differ,
# and clusters stay where they are.
JITTER = 0.05

# Rows filled at a time; bounds temporary memory.
_CHUNK = 1 << 18


def iteration(seed: int) -> list[BenchCase]:
    """Return fits of 20 iterations, on data where bounds skip much work, some, and little."""
    kinds = {"mixture": draw_mixture, "close mixture": draw_close_mixture, "noise": draw_noise}
    return _sized_cases(kinds, SIZES, seed, max_iter=20, tol=0.0)


def large_k(seed: int) -> list[BenchCase]:
    """Return fits of 20 iterations with many centers, and single passes without bounds."""
    kinds = {"close mixture": draw_close_mixture, "noise": draw_noise}
    fits = _sized_cases(kinds, MANY, seed, max_iter=20, tol=0.0)
    return fits + _sized_cases({"one pass": draw_close_mixture}, MANY, seed, "pass")


def seeding(seed: int) -> list[BenchCase]:
    """Return fits of 20 iterations from k-means++."""
    kinds = {"close mixture": draw_close_mixture}
    return _sized_cases(kinds, SEEDED, seed, drawn=True, max_iter=20, tol=0.0)


def predict(seed: int) -> list[BenchCase]:
    """Return calls of a fitted model on a million rows, with many centers, and on one row."""
    large: list[BenchCase] = []
    for work in ("predict", "transform", "score"):
        large += _sized_cases({work: draw_mixture}, [(1_000_000, 16, 20)], seed, work)
    many = {"predict, close mixture": draw_close_mixture, "predict, noise": draw_noise}
    large += _sized_cases(many, PREDICTED, seed, "predict")

    def make_one_row() -> BenchProblem:
        points = draw_mixture(500, 10, 8, seed)
        return BenchProblem(points[:1], 8, draw_rows(points, 8, seed), work="predict")

    return [*large, BenchCase("predict, one row of 10, k 8", make_one_row, "predict")]


def sparse_rows(seed: int) -> list[BenchCase]:
    """Return fits of 20 iterations on rows like counts of words."""
    return [
        _case(
            f"{_shorten(n)} x {_shorten(d)}, {100 * per_row / d:g} %, k {k}",
            partial(draw_word_counts, n, d, per_row, k, seed),
            k,
            seed,
            max_iter=20,
            tol=0.0,
        )
        for n, d, per_row, k in SPARSE
    ]


def minibatch(seed: int) -> list[BenchCase]:
    """Return partial_fit of 49 batches, and a fit in batches."""
    batches = partial(draw_mixture, 49 * 4096, 16, 20, seed)
    points = partial(draw_mixture, 1_000_000, 16, 20, seed)
    first = "49 times partial_fit, batches of 4096 x 16, k 20"
    second = "one pass, 1M x 16, k 20, batches of 4096"
    return [
        _case(first, batches, 20, seed, "partial_fit", batch=4096),
        _case(second, points, 20, seed, "minibatch", batch=4096, max_iter=1, tol=0.0),
    ]


def convergence(seed: int) -> list[BenchCase]:
    """Return fits until they stop, on mixtures."""
    return _sized_cases({"mixture": draw_mixture}, CONVERGING, seed)


def convergence_of_sets(folder: Path, seed: int) -> list[BenchCase]:
    """Return fits until they stop, on the data sets that are in the folder, enlarged."""
    cases = []
    for (n, _, k), name in CONVERGING.items():
        path = folder / f"{name}.npz"
        if path.exists():
            draw = partial(enlarge_data_set, path, n, seed)
            cases.append(_case(f"{name}, {_shorten(n)}, k {k}", draw, k, seed))
    return cases


def tails(seed: int) -> list[BenchCase]:
    """Return fits of 5 iterations and predictions, on rows with light and heavy tails.

    Kernels that skip work by bounds, or round by the size of the largest row, are slower or less
    accurate on heavy tails; the first kind of each family has light ones, for comparison.
    """
    lognormal = {f"lognormal {s:g}": partial(draw_lognormal, s) for s in (0.0, 1.0, 2.0, 3.0)}
    scaled = {f"normal times exp({s:g} z)": partial(draw_scaled_normal, s) for s in (0.0, 1.0, 2.0)}
    heavy = {"Pareto": draw_pareto, "Cauchy": draw_cauchy}
    far = {f"one row {far:.0e} times as far": partial(draw_far_row, far) for far in (1e2, 1e5, 1e9)}
    groups: tuple[tuple[Mapping[str, Draw], tuple[Size, ...]], ...] = (
        (lognormal, TAIL_SIZES),
        (scaled, WIDE_SIZES),
        (heavy, FAR_SIZES),
        ({"Zipf counts": draw_zipf}, TAIL_SIZES[1:]),
        (far, FAR_SIZES),
    )
    cases = []
    for kinds, sizes in groups:
        cases += _sized_cases(kinds, sizes, seed, max_iter=5, tol=0.0)
    predicted: dict[str, Draw] = {
        "predict, lognormal 0": lognormal["lognormal 0"],
        "predict, lognormal 3": lognormal["lognormal 3"],
        "predict, Cauchy": draw_cauchy,
        "predict, one row 1e+05 times as far": partial(draw_far_row, 1e5),
    }
    return cases + _sized_cases(predicted, TAIL_SIZES[1:], seed, "predict")


def tails_of_sets(folder: Path, seed: int) -> list[BenchCase]:
    """Return the same on the data sets that are in the folder, unscaled and standardised.

    Rows are as they are in the set: repeated rows would be ties, and jitter would change the tails.
    """
    cases = []
    for name in TAILED:
        path = folder / f"{name}.npz"
        if not path.exists():
            continue
        for standardised in (False, True):
            draw = partial(read_data_set, path, standardised)
            for k in TAILED_CENTERS:
                case = f"{name}, {'standardised' if standardised else 'unscaled'}, k {k}"
                cases.append(_case(case, draw, k, seed, max_iter=5, tol=0.0))
                cases.append(_case(f"predict, {case}", draw, k, seed, "predict"))
    return cases


def small(seed: int) -> list[BenchCase]:
    """Return a problem so small that the overhead of a call counts."""
    draw = partial(draw_mixture, 500, 10, 8, seed)
    return [
        _case("500 x 10, k 8, k-means++", draw, 8, seed, drawn=True),
        _case("500 x 10, k 8, given start", draw, 8, seed),
    ]


def algorithms(seed: int) -> list[BenchCase]:
    """Return the problem on which all algorithms are compared."""
    sizes = [(200_000, 32, 10)]
    return _sized_cases({"mixture": draw_mixture}, sizes, seed, max_iter=20, tol=0.0)


def growth(seed: int) -> list[BenchCase]:
    """Return fits of 10 iterations on ten thousand to ten million points."""
    sizes = [(10**power, 8, 16) for power in range(4, 8)]  # from inside of the caches to 320 MB
    return _sized_cases({"mixture": draw_mixture}, sizes, seed, max_iter=10, tol=0.0)


def _sized_cases(
    kinds: Mapping[str, Draw],
    sizes: Iterable[Size],
    seed: int,
    work: str = "fit",
    **settings: Any,
) -> list[BenchCase]:
    """Return a case for each kind of points and each size."""
    return [
        _case(
            f"{kind}, {_shorten(n)} x {d}, k {k}",
            partial(draw, n, d, k, seed),
            k,
            seed,
            work,
            **settings,
        )
        for kind, draw in kinds.items()
        for n, d, k in sizes
    ]


def _case(
    name: str,
    draw: Callable[[], Any],
    k: int,
    seed: int,
    work: str = "fit",
    *,
    drawn: bool = False,
    **settings: Any,
) -> BenchCase:
    """Return a case whose start is k of its points; other settings are those of the problem.

    drawn: each contender draws a start by its own k-means++.
    """

    def make() -> BenchProblem:
        points = draw()
        start = None if drawn else draw_rows(points, k, seed)
        return BenchProblem(points, k, start, work=work, **settings)

    return BenchCase(name, make, work)


def _shorten(n: int) -> str:
    return f"{n // 1_000_000}M" if n % 1_000_000 == 0 else f"{n // 1000}k"


def draw_mixture(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return n points around k means in a box, with noise of deviation 1, in float32."""
    rng = np.random.default_rng(seed)
    return _draw_around(rng.uniform(-BOX, BOX, size=(k, d)), 1.0, n, rng)


def draw_close_mixture(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return n points around k means in the unit cube, with noise of deviation 0.15."""
    rng = np.random.default_rng(seed)
    return _draw_around(rng.uniform(size=(k, d)), 0.15, n, rng)


def _draw_around(
    means: Float[np.ndarray, "k d"], deviation: float, n: int, rng: np.random.Generator
) -> Float[np.ndarray, "n d"]:
    k, d = means.shape
    means = means.astype(np.float32)
    points = rng.standard_normal((n, d), dtype=np.float32)
    for start in range(0, n, _CHUNK):
        part = points[start : start + _CHUNK]
        part *= np.float32(deviation)
        part += means[rng.integers(k, size=len(part))]
    return points


def draw_noise(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return n points of one Gaussian: no clusters, so that bounds skip little work."""
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def draw_lognormal(sigma: float, n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return (exp(sigma z) - 1) / sigma for normal z; sigma 0 is the limit, z itself."""
    points = draw_noise(n, d, k, seed)
    return np.expm1(np.float32(sigma) * points) / np.float32(sigma) if sigma > 0 else points


def draw_scaled_normal(s: float, n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return rows of one Gaussian, each times exp(s z) with its own normal z."""
    lengths = np.random.default_rng([seed, 1]).standard_normal((n, 1), dtype=np.float32)
    return draw_noise(n, d, k, seed) * np.exp(np.float32(s) * lengths)


def draw_pareto(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return Pareto numbers of shape 1, less 1: without a mean."""
    return np.random.default_rng(seed).pareto(1.0, size=(n, d)).astype(np.float32)


def draw_cauchy(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return Cauchy numbers: without a mean, on both sides of 0."""
    return np.random.default_rng(seed).standard_cauchy((n, d)).astype(np.float32)


def draw_zipf(n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return counts: number m in proportion to m^-1.7, at most 10^7."""
    counts = np.random.default_rng(seed).zipf(1.7, size=(n, d))
    return np.minimum(counts, 10**7).astype(np.float32)


def draw_far_row(far: float, n: int, d: int, k: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return rows of one Gaussian, the first of them `far` times as far from 0."""
    points = draw_noise(n, d, k, seed)
    points[0] *= np.float32(far)
    return points


def read_data_set(path: Path, standardised: bool) -> Float[np.ndarray, "n d"]:
    """Return the rows of a data set in float32.

    standardised: columns have mean 0 and deviation 1; constant ones are left out.
    """
    X = read_npz(path).astype(np.float64)
    if standardised:
        X = X[:, np.ptp(X, axis=0) > 0]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X.astype(np.float32)


def draw_word_counts(n: int, d: int, per_row: int, topics: int, seed: int) -> sparse.csr_matrix:
    """Return n rows of about `per_row` positive numbers, as in counts of words.

    Some columns are frequent. Half of a row's columns are from its topic, a tenth of all columns.
    """
    rng = np.random.default_rng(seed)

    def zipf(d: int, size: int) -> np.ndarray:
        """Draw numbers below d; number j in proportion to 1 / (j + 10)."""
        return np.minimum(10 * ((d + 10) / 10) ** rng.random(size) - 10, d - 1).astype(np.int64)

    counts = rng.poisson(per_row, size=n)
    ends = np.concatenate([[0], np.cumsum(counts)])
    size = int(ends[-1])
    frequent = zipf(d, size)
    of_topic = rng.integers(d, size=(topics, d // 10))
    topic = np.repeat(rng.integers(topics, size=n), counts)
    own = of_topic[topic, zipf(d // 10, size)]
    columns = np.where(rng.random(size) < 0.5, own, frequent)
    values = np.log1p(rng.geometric(0.5, size=size)).astype(np.float32)
    matrix = sparse.csr_matrix((values, columns.astype(np.int32), ends.astype(np.int32)), (n, d))
    matrix.sum_duplicates()  # a column that was drawn twice; all contenders get canonical rows
    return matrix


def enlarge_data_set(path: Path, n: int, seed: int) -> Float[np.ndarray, "n d"]:
    """Return rows of a data set, columns scaled to [0, 1], repeated to n rows, with jitter."""
    rng = np.random.default_rng(seed)
    X = read_npz(path).astype(np.float64)
    X = X[:, np.ptp(X, axis=0) > 0]  # a constant column cannot be scaled
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    points = X[rng.permutation(n) % len(X)].astype(np.float32)
    width = (JITTER * X.std(axis=0)).astype(np.float32)
    for start in range(0, n, _CHUNK):
        part = points[start : start + _CHUNK]
        part += width * rng.standard_normal(part.shape, dtype=np.float32)
    return points


def draw_rows(
    points: Float[np.ndarray, "n d"] | sparse.csr_matrix, k: int, seed: int
) -> Float[np.ndarray, "k d"]:
    """Return k different rows, dense: the initial centers of all contenders."""
    # Starts that contenders draw themselves would time their luck.
    rng = np.random.default_rng(seed)
    rows = rng.choice(points.shape[0], size=k, replace=False)
    if not isinstance(points, np.ndarray):
        return points[rows].toarray()
    # Equal centers leave empty clusters, which every contender fills in its own way.
    if len(np.unique(points[rows], axis=0)) < k:
        shuffled = points[rng.permutation(len(points))]
        first = np.unique(shuffled, axis=0, return_index=True)[1]
        return shuffled[np.sort(first)[:k]]
    return points[rows]
