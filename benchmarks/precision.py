"""Compares `RelocatingKMeans` in float32 with float64, on real sets with heavy tails.

    python benchmarks/precision.py FOLDER [--seeds 5]

FOLDER has the sets as .npz files. Fits of both precisions get the same rows and seeds. Objectives
are computed by differences in float64, and are relative to the best one of a problem. Prints a line
for each problem, and writes results/precision.json. Takes a minute or two on one core.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from provenance import provenance, save

import lloydformer as lf
from lloydformer.app.jobs.bench.cases import TAILED, read_data_set
from lloydformer.numerics.clusters import kmeans_objective

CLUSTERS = (20, 100)


def fit_objective(X: np.ndarray, k: int, seed: int) -> float:
    """Return the objective of one fit in the precision of X."""
    model = lf.RelocatingKMeans(k, random_state=seed).fit(X)
    points, centers = (torch.from_numpy(a).double() for a in (X, model.cluster_centers_))
    return float(kmeans_objective(points, centers))


def compare(X: np.ndarray, k: int, seeds: int) -> dict:
    """Return objectives of both precisions, and by how much float32 is above float64."""
    found = {
        precision: [fit_objective(X.astype(precision), k, seed) for seed in range(seeds)]
        for precision in ("float32", "float64")
    }
    best = min(min(values) for values in found.values())
    above = {precision: [value / best - 1 for value in found[precision]] for precision in found}
    one, other = (np.array(found[precision]) for precision in ("float32", "float64"))
    return {
        "above the best": above,
        "mean over mean": float(one.mean() / other.mean() - 1),
        "best over best": float(one.min() / other.min() - 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="has the sets as .npz files")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    rows = {}
    for name in TAILED:
        for standardised in (False, True):
            X = read_data_set(asked.folder / f"{name}.npz", standardised)
            for k in CLUSTERS:
                case = f"{name}, {'standardised' if standardised else 'unscaled'}, k {k}"
                row = rows[case] = compare(X, k, asked.seeds)
                worst = {p: max(values) for p, values in row["above the best"].items()}
                print(
                    f"{case:36s} mean {row['mean over mean']:+.2%}, "
                    f"best {row['best over best']:+.2%}; worst seed above the best of all: "
                    f"float32 {worst['float32']:.2%}, float64 {worst['float64']:.2%}",
                    flush=True,
                )
    settings = {"seeds": asked.seeds, "clusters": CLUSTERS}
    print(save("precision", {"settings": settings, "provenance": provenance(), "rows": rows}))


if __name__ == "__main__":
    main()
