"""Compares ways to scale columns: clusters found in planted tables and in real sets with classes.

    python benchmarks/column_scales.py FOLDER [--seeds 12]

FOLDER has the real sets as .npz files with X and y. Each table is scaled by every method of
`lf.Scaler`, and clustered by `RelocatingKMeans` with the true number of clusters (at most 20). The
number is the adjusted Rand index with the classes. Also varies the thresholds of "auto" by a factor
of two. Prints a line for each table, and writes results/column_scales.json. Takes six minutes on
one core.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from provenance import provenance, save
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.data import column_scales, scale_choice

METHODS = ("none", "standard", "minmax", "robust", "log", "rank", "clip", "auto")
ROWS, MOST_ROWS, MOST_COLUMNS, MOST_CLUSTERS = 600, 1500, 120, 20
# Thresholds of the rule, and by which factors they are varied.
THRESHOLDS = {
    "_SPAN": scale_choice,
    "_ASYMMETRY": scale_choice,
    "_GROWTH": scale_choice,
    "_LESS": scale_choice,
    "_FAR": scale_choice,
    "_REACH": scale_choice,
    "_GROUP": scale_choice,
    "_CLIPPED": scale_choice,
    "_LIMIT": scale_choice,
    "COMPARABLE": column_scales,
}
FACTORS = (0.5, 2.0)

Table = tuple[np.ndarray, np.ndarray]
Rng = np.random.Generator


def normal(rng: Rng, k: int = 3, d: int = 4, apart: float = 5.0, shares: tuple = ()) -> Table:
    """Normal clusters around normal centers; `apart`: standard deviation of their distances."""
    centers = rng.normal(size=(k, d)) * apart / np.sqrt(2)
    labels = rng.choice(k, size=ROWS, p=shares or None)
    return centers[labels] + rng.normal(size=(ROWS, d)), labels


def with_outliers(share: float, size: float, shift: float = 0.0) -> Callable[[Rng], Table]:
    """Normal clusters in which single values are outliers."""

    def make(rng: Rng) -> Table:
        X, y = normal(rng)
        out = rng.random(X.shape) < share
        X[out] = rng.normal(size=out.sum()) * size
        return X + shift, y

    return make


def one_far_row(distance: float) -> Callable[[Rng], Table]:
    """Three clusters in the plane, and a row that is far in both columns."""

    def make(rng: Rng) -> Table:
        X, y = normal(rng, d=2, apart=9.0)
        X[7] = distance
        return X, y

    return make


def heavy_tails(freedom: float) -> Callable[[Rng], Table]:
    """Clusters with noise of the t distribution."""

    def make(rng: Rng) -> Table:
        y = rng.integers(3, size=ROWS)
        return rng.normal(size=(3, 4))[y] * 4 + rng.standard_t(freedom, size=(ROWS, 4)), y

    return make


def lognormal(width: float, zeros: float = 0.0) -> Callable[[Rng], Table]:
    """Lognormal clusters; a share of the values is 0."""

    def make(rng: Rng) -> Table:
        X, y = normal(rng, apart=4.0)
        return np.where(rng.random(X.shape) < zeros, 0.0, np.exp(X * width)), y

    return make


def products(noise: Callable[..., np.ndarray], width: float) -> Callable[[Rng], Table]:
    """Clusters with noise in proportion to their level."""

    def make(rng: Rng) -> Table:
        y = rng.integers(3, size=ROWS)
        return noise(rng, np.exp(rng.normal(size=(3, 4)) * width)[y]), y

    return make


def positive(k: int, high: float, noise: float) -> Callable[[Rng], Table]:
    """Normal clusters of positive numbers, such as measures."""

    def make(rng: Rng) -> Table:
        centers = rng.uniform(3, high, size=(k, 3))
        y = rng.choice(k, size=ROWS, p=rng.dirichlet(np.full(k, 3.0)))
        return np.abs(centers[y] + rng.normal(size=(ROWS, 3)) * noise), y

    return make


def in_units(rng: Rng) -> Table:
    """Normal clusters, each column in a unit of its own."""
    X, y = normal(rng)
    return X * 10 ** rng.uniform(-3, 3, size=4) + 100, y


def with_flags(share: float) -> Callable[[Rng], Table]:
    """Normal clusters beside three flags that say nothing."""

    def make(rng: Rng) -> Table:
        X, y = normal(rng, d=2, apart=8.0)
        return np.column_stack([X, rng.random((ROWS, 3)) < share]), y

    return make


PLANTED: dict[str, Callable[[Rng], Table]] = {
    "normal": normal,
    "normal, 80, 15 and 5 %": lambda rng: normal(rng, shares=(0.8, 0.15, 0.05)),
    "normal, 2 columns": lambda rng: normal(rng, d=2, k=5, apart=9.0),
    "normal, columns in other units": in_units,
    "positive": positive(5, 100, 5),
    "positive, from 0": lambda rng: (lambda X, y: (X - X.min(axis=0), y))(*normal(rng, k=6, d=3)),
    "outliers 0.2 %, 1000": with_outliers(0.002, 1e3),
    "outliers 1 %, 30": with_outliers(0.01, 30),
    "outliers 5 %, 100": with_outliers(0.05, 100),
    "outliers 0.5 %, 100000, at 50": with_outliers(0.005, 1e5, 50),
    "one row at 100, 2 columns": one_far_row(1e2),
    "one row at 10^6, 2 columns": one_far_row(1e6),
    "t with 1 degree": heavy_tails(1),
    "t with 2 degrees": heavy_tails(2),
    "t with 3 degrees": heavy_tails(3),
    "lognormal, 0.5": lognormal(0.5),
    "lognormal, 1": lognormal(1.0),
    "lognormal, 2": lognormal(2.0),
    "lognormal, 30 % zeros": lognormal(1.0, zeros=0.3),
    "Poisson": products(lambda rng, level: rng.poisson(1.6 * level).astype(float), 1.2),
    "gamma": products(lambda rng, level: level * rng.gamma(2, size=level.shape), 1.5),
    "flags": with_flags(0.5),
    "rare flags": with_flags(0.03),
}


def agreement(scaler: lf.Scaler, X: np.ndarray, y: np.ndarray) -> float:
    """Return the adjusted Rand index of the clusters of scaled rows."""
    k = min(len(np.unique(y)), MOST_CLUSTERS)
    with warnings.catch_warnings(action="ignore"):  # fewer clusters than requested
        labels = lf.RelocatingKMeans(k, random_state=0).fit_predict(scaler.fit_transform(X))
    return float(adjusted_rand_score(y, labels))


def read_real(folder: Path) -> Iterator[tuple[str, Table]]:
    """Yield the real sets with classes: at most 1500 rows, drawn at random."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if "y" not in file or file["X"].shape[1] > MOST_COLUMNS:
                continue
            X, y = file["X"].astype(np.float64), file["y"]
        if len(X) > MOST_ROWS:
            rows = np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)
            X, y = X[rows], y[rows]
        yield path.stem, (X, y)


@contextmanager
def varied(name: str, factor: float) -> Iterator[None]:
    """Multiply a threshold of the rule."""
    module = THRESHOLDS[name]
    before = getattr(module, name)
    setattr(module, name, before * factor)
    try:
        yield
    finally:
        setattr(module, name, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="has the real sets as .npz files")
    parser.add_argument("--seeds", type=int, default=12)
    asked = parser.parse_args()
    tables = {
        name: [make(np.random.default_rng(seed)) for seed in range(asked.seeds)]
        for name, make in PLANTED.items()
    }
    result: dict = {"planted": {}, "real": {}, "thresholds": {}}
    real = {name: [table] for name, table in read_real(asked.folder)}
    for kind, sets in (("planted", tables), ("real", real)):
        for name, members in sets.items():
            row = {
                method: float(np.mean([agreement(lf.Scaler(method), X, y) for X, y in members]))
                for method in METHODS
            }
            result[kind][name] = row
            print(f"{name:32}", *(f"{method} {value:5.2f} " for method, value in row.items()))
        means = {m: float(np.mean([row[m] for row in result[kind].values()])) for m in METHODS}
        result[f"mean of {kind}"] = means
        print(f"{kind:32}", *(f"{method} {value:5.3f} " for method, value in means.items()))
    for name in THRESHOLDS:
        for factor in FACTORS:
            with varied(name, factor):
                values = [
                    np.mean([agreement(lf.Scaler(), X, y) for X, y in members[:4]])
                    for members in tables.values()
                ]
            result["thresholds"][f"{name} x {factor:g}"] = float(np.mean(values))
            print(f"{name} x {factor:g}: {np.mean(values):.3f}")
    first = [np.mean([agreement(lf.Scaler(), X, y) for X, y in m[:4]]) for m in tables.values()]
    result["thresholds"]["as they are"] = float(np.mean(first))
    print(f"as they are: {np.mean(first):.3f}")
    print(save("column_scales", {"provenance": provenance(), "seeds": asked.seeds, **result}))


if __name__ == "__main__":
    main()
