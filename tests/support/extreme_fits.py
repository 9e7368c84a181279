"""Random fits at the ends of the range of floats: of weights, of rows, of both.

Arguments: seconds, seed of the first problem. Each seed is printed before its fit, so that the last
line names the problem of a crash; what is wrong is printed as "SEED: WORDS".
"""

import faulthandler
import sys
import time
import warnings
from typing import Any

import numpy as np
from disturbed_fits import ESTIMATORS, SPARSE
from scipy import sparse

import lloydformer as lf

ENGINES = ["auto", "auto", "auto", "chunked"]


def draw_scale(rng: np.random.Generator, dtype: Any) -> float:
    """A power of ten of any size that this precision holds, or 1."""
    info = np.finfo(dtype)
    low, high = np.log10(float(info.smallest_subnormal)), np.log10(float(info.max))
    return float(10.0 ** rng.uniform(low, high)) if rng.random() < 0.4 else 1.0


def draw_rows(rng: np.random.Generator, n: int, d: int, dtype: Any) -> np.ndarray:
    """Rows with ties, zeros and far rows."""
    X = rng.normal(size=(n, d))
    if rng.random() < 0.5:
        X = np.round(X)
    if rng.random() < 0.3:
        X[1:] = 0.0
    if rng.random() < 0.3:
        X[rng.integers(n)] *= 10.0 ** rng.uniform(-20, 20)
    most = float(np.finfo(dtype).max)
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(X * draw_scale(rng, dtype), -most, most).astype(dtype)


def draw_weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    """Weights of one size, of two sizes, of all sizes."""
    kind = rng.integers(5)
    if kind == 0:
        return None
    tiny = 10.0 ** rng.uniform(-323, 0)
    if kind == 1:
        return np.full(n, 10.0 ** rng.uniform(-323, 305))
    if kind == 2:
        return np.where(np.arange(n) == rng.integers(n), tiny, 1.0)
    if kind == 3:
        return np.where(np.arange(n) == rng.integers(n), 1.0, tiny)
    return 10.0 ** rng.uniform(-323, 300, size=n) * (rng.random(n) < 0.8)


def check(seed: int) -> str:
    """Fit one problem; returns what is wrong, or nothing."""
    rng = np.random.default_rng(seed)
    kind, settings = ESTIMATORS[rng.integers(len(ESTIMATORS))]
    dtype = [np.float32, np.float64][rng.integers(2)]
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 6))
    k = int(rng.integers(1, min(n, 6) + 1))
    X: Any = draw_rows(rng, n, d, dtype)
    weights = draw_weights(rng, n)
    if kind in SPARSE and not settings.get("batch_size") and rng.random() < 0.6:
        X = sparse.csr_matrix(X)
    engine = ENGINES[rng.integers(len(ENGINES))]
    about = (
        f"{kind.__name__}({k}, {settings}, {engine}) {dtype.__name__} {type(X).__name__} {n}x{d}"
    )
    try:
        limit = {} if kind is lf.LearnedKMeans else {"max_iter": 20}
        model = kind(k, random_state=0, engine=engine, **limit, **settings)
        model.fit(X, sample_weight=weights)
    except ValueError as error:
        words = str(error)
        clear = words.startswith(("X: ", "sample_weight: ", "n_samples="))
        return "" if clear else f"{about}: {words}"
    except Exception as error:
        return f"{about}: {error!r}"
    if not np.isfinite(model.cluster_centers_).all():
        return f"{about}: centers that are not finite"
    labels = np.asarray(model.labels_)
    least = -1 if kind.__name__ in ("TrimmedKMeans", "SphericalKMeans") else 0
    if labels.min() < least or labels.max() >= k:
        return f"{about}: labels {labels.min()} to {labels.max()}"
    return "" if np.isfinite(model.inertia_) else f"{about}: inertia {model.inertia_}"


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")
    end, seed = time.monotonic() + float(sys.argv[1]), int(sys.argv[2])
    while time.monotonic() < end:
        print(f"{seed}: ", end="", flush=True)
        print(check(seed), flush=True)
        seed += 1
