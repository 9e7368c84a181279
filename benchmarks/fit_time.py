"""How long a whole fit takes beside scikit-learn's, and how much memory: 1M x 16 float32, k 20.

Both run from the same start for the same number of iterations, and to convergence from their own
k-means++ starts; runs alternate, and the median and the spread are given.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn.cluster
from provenance import provenance, save

import lloydformer as lf

N, D, K, REPEATS = 1_000_000, 16, 20, 5


def mixture(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-3, 3, size=(K, D))
    noise = rng.standard_normal(size=(N, D), dtype=np.float32)
    return (middles[rng.integers(K, size=N)] + noise).astype(np.float32)


def time_fit(fit: Callable[[], float]) -> tuple[float, float]:
    began = time.perf_counter()
    inertia = fit()
    return time.perf_counter() - began, inertia


def compare(X: np.ndarray, **settings: object) -> dict[str, dict[str, float]]:
    kinds = {"scikit-learn": sklearn.cluster.KMeans, "lloydformer": lf.KMeans}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for seed in range(REPEATS):
        for name, kind in kinds.items():
            model = kind(K, random_state=seed, **settings)
            runs[name].append(time_fit(lambda model=model: model.fit(X).inertia_))
    return {
        name: {
            "median_s": statistics.median(t for t, _ in measured),
            "fastest_s": min(t for t, _ in measured),
            "slowest_s": max(t for t, _ in measured),
            "mean_inertia": statistics.mean(i for _, i in measured),
        }
        for name, measured in runs.items()
    }


def extra_bytes_a_point(X: np.ndarray) -> float:
    """Growth of the peak resident memory in a fit, after a small fit has loaded everything."""
    lf.KMeans(K, init=X[:K], max_iter=2).fit(X[:200_000])
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew from here
    before = resident("VmRSS")
    lf.KMeans(K, init=X[:K], max_iter=5).fit(X)
    return (resident("VmHWM") - before) / len(X)


def resident(field: str) -> int:
    """Bytes of this process, now or at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def main() -> None:
    X = mixture(0)
    memory = extra_bytes_a_point(X)
    rows = {
        "20 iterations, same start": compare(X, init=X[:K], max_iter=20, tol=0.0),
        "to convergence, own k-means++ starts": compare(X),
    }
    for name, row in rows.items():
        ratio = row["lloydformer"]["median_s"] / row["scikit-learn"]["median_s"]
        print(f"{name}: {ratio:.2f} times scikit-learn's time; {row}")
    print(f"{memory:.1f} bytes a point above the data")
    settings = {"n": N, "d": D, "k": K, "dtype": "float32", "repeats": REPEATS}
    print(
        save(
            "fit_time",
            {
                "provenance": provenance("scikit-learn"),
                "settings": settings,
                "rows": rows,
                "extra_bytes_a_point": memory,
            },
        )
    )


if __name__ == "__main__":
    main()
