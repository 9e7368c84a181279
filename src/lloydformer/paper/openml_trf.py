"""tab:openml-trf: the trained layer on 15 real data sets, next to Lloyd's algorithm.

Each column of a whole set is scaled to [0, 1]; then every trial draws rows, columns and centers.
(If columns were scaled after the draw, the results for ailerons would be 0.5 above the paper's.)
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import compare_on
from lloydformer.learning.pretrained import load
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Piece, Record, Scope, TextTable
from lloydformer.paper.datasets import load_scaled_points
from lloydformer.paper.paper_numbers import beside, paper_row, row_names
from lloydformer.paper.verdict import Verdict, beyond, claim, find_tolerance, judge, number
from lloydformer.solving.batch.fit import fit_batch

LABEL = "openml-trf"
N_STEPS, N_CLUSTERS, N_STARTS = 10, 10, 10
# The trained layer takes points of 32 dimensions.
LAYER, MOST_COLUMNS = "d32-k10", 32
MOST_ROWS = 1024
COLUMNS = {"initial": "Initial objective", "lloyd": "Lloyd's", "transformer": "k-means transformer"}
RELATIVE = "relative_diff_percent"
# Columns that the paper does not have.
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "lloyd_longer": f"Lloyd's, {2 * N_STEPS} steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}
# The paper's number of trials; fewer refute nothing.
TRIALS = 40


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each data set."""
    return {name: partial(measure, name, scope) for name in row_names(LABEL)}


def measure(name: str, scope: Scope) -> Record:
    """Return mean and standard deviation of the log objectives over the trials, by column."""
    points = load_scaled_points(name)
    # 16 trials in a quick run, chosen by hand
    trials = draw_trials(points, scope.count(16, TRIALS), np.random.default_rng(scope.seed))
    batch = Batch(*(part.to(scope.device) for part in trials))
    layer = load(LAYER)
    weights = layer.weights.to(scope.device)
    comparison = compare_on(batch, layer.layer, weights, N_STEPS, scope.seed)

    def run_lloyd(n_steps: int, **start: Any) -> Float[Tensor, " b"]:
        """Return the log objective after this many steps; `start`: options of `fit_batch`."""
        # tol 0: exactly this many steps, as the circuit has layers
        fit = fit_batch(batch.points[0], N_CLUSTERS, max_iter=n_steps, tol=0.0, **start)
        return fit.inertia.log().cpu()

    seed = {"random_state": scope.seed}
    logs = {
        "initial": comparison.by_lloyd[0, :, 0],
        "lloyd": comparison.by_lloyd[0, :, -1],
        "transformer": comparison.by_layer[0, :, -1],
        "polished": run_lloyd(N_STEPS, init=comparison.centers[0].to(batch.points)),
        "lloyd_longer": run_lloyd(2 * N_STEPS, init=batch.centers[0]),
        "greedy": run_lloyd(N_STEPS, **seed),
        "ten_random": run_lloyd(N_STEPS, init="random", n_init=N_STARTS, **seed),
        "ten_greedy": run_lloyd(N_STEPS, n_init=N_STARTS, **seed),
    }
    values = {column: log.double() for column, log in logs.items()}
    return {
        "n_points": len(points),
        "n_features": points.shape[1],
        "n_trials": comparison.n_tasks,
        "mean": {column: round(float(v.mean()), 5) for column, v in values.items()},
        "std": {column: round(float(v.std(correction=0)), 5) for column, v in values.items()},
    }


def draw_trials(points: Float[Tensor, "n d"], n_trials: int, rng: np.random.Generator) -> Batch:
    """Return random rows and columns for each trial, and some of these points as centers."""
    n, d = min(MOST_ROWS, len(points)), min(MOST_COLUMNS, points.shape[1])
    parts = []
    for _ in range(n_trials):
        rows, columns = rng.permutation(len(points))[:n], rng.permutation(points.shape[1])[:d]
        parts.append(points[rows][:, columns])
    # drawn after all parts: another order would give other numbers than the published ones
    starts = [part[rng.permutation(n)[:N_CLUSTERS]] for part in parts]
    return Batch(torch.stack(parts).float()[None], torch.stack(starts).float()[None])


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row of the table for each set: the paper's columns, then BEYOND."""
    rows = {}
    for name, one in outputs.items():
        mean, std = one["mean"], one["std"]
        # of the logarithms, as the paper computes it
        relative = 100 * (mean["transformer"] - mean["lloyd"]) / mean["lloyd"]
        rows[name] = {
            **{column: mean[column] for column in COLUMNS},
            **{f"{column}_std": std[column] for column in COLUMNS},
            RELATIVE: round(relative, 3),
            **{column: mean[column] for column in BEYOND},
        }
    return {
        "rows": rows,
        "sizes": {name: [one["n_points"], one["n_features"]] for name, one in outputs.items()},
        "n_trials": next(iter(outputs.values()))["n_trials"],
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentences of the text, on the numbers, and findings beyond."""
    rows = result["rows"]
    enough = result["n_trials"] >= TRIALS
    better = sum(row["transformer"] < row["initial"] for row in rows.values())
    relative = [row[RELATIVE] for row in rows.values()]
    higher = np.expm1(np.mean([row["transformer"] - row["lloyd"] for row in rows.values()]))
    polished = sum(row["polished"] < row["lloyd_longer"] for row in rows.values())
    greedy = sum(row["greedy"] < row["lloyd"] for row in rows.values())
    return [
        claim(
            "openml-trf.improves",
            f"on {better} of {len(rows)} sets",
            judge(better == len(rows), enough),
        ),
        claim(
            "openml-trf.behind-lloyd",
            f"by {min(relative):.1f} % to {max(relative):.1f} %",
            # 1 to 7 in whole percent
            judge(min(relative) >= 0.5 and max(relative) < 7.5, enough),
        ),
        *_numbers(rows),
        beyond("openml-trf.objective", f"{100 * higher:.0f} % on average"),
        beyond("openml-trf.polished", f"on {polished} of {len(rows)} sets"),
        beyond("openml-trf.greedy", f"on {greedy} of {len(rows)} sets"),
    ]


def _numbers(rows: Record) -> Iterator[Verdict]:
    """Yield verdicts on the table: means, standard deviations, and relative differences."""
    kinds = {
        **{column: (column, "means") for column in COLUMNS},
        **{f"{column}_std": (f"std of {column}", "spreads") for column in COLUMNS},
        RELATIVE: ("relative diff", "percentages"),
    }
    for name in row_names(LABEL):
        for key, theirs in paper_row(LABEL, name).items():
            about, kind = kinds[key]
            near = find_tolerance(f"openml-trf.{kind}")
            yield number(f"{name}, {about}", "tab:openml-trf", theirs, rows[name][key], near)


def tables(result: Record) -> Sequence[TextTable]:
    """Return the paper's table with its numbers in brackets, then the columns BEYOND."""
    rows, over = result["rows"], f"{result['n_trials']} trials, {N_STEPS} steps"
    shown = ("lloyd", "transformer", *BEYOND)

    def cells(name: str) -> list[str]:
        row, paper = rows[name], paper_row(LABEL, name)
        pairs = [
            f"{row[c]:.2f} ± {row[f'{c}_std']:.2f} ({paper[c]:.2f} ± {paper[f'{c}_std']:.2f})"
            for c in COLUMNS
        ]
        return [name, *pairs, f"{beside(row[RELATIVE], paper[RELATIVE], 2)} %"]

    return [
        TextTable(
            f"Mean and standard deviation of the log objective, {over} (in brackets the paper's)",
            ["Dataset", *COLUMNS.values(), "relative difference"],
            [cells(name) for name in row_names(LABEL)],
        ),
        TextTable(
            f"Beyond the paper's comparison: mean log objective, {over}",
            ["Dataset", "Lloyd's", "transformer", *BEYOND.values()],
            [[n, *(f"{rows[n][column]:.2f}" for column in shown)] for n in row_names(LABEL)],
        ),
    ]
