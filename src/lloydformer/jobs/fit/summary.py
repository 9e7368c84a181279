"""A fit as one JSON object: what was asked for, what was found, and with which versions."""

from pathlib import Path
from typing import Any

from lloydformer.jobs.fit.found import Found
from lloydformer.jobs.fit.outputs import Outputs, versions
from lloydformer.jobs.fit.request import Request
from lloydformer.jobs.fit.runs import Runs


def summary(request: Request, runs: Runs, found: Found, outputs: Outputs) -> dict[str, Any]:
    """`rows` are the runs by k, `clusters` those that were written."""
    model = found.model
    return {
        "command": request.command,
        "versions": versions(),
        "data": request.data,
        "n": found.blocks.n_rows,
        "d": found.blocks.n_features,
        "columns": list(found.columns),
        "scale": request.scale,
        "algorithm": request.settings.algorithm,
        "options": request.started.printable,
        "k": found.n_clusters,
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "silhouette": found.silhouette,
        "silhouette_sample": len(found.sampled[0]),
        "seconds": found.seconds,
        "points_per_second": points_per_second(found),
        "sizes": found.sizes,
        "history": model.objective_history_.tolist(),
        "notes": runs.notes,
        "clusters": clusters(found),
        "rows": {str(run.k): run.as_dict() for run in runs.done},
        "files": {Path(name).stem: str(outputs.folder / name) for name in outputs.names},
    }


def clusters(found: Found) -> dict[str, dict[str, Any]]:
    """Each cluster's size, share of the rows, mean distance, and center."""
    rows: dict[str, dict[str, Any]] = {}
    for number, center in enumerate(found.model.cluster_centers_.tolist()):
        rows[str(number)] = {
            "size": found.sizes[number],
            "share": found.sizes[number] / found.blocks.n_rows,
            "mean_distance": found.mean_distances[number],
            "center": center,
        }
        if found.left_out is not None:
            rows[str(number)]["left_out"] = found.left_out[number]
    return rows


def points_per_second(found: Found) -> float:
    """Rows times iterations of the best start, in a second of the whole fit."""
    return found.blocks.n_rows * max(found.model.n_iter_, 1) / max(found.seconds, 1e-9)
