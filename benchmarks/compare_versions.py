"""Compare the speed of two installed versions of lloydformer, in alternating processes.

    python benchmarks/compare_versions.py old/.venv/bin/python new/.venv/bin/python [--searches]

Both interpreters run this file as a worker: mixtures and noise of the sizes of `lloydformer bench
--question iteration`, 20 iterations from the same rows, and the small fits of `--question small`.
With --searches instead: k-means++, RelocatingKMeans and KMedoids with 50 centers and more.
A pair of processes gives one ratio (new over old) for each case; pairs alternate which version
goes first. The table has the geometric mean of the ratios and its 95 % interval by Student's t on
their logarithms. A refactoring should keep the upper end below 1.03.
"""

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (
    (1_000_000, 2, 5),
    (200_000, 32, 10),
    (200_000, 32, 100),
    (100_000, 128, 100),
    (100_000, 128, 1000),
    (1_000_000, 16, 64),
)
SEEDED = ((100_000, 128, 1000), (200_000, 32, 300), (1_000_000, 16, 100))
SEARCHED = ((20_000, 64, 50), (20_000, 64, 200), (20_000, 128, 500))
SMALL = (500, 10, 8)
SMALL_FITS = 200


def draw_points(kind: str, n: int, d: int, k: int) -> np.ndarray:
    """Return float32 rows: a mixture with deviation 1 around means in a box, or plain noise."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal(size=(n, d), dtype=np.float32)
    if kind == "mixture":
        points += rng.uniform(-3, 3, size=(k, d)).astype(np.float32)[rng.integers(k, size=n)]
    return points


def measure() -> dict[str, float]:
    """Return the seconds of each case: the faster of two fits, after one that warms up."""
    import lloydformer as lf

    def time_fits(points: np.ndarray, k: int, count: int, **settings: Any) -> float:
        began = time.perf_counter()
        for _ in range(count):
            lf.KMeans(k, random_state=0, **settings).fit(points)
        return (time.perf_counter() - began) / count

    found = dict[str, float]()
    for n, d, k in SIZES:
        for kind in ("mixture", "noise"):
            points = draw_points(kind, n, d, k)
            settings = {"init": points[:k].copy(), "n_init": 1, "max_iter": 20, "tol": 0.0}
            seconds = [time_fits(points, k, 1, **settings) for _ in range(3)]
            found[f"{kind} {n} x {d}, k {k}"] = min(seconds[1:])
    n, d, k = SMALL
    points = draw_points("mixture", n, d, k)
    for name, settings in {"k-means++": {}, "given start": {"init": points[:k].copy()}}.items():
        seconds = [time_fits(points, k, SMALL_FITS, **settings) for _ in range(3)]
        found[f"small {n} x {d}, k {k}, {name}"] = min(seconds[1:])
    return found


def measure_searches() -> dict[str, float]:
    """Return the seconds of k-means++ (with one iteration), and of searches for better centers."""
    import lloydformer as lf

    once = {"n_init": 1, "max_iter": 1, "random_state": 0}
    found = dict[str, float]()
    for n, d, k in SEEDED:
        points = draw_points("noise", n, d, k)
        found[f"k-means++ noise {n} x {d}, k {k}"] = time_fit(lf.KMeans(k, **once), points)
    for n, d, k in SEARCHED:
        for kind in ("mixture", "noise"):
            points, case = draw_points(kind, n, d, k), f"{kind} {n} x {d}, k {k}"
            found[f"relocating {case}"] = time_fit(lf.RelocatingKMeans(k, random_state=0), points)
            found[f"medoids {case}"] = time_fit(lf.KMedoids(k, random_state=0), points)
    return found


def time_fit(model: Any, points: np.ndarray) -> float:
    """Return the seconds of the faster of two fits."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        with warnings.catch_warnings():  # a fit of one iteration has not converged
            warnings.simplefilter("ignore")
            model.fit(points)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """Return the geometric mean of ratios, and the ends of its 95 % interval."""
    from scipy.stats import t

    logs = np.log(ratios)
    margin = t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    middle = logs.mean()
    return math.exp(middle), math.exp(middle - margin), math.exp(middle + margin)


def compare(pythons: list[str], n_pairs: int, *options: str) -> dict[str, Any]:
    """Run pairs of workers; return the seconds of all and the ratios of each case."""
    seconds: list[list[dict[str, float]]] = [[], []]
    for pair in range(n_pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            command = [pythons[side], __file__, "--worker", *options]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds[side].append(json.loads(found))
        print(f"pair {pair + 1} of {n_pairs}", file=sys.stderr, flush=True)
    old, new = seconds
    rows = {}
    for case in old[0]:
        before, after = (np.array([run[case] for run in side]) for side in (old, new))
        ratio, low, high = interval(after / before)
        medians = {"old_s": float(np.median(before)), "new_s": float(np.median(after))}
        rows[case] = {**medians, "ratio": ratio, "low": low, "high": high}
    every = np.array([[b[case] / a[case] for case in a] for a, b in zip(old, new, strict=True)])
    ratio, low, high = interval(np.exp(np.log(every).mean(axis=1)))
    rows["all cases"] = {"ratio": ratio, "low": low, "high": high}
    return {"pairs": n_pairs, "rows": rows}


def main() -> None:
    """Compare two interpreters and print a table, or measure as a worker."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("pythons", nargs="*", help="interpreters with the old and the new version")
    parse.add_argument("--pairs", type=int, default=20)
    parse.add_argument("--output", type=Path, help="a JSON file for the result")
    parse.add_argument(
        "--searches", action="store_true", help="k-means++ and estimators that search"
    )
    parse.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parse.parse_args()
    if arguments.worker:
        print(json.dumps(measure_searches() if arguments.searches else measure()))
        return
    if len(arguments.pythons) != 2:
        parse.error(f"two interpreters are needed, {len(arguments.pythons)} found")
    options = ["--searches"] if arguments.searches else []
    result = compare(arguments.pythons, arguments.pairs, *options)
    if arguments.output is not None:
        from provenance import provenance

        result = {"provenance": provenance(), **result}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for case, row in result["rows"].items():
        print(f"{case:36} {row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]")


if __name__ == "__main__":
    main()
