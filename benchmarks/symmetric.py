"""The learned symmetric layer beside Lloyd's algorithm and k-means++: what it reaches, and when.

tasks   the paper's tasks (d 32, k 10, n 512), five families, random starts, 20 steps
real    15 OpenML sets as in tab:openml-trf: 40 trials of 1024 rows and 32 columns, k 10
shapes  n 100 to 1,000,000, d 2 to 784, k 2 to 100: 10 steps and 10 of Lloyd's, beside 20 of Lloyd's
time    a step beside an iteration of Lloyd's algorithm, and what either reaches in the same time

Each part goes into results/symmetric.json when it is done. The folder of the sets is --data, or
LLOYDFORMER_DATA. All objectives are sums of squared distances; excess is in percent.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import RESULTS, provenance, save
from sklearn.exceptions import ConvergenceWarning
from symmetric_shapes import shapes
from symmetric_time import times

import lloydformer as lf
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.tasks import Tasks

SETS = (
    "gina-agnostic",
    "mfeat-factors",
    "ada-agnostic",
    "oil-spill",
    "pc4",
    "musk",
    "germancredit",
    "mfeat-fourier",
    "ionosphere",
    "mfeat-karhunen",
    "optdigits",
    "sonar",
    "sylva-agnostic",
    "ailerons",
    "pc3",
)
# The first five were looked at when the model was chosen, the others were not.
LOOKED_AT = 5
SEED = 2026


def lloyd(X: np.ndarray, start: np.ndarray, n_steps: int) -> float:
    return lf.KMeans(len(start), init=start, n_init=1, max_iter=n_steps, tol=0).fit(X).inertia_


def fit_learned(X: np.ndarray, start: np.ndarray, n_steps: int, polish: int = 0) -> float:
    """Without Lloyd's algorithm beside it."""
    model = lf.LearnedKMeans(
        len(start),
        init=start,
        n_init=1,
        n_steps=n_steps,
        max_iter=polish,
        compare_to_lloyd=False,
        tol=0,
    )
    return model.fit(X).inertia_


def best_of(X: np.ndarray, k: int, n_init: int) -> float:
    return lf.KMeans(k, n_init=n_init, random_state=SEED, tol=0).fit(X).inertia_


def tasks(n_tasks: int) -> dict[str, Any]:
    """Mean log objectives, and the part of the way from Lloyd's to the best of 20 that is gone."""
    rows = {}
    for family in FAMILIES:
        drawn = Tasks().draw((family,), torch.tensor([SEED]), torch.tensor(0), n_tasks)
        found = np.array(
            [
                [lloyd(X, C, 20), fit_learned(X, C, 20), best_of(X, 10, 20)]
                for X, C in zip(drawn.points[0].numpy(), drawn.centers[0].numpy(), strict=True)
            ]
        )
        ours, theirs, best = np.log(found[:, [1, 0, 2]]).mean(axis=0)
        rows[family] = {
            "lloyd": theirs,
            "learned": ours,
            "best of 20": best,
            "gap closed": (theirs - ours) / (theirs - best),
            "excess": 100 * (found[:, 1] / found[:, 2] - 1).mean(),
        }
        print(family, {name: round(value, 4) for name, value in rows[family].items()}, flush=True)
    return {"n_tasks": n_tasks, "seed": SEED, "rows": rows}


def trials(path: Path, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows and columns, scaled to [0, 1], and ten of the rows as a start."""
    X = np.load(path)["X"].astype(np.float32)
    span = np.ptp(X, axis=0)
    X = (X - X.min(axis=0)) / np.where(span > 0, span, 1)
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        rows, columns = (
            rng.permutation(m)[:most] for m, most in zip(X.shape, (1024, 32), strict=True)
        )
        part = np.ascontiguousarray(X[rows][:, columns])
        yield part, part[rng.permutation(len(part))[:10]]


def real(folder: Path, n_trials: int) -> dict[str, Any]:
    """Means over trials of each set; then over sets, the excess over the best of ten."""
    names = (
        "initial",
        "lloyd 10",
        "lloyd 20",
        "learned 10",
        "learned 10 + 10",
        "learned 20",
        "best of 10",
    )
    rows = {}
    for name in SETS:
        found = np.array(
            [
                [
                    fit_learned(X, C, 0),
                    lloyd(X, C, 10),
                    lloyd(X, C, 20),
                    fit_learned(X, C, 10),
                    fit_learned(X, C, 10, 10),
                    fit_learned(X, C, 20),
                    best_of(X, 10, 10),
                ]
                for X, C in trials(folder / f"{name}.npz", n_trials)
            ]
        )
        excess = 100 * (found / found[:, -1:] - 1).mean(axis=0)
        means = found.mean(axis=0)
        rows[name] = {
            "mean": dict(zip(names, means.tolist(), strict=True)),
            "mean log": dict(zip(names, np.log(found).mean(axis=0).tolist(), strict=True)),
            "excess": dict(zip(names, excess.tolist(), strict=True)),
            "below lloyd": {"10": bool(means[3] < means[1]), "10 + 10": bool(means[4] < means[2])},
        }
        print(name, {k: round(v, 2) for k, v in rows[name]["excess"].items()}, flush=True)
    return {
        "n_trials": n_trials,
        "seed": SEED,
        "rows": rows,
        "all": _over(rows, SETS),
        "never looked at": _over(rows, SETS[LOOKED_AT:]),
    }


def _over(rows: dict[str, Any], sets: tuple[str, ...]) -> dict[str, Any]:
    first = rows[sets[0]]
    return {
        "excess": {
            n: float(np.mean([rows[s]["excess"][n] for s in sets])) for n in first["excess"]
        },
        "sets below lloyd": {
            n: sum(rows[s]["below lloyd"][n] for s in sets) for n in first["below lloyd"]
        },
        "sets": len(sets),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["tasks", "real", "shapes", "time"])
    parser.add_argument("--data", type=Path, default=os.environ.get("LLOYDFORMER_DATA", "data"))
    parser.add_argument("--quick", action="store_true", help="a tenth of the problems, not saved")
    options = parser.parse_args()
    quick = options.quick
    warnings.simplefilter("ignore", ConvergenceWarning)  # rows may be equal, and so may starts
    for part in options.parts:

        def keep(found: dict[str, Any], part: str = part) -> None:
            path = RESULTS / "symmetric.json"
            before = json.loads(path.read_text()) if path.exists() else {}
            if not quick:
                save("symmetric", before | {part: {**provenance(), **found}})

        found = {
            "tasks": lambda: tasks(32 if quick else 320),
            "real": lambda: real(Path(options.data), 4 if quick else 40),
            "shapes": lambda keep=keep: shapes(quick, keep),
            "time": lambda: times(Path(options.data), quick),
        }[part]()
        print(json.dumps({k: v for k, v in found.items() if k != "rows"}, indent=1), flush=True)
        keep(found)


if __name__ == "__main__":
    main()
