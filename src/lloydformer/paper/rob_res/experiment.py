"""Measure tab:rob-res: all algorithms from the same random points of each data set.

The paper does not print the number of steps; ten are taken, as in tab:openml-trf. Lloyd's column
does not decide it: with 5, 10 and 20 steps its root mean square distance to the paper's, over seven
sets, is 0.027, 0.030 and 0.033. The differences between the columns are small, so the counts of the
text change from one run of ten trials to the next. The full run therefore takes five times the
paper's trials, counts in each ten of them, and uses the median.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from lloydformer.data.paths import in_data_folder
from lloydformer.estimators import KMeans, RobustKMeans, TrimmedKMeans
from lloydformer.numerics.objectives import log_kmeans_objective
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.datasets import REPAIRED, scaled
from lloydformer.paper.paper_numbers import row_names
from lloydformer.paper.rob_res.quantile_trim import quantile_trimmed
from lloydformer.paper.rob_res.settings import (
    KEPT,
    LABEL,
    N_CLUSTERS,
    N_STEPS,
    ROBUST,
    RUN,
    TRIMMED,
    count_below,
)
from lloydformer.paper.scope import Scope


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each data set, and one for the repaired ringnorm if it is in the folder."""
    sets = [*row_names(LABEL), *([REPAIRED] if in_data_folder(REPAIRED) else [])]
    return {name: partial(measured, name, scope) for name in sets}


def measured(name: str, scope: Scope) -> Record:
    """The log objective of each algorithm in each trial."""
    points = scaled(name).numpy()
    count = scope.count(RUN, 5 * RUN)
    trials = [one_trial(points, scope.seed + i, scope.device) for i in range(count)]
    return {column: [round(trial[column], 5) for trial in trials] for column in trials[0]}


def one_trial(points: Float[ndarray, "n d"], seed: int, device: str = "cpu") -> dict[str, float]:
    """The log objective over all points of the final centers of each algorithm."""
    rng = np.random.default_rng(seed)
    start = points[rng.permutation(len(points))[:N_CLUSTERS]]
    fit: dict[str, Any] = {
        "init": start, "n_init": 1, "max_iter": N_STEPS, "tol": 0.0, "random_state": seed,
        "device": device,
    }  # fmt: skip
    width = points.shape[1] ** 0.5  # the authors' scores are divided by sqrt(d)
    models = {"lloyd": KMeans(N_CLUSTERS, **fit)}
    models |= {c: TrimmedKMeans(N_CLUSTERS, keep=q, **fit) for c, q in KEPT.items()}
    models |= {
        c: RobustKMeans(N_CLUSTERS, inverse_temperature=g / width, **fit) for c, g in ROBUST.items()
    }
    centers = {column: model.fit(points).cluster_centers_ for column, model in models.items()}
    centers["initial"] = start
    for column, quantile in TRIMMED.items():
        centers[column] = quantile_trimmed(points, start, quantile, N_STEPS, rng)
    x = torch.from_numpy(points)
    return {
        column: float(log_kmeans_objective(x, torch.from_numpy(found)))
        for column, found in centers.items()
    }


def result(found: Mapping[str, Record]) -> Record:
    """A row of the table for each set.

    errors: standard errors of the mean differences to Lloyd's. runs: on how many sets an algorithm
    is below Lloyd's, in each ten of the trials. repaired: the row of the repaired ringnorm.
    """
    logs = {name: {c: np.array(v) for c, v in one.items()} for name, one in found.items()}
    ten = {name: logs[name] for name in row_names(LABEL)}
    n_trials = len(next(iter(ten.values()))["lloyd"])
    runs = [slice(i, i + RUN) for i in range(0, max(1, n_trials - RUN + 1), RUN)]
    settings = {"trimmed": TRIMMED, "robust": ROBUST}
    return {
        "rows": {name: _means(one) for name, one in ten.items()},
        "errors": {name: _errors(one) for name, one in ten.items()},
        "runs": {
            who: [
                count_below({name: _means(one, run) for name, one in ten.items()}, columns)
                for run in runs
            ]
            for who, columns in settings.items()
        },
        "repaired": _means(logs[REPAIRED]) if REPAIRED in logs else None,
        "n_trials": n_trials,
    }


def _means(logs: Mapping[str, ndarray], run: slice = slice(None)) -> Record:
    return {column: round(float(values[run].mean()), 6) for column, values in logs.items()}


def _errors(logs: Mapping[str, ndarray]) -> Record:
    """Standard errors of the mean differences to Lloyd's; 0 for a single trial."""
    m = len(logs["lloyd"])
    differences = {column: values - logs["lloyd"] for column, values in logs.items()}
    return {c: round(float(v.std(ddof=min(1, m - 1)) / m**0.5), 6) for c, v in differences.items()}
