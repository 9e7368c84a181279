"""The pictures on the page of a fit."""

from typing import TYPE_CHECKING

import torch

from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.runs import FitRuns
from lloydformer.plots.clusters import cluster_map, cluster_sizes, plane_of, silhouette_blades
from lloydformer.plots.curves import descent, over_numbers
from lloydformer.report import Part, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULES = {
    "calinski-harabasz": "has the largest index",
    "gap": "is the smallest within a standard error of the largest gap",
    "stability": "is the largest with nearly the best agreement between random subsets",
}
MAX_CLUSTERS = 40
"""Clusters drawn in pictures: the largest."""


def _axes(height: float = 3.4) -> "Axes":
    """Axes of a new figure, made without pyplot, which would open a window and keep the figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, height), layout="constrained").add_subplot()


def _drawn(ax: "Axes", caption: str, alt: str) -> Part:
    return figure(ax.figure, caption, alt)  # type: ignore[arg-type]


def over_numbers_of_clusters(runs: FitRuns, result: FitResult) -> list[Part]:
    """Objective, silhouette and the criterion of each number of clusters."""
    ks, chosen = [run.k for run in runs.done], result.n_clusters
    falling = over_numbers(ks, [r.objective for r in runs.done], "objective", chosen, _axes())
    scores = [run.silhouette for run in runs.done]
    silhouette = over_numbers(ks, scores, "mean silhouette", chosen, _axes())
    chosen_by = f": k = {chosen} has the best and is shown on this page."
    found = [
        _drawn(falling, "Objective: it falls as k grows; after a bend, more clusters help less.",
               "Objective for each number of clusters"),
        _drawn(silhouette, f"Silhouette{chosen_by if runs.select == 'silhouette' else '.'}",
               "Silhouette for each number of clusters"),
    ]  # fmt: skip
    if runs.select == "silhouette":
        return found
    name = runs.select.capitalize()
    curve = over_numbers(ks, [run.value for run in runs.done], runs.select, chosen, _axes())
    words = f"{name}: k = {chosen} {_RULES[runs.select]} and is shown on this page."
    return [_drawn(curve, words, f"{name} for each number of clusters"), *found]


def drawn_clusters(result: FitResult) -> list[int]:
    """The largest clusters, in the order of their numbers."""
    by_size = sorted(range(result.n_clusters), key=lambda j: -result.sizes[j])
    return sorted(by_size[:MAX_CLUSTERS])


def _height(result: FitResult) -> float:
    """The height in inches of a picture with a line for each cluster."""
    return max(2.2, 0.25 * min(result.n_clusters, MAX_CLUSTERS) + 0.9)


def sizes(result: FitResult) -> Part:
    """Bars with the number of rows of each cluster."""
    counts = {j: result.sizes[j] for j in drawn_clusters(result)}
    ax = cluster_sizes(counts, _axes(_height(result)), result.blocks.n_rows)
    few = result.n_clusters <= MAX_CLUSTERS
    which = "each cluster" if few else f"the {MAX_CLUSTERS} largest clusters"
    left_out = sum(result.left_out or [])
    more = f"; {left_out:,} rows were left out" if result.left_out is not None else ""
    return _drawn(ax, f"Sizes: rows in {which}{more}.", "Bars with the sizes of the clusters")


def map_of_sample(result: FitResult) -> Part:
    """The sample and the centers on the first two principal components of the sample."""
    out = result.assignment.left_out
    kept = result.sample.rows >= 0 if out is None else ~out[result.sample.rows]
    middle, components = plane_of(result.sample.points[kept])
    centers = result.blocks.layout.place(torch.as_tensor(result.model.cluster_centers_))
    labels = torch.where(kept, result.assignment.clusters[result.sample.rows].long(), -1)
    flat = [(rows - middle) @ components.T for rows in (result.sample.points, centers)]
    numbered = {j: (flat[1][j, 0].item(), flat[1][j, 1].item()) for j in drawn_clusters(result)}
    ax = cluster_map(flat[0], labels, numbered, _axes(4.2))
    crosses = "; crosses were left out" if out is not None else ""
    return _drawn(
        ax, f"Map: {len(labels):,} rows on their first two principal components, centers with "
        f"their numbers{crosses}.", "Points by cluster in two dimensions"
    )  # fmt: skip


def silhouettes(result: FitResult) -> Part:
    """The silhouettes of the sample, cluster by cluster."""
    clusters, values = result.sampled
    drawn = torch.isin(clusters, torch.tensor(drawn_clusters(result)))
    axes = _axes(_height(result))
    ax = silhouette_blades(values[drawn], clusters[drawn], axes, result.silhouette)
    caption = (
        "Silhouettes: near 1 a row is well inside its cluster, near 0 it lies between two "
        f"clusters, below 0 it is nearer to another; a sample of {len(values):,} rows."
    )
    return _drawn(ax, caption, "Silhouettes by cluster")


def objective(result: FitResult) -> Part:
    """The objective after each iteration."""
    ax = descent(result.model.objective_history_.tolist(), _axes())
    return _drawn(ax, "Objective after each iteration.", "Curve of the objective")
