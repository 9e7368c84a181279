"""summary.json: the settings, the result and the versions of a fit as one JSON object."""

from pathlib import Path
from typing import Any

from lloydformer.jobs.fit.outputs import FitOutputs, versions
from lloydformer.jobs.fit.request import FitRequest
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.runs import FitRuns


def summarize(
    request: FitRequest, runs: FitRuns, result: FitResult, outputs: FitOutputs
) -> dict[str, Any]:
    """`rows` has a fit for each k; everything else describes the fit that is written."""
    model = result.model
    return {
        "command": request.command,
        "versions": versions(),
        "data": request.data,
        "n": result.blocks.n_rows,
        "n_dropped": 0 if result.table is None else len(result.table.dropped),
        "d": result.blocks.n_features,
        "columns": list(result.columns),
        "scale": request.scale,
        "algorithm": request.settings.algorithm,
        "options": request.start_settings.printable,
        "k": result.n_clusters,
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "silhouette": result.silhouette,
        "silhouette_sample": len(result.sampled[0]),
        "seconds": result.seconds,
        "points_per_second": points_per_second(result),
        "sizes": result.sizes,
        "history": model.objective_history_.tolist(),
        "notes": runs.notes,
        "advice": runs.advice,
        "select": runs.select,
        "clusters": _clusters(result),
        "rows": {str(run.k): run.as_dict() for run in runs.done},
        "files": {Path(name).stem: str(outputs.folder / name) for name in outputs.names},
    }


def _clusters(result: FitResult) -> dict[str, dict[str, Any]]:
    """The size, share of the rows, mean distance and center of each cluster."""
    rows: dict[str, dict[str, Any]] = {}
    for number, center in enumerate(result.model.cluster_centers_.tolist()):
        rows[str(number)] = {
            "size": result.sizes[number],
            "share": result.sizes[number] / result.blocks.n_rows,
            "mean_distance": result.mean_distances[number],
            "center": center,
        }
        if result.left_out is not None:
            rows[str(number)]["left_out"] = result.left_out[number]
    return rows


def points_per_second(result: FitResult) -> float:
    """Rows times iterations of the best start, divided by the seconds of the whole fit."""
    return result.blocks.n_rows * max(result.model.n_iter_, 1) / max(result.seconds, 1e-9)
