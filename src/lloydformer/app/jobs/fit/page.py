"""The HTML page of a fit: pictures, profiles, centers, far rows, settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from markupsafe import Markup, escape

from lloydformer.app.jobs.fit.outputs import versions
from lloydformer.app.jobs.fit.profiles import profile_clusters, show_rows
from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.app.jobs.fit.scale_notes import describe_scales
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.app.jobs.text_values import format_count, format_number
from lloydformer.plots.clusters import cluster_map, cluster_sizes, principal_plane, silhouette_bands
from lloydformer.plots.curves import criterion_curve, history_curve
from lloydformer.plots.palette import cluster_colour
from lloydformer.plots.report import figure, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Limits of what a reader takes in, chosen by hand; the files beside the page have everything.
MAX_CLUSTERS = 40  # clusters in pictures and profiles: the largest
MAX_FAR = 20  # rows in the table of farthest rows
MAX_COLUMNS = 60  # columns in the tables of centers and rows
MAX_TRAITS = 6  # columns in the profile of a cluster
# Coordinates that are smaller, compared with the largest of their column, are rounding errors of
# sums in float64, and shown as 0.
_ROUNDING = 1e-12
_RULES = {
    "silhouette": "has the best",
    "calinski-harabasz": "has the largest index",
    "gap": "is the smallest within a standard error of the largest gap",
    "stability": "is the largest with nearly the best agreement between random subsets",
}


def fit_page(settings: FitSettings, command: str, result: FitResult) -> str:
    """Return a self-contained HTML page; its text is in report.html."""
    profiles = profile_clusters(result, largest_clusters(result))
    typical = {p.typical: [str(p.number)] for p in profiles if p.typical is not None}
    far = _far_rows(result)
    measure = "1 - cosine" if result.model.compares_directions else "distance"
    centers = np.asarray(result.model.cluster_centers_)[:, :MAX_COLUMNS]
    is_rounding = np.abs(centers) < _ROUNDING * np.abs(centers).max(axis=0)
    pairs = zip(result.totals.sizes, np.where(is_rounding, 0.0, centers).tolist(), strict=True)
    center_rows = [
        [str(j), f"{size:,}", *map(format_number, center)] for j, (size, center) in enumerate(pairs)
    ]
    defaults = result.model.get_params()
    parameters = {
        "data": escape(settings.data),
        "algorithm": settings.algorithm,
        "k": result.n_clusters,
        "scale": escape(
            describe_scales(settings.scale_method, result.columns, result.table.choices)
        ),
        "missing values": settings.missing,
        **{name: defaults[name] for name in ("n_init", "max_iter", "tol") if name in defaults},
        **settings.printable_parameters,
    }
    return render(
        Path(__file__).with_name("report.html"),
        title=f"{format_count(result.n_clusters, 'cluster')} of {settings.data}",
        settings=settings,
        command=command,
        result=result,
        runs=draw_runs(settings.select, result) if len(result.runs) > 1 else [],
        pictures=draw_clusters(result),
        profiles=profiles,
        max_traits=MAX_TRAITS,
        typical_rows=_rows_table(result, typical, ["cluster"]),
        max_columns=MAX_COLUMNS,
        centers=(["cluster", "size", *map(escape, result.columns[:MAX_COLUMNS])], center_rows),
        n_far=len(far),
        far_rows=_rows_table(result, far, ["cluster", measure]) if far else None,
        versions=versions(),
        # str() would turn the escaped name of the data into plain text.
        parameters=[[n, v if isinstance(v, str) else str(v)] for n, v in parameters.items()],
        format_count=format_count,
        format_number=format_number,
        cluster_colour=cluster_colour,
    )


def _far_rows(result: FitResult) -> dict[int, list[str]]:
    """Return cluster and distance of the rows farthest from their centers.

    If rows were left out, these are the farthest of those.
    """
    assignment, out = result.assignment, result.assignment.left_out
    distances = assignment.distances
    ranked = distances if out is None else torch.where(out, distances, -1.0)
    count = min(MAX_FAR, len(distances) if out is None else int(out.sum()))
    return {
        row: [str(int(assignment.clusters[row])), format_number(distances[row].item())]
        for row in ranked.topk(count).indices.tolist()
    }


def draw_clusters(result: FitResult) -> list[Markup]:
    """Draw sizes, map and silhouettes of the clusters, and the objective."""
    pictures = [draw_sizes(result), draw_map(result)]
    if result.silhouette is not None:
        pictures.append(draw_silhouettes(result))
    curve = history_curve(result.model.objective_history_.tolist(), _axes())
    words = "Objective after each iteration."
    return [*pictures, _figure(curve, words, "Curve of the objective")]


def _axes(height: float = 3.4) -> "Axes":
    """Return axes of a new figure.

    They are made without pyplot, which would open a window and keep the figure in memory.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, height), layout="constrained").add_subplot()


def _figure(ax: "Axes", caption: str, alt: str) -> Markup:
    return figure(ax.figure, caption, alt)  # type: ignore[arg-type]


def draw_runs(select: str, result: FitResult) -> list[Markup]:
    """Draw objective, silhouette and the criterion over the numbers of clusters."""
    runs, chosen = result.runs, result.n_clusters
    falls = "Objective: it falls as k grows; after a bend, more clusters help less."
    curves: list[tuple[str, str, Sequence[float | None], str]] = [
        ("Objective", "objective", [run.objective for run in runs], falls),
        ("Silhouette", "mean silhouette", [run.silhouette for run in runs], "Silhouette."),
    ]
    if select != "silhouette":
        curves.insert(0, (select.capitalize(), select, [run.value for run in runs], ""))
    figures = []
    for name, label, values, words in curves:
        if name == select.capitalize():
            words = f"{name}: k = {chosen} {_RULES[select]} and is shown on this page."
        curve = criterion_curve([run.k for run in runs], values, label, chosen, _axes())
        figures.append(_figure(curve, words, f"{name} for each number of clusters"))
    return figures


def largest_clusters(result: FitResult) -> list[int]:
    """Return the clusters that are drawn, in the order of their numbers."""
    sizes = result.totals.sizes
    return sorted(sorted(range(len(sizes)), key=lambda j: -sizes[j])[:MAX_CLUSTERS])


def _height(result: FitResult) -> float:
    """Return the height in inches of a picture with a line for each cluster."""
    return max(2.2, 0.25 * min(result.n_clusters, MAX_CLUSTERS) + 0.9)


def draw_sizes(result: FitResult) -> Markup:
    """Draw bars with the number of rows of each cluster."""
    sizes, left_out = result.totals.sizes, result.totals.left_out
    counts = {j: sizes[j] for j in largest_clusters(result)}
    ax = cluster_sizes(counts, _axes(_height(result)), result.blocks.n_rows)
    are_few = result.n_clusters <= MAX_CLUSTERS
    which = "each cluster" if are_few else f"the {MAX_CLUSTERS} largest clusters"
    more = "" if left_out is None else f"; {sum(left_out):,} rows were left out"
    return _figure(ax, f"Sizes: rows in {which}{more}.", "Bars with the sizes of the clusters")


def draw_map(result: FitResult) -> Markup:
    """Draw the sample and the centers on the first two principal components of the sample."""
    sample, kept = result.sample, result.kept_sample
    middle, components = principal_plane(sample.points[kept])  # outliers would turn the plane
    # Centers are in the units of the data, points as the fit compared them.
    centers = result.blocks.layout.to_row_units(torch.as_tensor(result.model.cluster_centers_))
    points, centers = ((rows - middle) @ components.T for rows in (sample.points, centers))
    labels = torch.where(kept, result.assignment.clusters[sample.rows].long(), -1)
    numbered = {j: (centers[j, 0].item(), centers[j, 1].item()) for j in largest_clusters(result)}
    ax = cluster_map(points, labels, numbered, _axes(4.2))
    crosses = "" if result.totals.left_out is None else "; crosses were left out"
    caption = (
        f"Map: {len(labels):,} rows on their first two principal components, centers with their "
        f"numbers{crosses}."
    )
    return _figure(ax, caption, "Points by cluster in two dimensions")


def draw_silhouettes(result: FitResult) -> Markup:
    """Draw the silhouettes of the sample, cluster by cluster."""
    clusters, values = result.sample_silhouettes
    shown = torch.isin(clusters, torch.tensor(largest_clusters(result)))
    axes = _axes(_height(result))
    ax = silhouette_bands(values[shown], clusters[shown], axes, result.silhouette)
    caption = (
        "Silhouettes: near 1 a row is well inside its cluster, near 0 it lies between two "
        f"clusters, below 0 it is nearer to another; a sample of {len(values):,} rows."
    )
    return _figure(ax, caption, "Silhouettes by cluster")


def _rows_table(
    result: FitResult, before: dict[int, list[str]], names: list[str]
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of a table of rows; the cells `before` the values have these names.

    Names and values of the data are escaped here, so that they are shown as they are: signs in
    other cells would be marks.
    """
    columns, rows = show_rows(result, list(before))
    count = MAX_COLUMNS + 2
    shown = [[*b, *map(escape, r[:count])] for b, r in zip(before.values(), rows, strict=True)]
    return [*names, *map(escape, columns[:count])], shown
