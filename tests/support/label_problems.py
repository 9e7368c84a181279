"""Random fits whose labels are compared with exact arithmetic: `check` fits one and compares it.

A problem is a function of its seed, so that a failure can be repeated. Sizes go to 2,000 features
and 5,000 centers; rows have ties, copies, denormals, and sizes from 1e-18 to 1e18; some of them are
up to 1e9 times as far as the others.
"""

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

import lloydformer as lf

_PRODUCTS = (10**6, 2 * 10**7, 2 * 10**8)
"""Most products n d k of a small, usual and large problem: 2e8 take about a second."""
_SAMPLE = 5
"""Rows that are compared with all centers in exact arithmetic."""


@dataclass(frozen=True)
class Problem:
    """Rows as an estimator gets them, their weights, and the estimator.

    Attributes
    ----------
    native : dict
        Settings of the native engine: bounds, screening, instruction set.
    whole : bool
        Numbers are whole and small, so that all of a squared distance is exact in float64.
    """

    X: Any
    weights: np.ndarray | None
    model: lf.KMeans | lf.RelocatingKMeans
    native: dict[str, Any]
    whole: bool

    @property
    def rows(self) -> np.ndarray:
        return self.X.toarray() if sparse.issparse(self.X) else self.X

    def __str__(self) -> str:
        n, d = self.X.shape
        kind = "sparse" if sparse.issparse(self.X) else "dense"
        settings = self.model.get_params() | {"init": "rows", **self.native}
        return f"{type(self.model).__name__}, {kind} {n} x {d} of {self.X.dtype}, {settings}"


def _draw_sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    """Return n, d and k."""
    most = int(rng.choice(_PRODUCTS, p=[0.6, 0.35, 0.05]))
    while True:
        d, k = (int(np.exp(rng.uniform(0, np.log(end + 1)))) for end in (2000, 5000))
        n = k + int(np.exp(rng.uniform(0, np.log(5000))))
        if n * d * k <= most:
            return n, d, k


def _draw_groups(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows around places that are up to 1e9 away, with a spread down to their last digits."""
    places = rng.normal(size=(int(rng.integers(1, 9)), d))
    places *= 10.0 ** rng.uniform(-2, 9, size=(len(places), 1))
    spread = np.abs(places).max(axis=1) * 2.0 ** rng.uniform(-26, 1, size=len(places))
    groups = rng.integers(len(places), size=n)
    return places[groups] + rng.normal(size=(n, d)) * spread[groups, None]


def _draw_outliers(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.normal(size=(n, d)) + rng.normal(size=d) * 10.0 ** rng.uniform(-1, 3)
    X[rng.integers(n, size=3)] *= 10.0 ** rng.uniform(1, 9, size=(3, 1))
    return X


_DRAWS = {
    "groups": _draw_groups,
    "outliers": _draw_outliers,
    "lognormal": lambda rng, n, d: np.exp(rng.uniform(0, 3) * rng.normal(size=(n, d))),
    "grid": lambda rng, n, d: rng.integers(-3, 4, size=(n, d)).astype(float),
    "line": lambda rng, n, d: np.outer(rng.normal(size=n), np.linspace(1, 2, d)),
}


def draw_problem(seed: int, instruction_sets: list[str]) -> Problem:
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    n, d, k = _draw_sizes(rng)
    dtype = rng.choice([np.float32, np.float64])
    kind = str(rng.choice(list(_DRAWS)))
    X = _DRAWS[kind](rng, n, d)
    whole = kind == "grid" and rng.random() < 0.7
    if rng.random() < 0.4:  # copies, also among the rows that are centers
        X = X[rng.integers(max(1, n // int(rng.integers(2, 9))), size=n)]
    if not whole:
        X *= 10.0 ** rng.uniform(-18, 18)
        # Denormals; in float64 numbers whose squares are no denormals: those are not promised.
        if rng.random() < 0.1:
            X *= (1e-40 if dtype == np.float32 else 1e-110) / max(np.abs(X).max(), 1e-300)
        elif rng.random() < 0.1:
            tiny = max(float(np.finfo(dtype).smallest_subnormal), 1e-150)
            X[:, rng.integers(d)] = tiny * rng.integers(9, size=n)
    weights = None
    if rng.random() < 0.3:
        weights = 10.0 ** rng.uniform(-3, 3, size=n) * (rng.random(n) < 0.9)
        weights[:k] = 1.0
    with np.errstate(over="ignore", under="ignore"):
        rows = X.astype(dtype)
    start = rows[:k] if rng.random() < 0.5 else rows[rng.choice(n, size=k, replace=False)]
    how: dict[str, Any] = {"init": start.copy(), "n_init": 1, "tol": 0}
    how["engine"] = str(rng.choice(["native", "native", "native", "chunked"]))
    model: Any = lf.KMeans(k, max_iter=int(rng.integers(1, 5)), **how)
    others = rng.random()
    if others < 0.1 and n * d * k <= _PRODUCTS[1]:
        model = lf.RelocatingKMeans(k, max_iter=12, random_state=0, **how)
    elif others < 0.2:
        model.set_params(batch_size=int(rng.integers(k, n + 1)), random_state=0)
    else:
        model.set_params(empty=str(rng.choice(["farthest", "keep"])))
    given: Any = rows
    if others > 0.9:
        given = sparse.csr_matrix(np.where(rng.random(X.shape) < 0.7, 0, rows))
        model.set_params(init=given[:k].toarray())
    native = {
        "bounded": bool(rng.integers(2)),
        "screened": [None, True, False][rng.integers(3)],
        "instruction_set": str(rng.choice(["", *instruction_sets])),
    }
    return Problem(given, weights, model, native, whole)


def _exact_square(x: np.ndarray, c: np.ndarray) -> Fraction:
    pairs = zip(x.tolist(), c.tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


def check_labels(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, whole: bool) -> None:
    """No center is nearer by exact arithmetic, unless float64 cannot tell the two apart.

    A square by differences in float64 has at most d + 3 roundings. So if a label has the smallest
    one in float64, it agrees with the true smallest one to (d + 3) 2^-52, as the promise says, and
    to d 2^-1074, the rounding of squares below the smallest normal number. All other labels are
    compared as fractions, and so are some rows with all centers.

    whole: squares are exact in float64, so that the label must be the first of the smallest ones.
    """
    n, d, k = *X.shape, len(centers)
    x, c = X.astype(np.float64), centers.astype(np.float64)
    squares = np.empty((k, n))
    for j in range(k):
        difference = x - c[j]
        squares[j] = np.einsum("nd,nd->n", difference, difference)
    assert labels.min() >= 0
    assert labels.max() < k
    nearest = squares.argmin(axis=0)
    if whole:
        assert np.array_equal(labels, nearest), "not the first of the nearest centers"
        return
    tolerance, underflow = Fraction(d + 3, 2**52), Fraction(d, 2**1074)
    every = np.arange(n)
    for i in every[labels != nearest]:
        found, least = (_exact_square(x[i], c[j]) for j in (labels[i], nearest[i]))
        allowed = tolerance * least + underflow
        assert found - least <= allowed, f"row {i}: {labels[i]}, not {nearest[i]}"
    for i in np.random.default_rng(n).permutation(n)[:_SAMPLE]:
        # Centers that are clearly farther even for float64 with a wide margin are left out.
        close = np.flatnonzero(squares[:, i] <= squares[:, i].min() * (1 + 1e-6))
        exact = {int(j): _exact_square(x[i], c[j]) for j in {*close.tolist(), int(labels[i])}}
        least = min(exact.values())
        allowed = tolerance * least + underflow
        assert exact[int(labels[i])] - least <= allowed, f"row {i}: {labels[i]}"


def check(problem: Problem) -> bool:
    """Fit a problem and compare it; returns False if its numbers are refused.

    Rows whose squared distances their precision cannot hold are refused by name.
    """
    model, X = problem.model, problem.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, sample_weight=problem.weights)
        except ValueError as error:
            if str(error).startswith(("X: ", "init: ")):
                return False
            raise
        rows, centers = problem.rows, model.cluster_centers_
        check_labels(rows, centers, model.labels_, whole=False)
        assert np.array_equal(model.predict(X), model.labels_), "other labels of predict"
        if problem.whole:
            # Rows as centers: ties, and copies of which the first one has the label.
            model.cluster_centers_ = rows[np.arange(len(centers)) * 7 % len(rows)].copy()
            check_labels(rows, model.cluster_centers_, model.predict(X), whole=True)
    return True
