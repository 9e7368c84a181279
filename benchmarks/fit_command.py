"""How long `lloydformer fit` takes beside pandas and scikit-learn: whole processes, a CSV of
100,000 x 20, k 8.

The peer reads the file with pandas and fits scikit-learn's KMeans with one k-means++ start; it
writes nothing. The command also writes labels, centers, summary and model. Runs alternate, and
the median and the spread are given.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from provenance import provenance, save

N, D, K, REPEATS = 100_000, 20, 8, 7
PEER = """
import sys, pandas, sklearn.cluster
model = sklearn.cluster.KMeans(8, n_init=1, random_state=0).fit(pandas.read_csv(sys.argv[1]))
print(model.inertia_)
"""


def write_points(path: Path) -> None:
    rng = np.random.default_rng(0)
    middles = rng.uniform(-3, 3, size=(K, D))
    points = middles[rng.integers(K, size=N)] + rng.standard_normal(size=(N, D))
    pd.DataFrame(points, columns=[f"c{i}" for i in range(D)]).to_csv(path, index=False)


def time_command(command: list[str]) -> tuple[float, str]:
    began = time.perf_counter()
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, found.stdout


def measure(path: Path, folder: Path) -> dict[str, dict[str, float]]:
    ours = [
        sys.executable,
        "-m",
        "lloydformer",
        "fit",
        str(path),
        "-k",
        str(K),
        "--n-init",
        "1",
        "-o",
        str(folder),
        "--force",
        "--json",
    ]
    peer = [sys.executable, "-c", PEER, str(path)]
    runs: dict[str, list[tuple[float, float]]] = {"pandas and scikit-learn": [], "lloydformer": []}
    time_command(ours), time_command(peer)  # so that files are in memory
    for _ in range(REPEATS):
        seconds, said = time_command(peer)
        runs["pandas and scikit-learn"].append((seconds, float(said)))
        seconds, said = time_command(ours)
        runs["lloydformer"].append((seconds, json.loads(said)["inertia"]))
    return {
        name: {
            "median_s": statistics.median(t for t, _ in measured),
            "fastest_s": min(t for t, _ in measured),
            "slowest_s": max(t for t, _ in measured),
            "inertia": measured[0][1],
        }
        for name, measured in runs.items()
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.csv"
        write_points(path)
        rows = measure(path, Path(folder) / "out")
    ratio = rows["lloydformer"]["median_s"] / rows["pandas and scikit-learn"]["median_s"]
    print(f"{ratio:.2f} times the time of pandas and scikit-learn; {rows}")
    settings = {"n": N, "d": D, "k": K, "repeats": REPEATS}
    print(
        save(
            "fit_command",
            {
                "provenance": provenance("pandas", "scikit-learn", "pyarrow"),
                "settings": settings,
                "ratio": ratio,
                "rows": rows,
            },
        )
    )


if __name__ == "__main__":
    main()
