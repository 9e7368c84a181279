"""The HTML page of a fit: sizes, map, silhouettes, objective, centers, far rows, settings."""

import numpy as np
import torch

from lloydformer.jobs.fit import pictures
from lloydformer.jobs.fit.outputs import versions
from lloydformer.jobs.fit.request import FitRequest
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.runs import FitRuns
from lloydformer.jobs.fit.words import counted, plain
from lloydformer.report import Part, code, heading, page, section, table, text

MAX_FAR = 20
"""Rows listed in the table of farthest rows."""
MAX_COLUMNS = 60
"""Columns shown in the table of centers."""


def fit_page(request: FitRequest, runs: FitRuns, result: FitResult) -> str:
    """A self-contained HTML page."""
    several = "clusters" if result.n_clusters > 1 else "cluster"
    title = f"{result.n_clusters} {several} of {request.data}"
    parts = [heading(title, level=1), text(*_lead(request, result), lead=True)]
    parts += [text(f"Note: {note}") for note in runs.notes]
    if len(runs.done) > 1:
        parts += [
            heading("The number of clusters"),
            section(*pictures.over_numbers_of_clusters(runs, result), kind="columns"),
        ]
    inside = [] if result.silhouette is None else [pictures.silhouettes(result)]
    shown = [
        pictures.sizes(result),
        pictures.map_of_sample(result),
        *inside,
        pictures.objective(result),
    ]
    parts += [heading("The clusters"), section(*shown, kind="columns")]
    parts += [heading("Centers"), *_centers(result)]
    aside = [section(heading("Farthest rows"), *_far(result)),
             section(heading("Settings"), *_settings(request, result))]  # fmt: skip
    parts += [section(*aside, kind="columns"), code(request.command)]
    return page(title, parts)


def _lead(request: FitRequest, result: FitResult) -> list[str]:
    n, d = result.blocks.n_rows, result.blocks.n_features
    most = ", the most allowed," if result.reached_max_iter else ","
    words = (
        f"{n:,} rows with {d:,} columns, clustered by **{request.settings.algorithm}**: objective "
        f"**{plain(result.model.inertia_, 6)}** after "
        f"{counted(result.model.n_iter_, 'iteration')}{most} "
        f"in {result.seconds:.2g} seconds."
    )
    if result.silhouette is None:
        return [words]
    return [f"{words} Mean silhouette of a sample of {len(result.sampled[0]):,} rows: "
            f"**{result.silhouette:.2f}**."]  # fmt: skip


def _centers(result: FitResult) -> list[Part]:
    names = result.columns[:MAX_COLUMNS]
    rest = len(result.columns) - len(names)
    more = f" The first {len(names)} of {len(result.columns)} columns are shown." if rest else ""
    centers = np.asarray(result.model.cluster_centers_)[:, :MAX_COLUMNS].tolist()
    rows = [[str(j), f"{result.sizes[j]:,}", *(f"{value:.4g}" for value in center)]
            for j, center in enumerate(centers)]  # fmt: skip
    words = f"In the units of the data.{more} `centers.csv` has all digits."
    return [text(words), table(["cluster", "size", *names], rows)]


def _far(result: FitResult) -> list[Part]:
    """The rows farthest from their centers; if rows were left out, the farthest of those."""
    clusters, away, out = (getattr(result.assignment, name)
                           for name in ("clusters", "distances", "left_out"))  # fmt: skip
    ranked = away if out is None else torch.where(out, away, -1.0)
    count = min(MAX_FAR, len(away) if out is None else int(out.sum()))
    if count == 0:
        return [text("No row was left out.")]
    rows = [[str(row + 1), str(int(clusters[row])), f"{away[row].item():.4g}"]
            for row in ranked.topk(count).indices.tolist()]  # fmt: skip
    which = f"The {count} rows farthest from their centers"
    if out is not None:
        which = f"{count} of the {int(out.sum()):,} rows left out, farthest first"
    measure = "1 - cosine" if result.model.compares_directions else "distance"
    scaled = "; distances are in scaled units" if result.blocks.scaling is not None else ""
    words = f"{which}. Rows are counted from 1{scaled}."
    return [text(words), table(["row", "cluster", measure], rows)]


def _settings(request: FitRequest, result: FitResult) -> list[Part]:
    made = result.model.get_params()
    shown = {name: made[name] for name in ("n_init", "max_iter", "tol") if name in made}
    settings = {
        "data": request.data, "algorithm": request.settings.algorithm, "k": result.n_clusters,
        "scale": request.scale or "none", **shown, **request.start_settings.printable,
    }  # fmt: skip
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    rows = [[str(name), str(value)] for name, value in settings.items()]
    return [text(f"Made with {made_with}."), table(["setting", "value"], rows)]
