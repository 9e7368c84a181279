"""Missing values against imputation, and categories against the package kmodes.

    python missing_and_categories.py missing --data ../../shared/data
    python missing_and_categories.py categories
    python missing_and_categories.py time

`missing` hides values at random and compares the adjusted Rand index of k-means that ignores or
imputes them with that of k-means after scikit-learn's imputers; k and the number of starts are the
same. `categories` compares costs and seconds a start with kmodes. `time` compares fits with and
without missing values.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from provenance import provenance, save
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf

SHARES = (0.1, 0.3, 0.5)
STARTS = 5
REAL = ("segment", "wdbc", "pendigits")
MOST_ROWS = 1500  # KNNImputer is quadratic in the number of rows


def planted() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield five planted problems: name, rows and clusters."""
    shapes = {
        "round": (600, 8, 4, 1.0, 0.0),
        "many": (1000, 10, 12, 1.0, 0.0),
        "close": (800, 12, 4, 1.8, 0.0),
        "correlated": (800, 10, 4, 1.2, 0.8),
        "wide": (500, 40, 5, 2.5, 0.0),
    }
    for seed, (name, (n, d, k, noise, shared)) in enumerate(shapes.items()):
        rng = np.random.default_rng(seed)
        labels = rng.integers(k, size=n)
        common = rng.normal(size=(n, 1)) * np.sqrt(shared)
        own = rng.normal(size=(n, d)) * np.sqrt(1 - shared)
        yield name, 2 * rng.normal(size=(k, d))[labels] + noise * (common + own), labels


def real(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield real sets with classes, standardised, at most `MOST_ROWS` rows of each."""
    for name in REAL:
        with np.load(folder / f"{name}.npz", allow_pickle=True) as file:
            keys = list(file)
            rows = np.asarray(file[next(k for k in keys if k.lower() in ("x", "data", "points"))])
            classes = np.asarray(
                file[next(k for k in keys if k.lower() in ("y", "labels", "target"))]
            )
        chosen = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
        rows, classes = rows[chosen].astype(float), classes[chosen]
        spread = rows.std(axis=0)
        yield (
            name,
            ((rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1))[:, spread > 0],
            classes,
        )


def hide(rows: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return rows with a share of the values missing, at least one of each row observed."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(rows.shape) < share
    gaps[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = False
    return np.where(gaps, np.nan, rows)


def ways(k: int, seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return functions from rows with missing values to labels."""

    def after(imputer: Any) -> Callable[[np.ndarray], np.ndarray]:
        return lambda rows: (
            lf.KMeans(k, n_init=STARTS, random_state=seed).fit(imputer.fit_transform(rows)).labels_
        )

    def with_missing(kind: Any, policy: str, **more: Any) -> Callable[[np.ndarray], np.ndarray]:
        return lambda rows: kind(k, missing=policy, random_state=seed, **more).fit(rows).labels_

    return {
        "ignore": with_missing(lf.KMeans, "ignore", n_init=STARTS),
        "impute": with_missing(lf.KMeans, "impute", n_init=STARTS),
        "relocating, ignore": with_missing(lf.RelocatingKMeans, "ignore"),
        "mean": after(SimpleImputer()),
        "KNNImputer": after(KNNImputer()),
        "IterativeImputer": after(IterativeImputer(random_state=seed, max_iter=5)),
    }


def study_missing(folder: Path, seeds: int) -> dict[str, Any]:
    """Return the adjusted Rand indices of all ways on all problems."""
    rows = {}
    for name, points, classes in (*planted(), *real(folder)):
        for share in SHARES:
            found: dict[str, list[float]] = {}
            for seed in range(seeds):
                hidden = hide(points, share, seed)
                for way, label in ways(len(np.unique(classes)), seed).items():
                    score = adjusted_rand_score(classes, label(hidden))
                    found.setdefault(way, []).append(score)
            rows[f"{name}, {share:.0%}"] = {
                w: round(float(np.mean(v)), 4) for w, v in found.items()
            }
            print(name, share, rows[f"{name}, {share:.0%}"], flush=True)
    names = next(iter(rows.values()))
    mean = {w: round(float(np.mean([r[w] for r in rows.values()])), 4) for w in names}
    by_share = {
        f"{s:.0%}": {
            w: round(float(np.mean([r[w] for n, r in rows.items() if n.endswith(f" {s:.0%}")])), 4)
            for w in names
        }
        for s in SHARES
    }
    print(mean, by_share)
    return {"rows": rows, "mean": mean, "mean_by_share": by_share}


def tables() -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Yield ten tables: name, rows of numbers and then categories, count of numbers, clusters."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, k, n_words = 1000 + 200 * seed, 3 + seed, 6 + seed % 4 * 3
        n_numbers = 0 if seed % 2 == 0 else 2 + seed // 3
        labels = rng.integers(k, size=n)
        columns = []
        for _ in range(n_numbers):
            columns.append(3 * rng.normal(size=k)[labels] + rng.normal(size=n))
        for _ in range(n_words):
            size = int(rng.integers(2, 9))
            words = rng.integers(size, size=k)[labels]
            noisy = rng.random(n) < 0.1 + 0.05 * seed
            columns.append(np.where(noisy, rng.integers(size, size=n), words))
        table = np.empty((n, n_numbers + n_words), dtype=object)
        for f, column in enumerate(columns):
            table[:, f] = column if f < n_numbers else [f"v{word}" for word in column]
        yield f"{'k-modes' if not n_numbers else 'k-prototypes'} {seed}", table, n_numbers, k


def study_categories() -> dict[str, Any]:
    """Return costs and CPU seconds a start of both packages."""
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    rows = {}
    for name, table, n_numbers, k in tables():
        began = time.process_time()
        ours = lf.KPrototypes(k, random_state=0).fit(table)
        mine = (time.process_time() - began) / 10
        numbers = table[:, :n_numbers].astype(float)
        began = time.process_time()
        if n_numbers == 0:
            theirs = KModes(k, init="Huang", n_init=STARTS, random_state=0).fit(table)
        else:
            theirs = KPrototypes(k, init="Huang", n_init=STARTS, random_state=0)
            theirs.fit(table, categorical=list(range(n_numbers, table.shape[1])))
        other = (time.process_time() - began) / STARTS
        rows[name] = {
            "n": len(table),
            "k": k,
            "cost": ours.inertia_,
            "cost of kmodes": float(theirs.cost_),
            "seconds": mine,
            "seconds of kmodes": other,
            "times": other / mine,
        }
        assert n_numbers == 0 or np.isclose(ours.gamma_, theirs.gamma), (ours.gamma_, numbers.std())
        print(name, rows[name], flush=True)
    return {"rows": rows}


def study_time() -> dict[str, Any]:
    """Return CPU seconds of fits with and without missing values, from the same start."""
    rows = {}
    for n, d, k in ((20_000, 8, 5), (100_000, 16, 20), (200_000, 32, 10), (50_000, 64, 100)):
        rng = np.random.default_rng(0)
        points = (
            rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
        ).astype(np.float32)
        hidden = hide(points, 0.3, 0)
        found = {}
        for name, model, data in (
            ("complete", lf.KMeans(k, random_state=0), points),
            ("ignore", lf.KMeans(k, random_state=0, missing="ignore"), hidden),
            ("complete, 20 iterations", lf.KMeans(k, init=points[:k], tol=0, max_iter=20), points),
            (
                "ignore, 20 iterations",
                lf.KMeans(k, init=points[:k], tol=0, max_iter=20, missing="ignore"),
                hidden,
            ),
        ):
            times = []
            for _ in range(3):
                began = time.process_time()
                model.fit(data)
                times.append(time.process_time() - began)
            found[name] = {"seconds": min(times), "iterations": model.n_iter_}
        rows[f"{n} x {d}, k {k}"] = found
        print(n, d, k, found, flush=True)
    return {"rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", choices=("missing", "categories", "time"))
    parser.add_argument("--data", type=Path, default=Path("../../shared/data"))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    if asked.study == "missing":
        result = study_missing(asked.data, asked.seeds)
    else:
        result = study_categories() if asked.study == "categories" else study_time()
    peers = ("kmodes",) if asked.study == "categories" else ("scikit-learn",)
    name = {"missing": "missing_values", "time": "missing_time"}.get(asked.study, asked.study)
    save(name, {"provenance": provenance(*peers), **result})


if __name__ == "__main__":
    main()
