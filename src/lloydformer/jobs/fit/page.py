"""The page of a fit: sizes, objective, map, silhouettes, centers, far points, settings."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from lloydformer.jobs.fit.found import Found, as_seen
from lloydformer.jobs.fit.outputs import versions
from lloydformer.jobs.fit.request import Request
from lloydformer.jobs.fit.runs import Runs
from lloydformer.plots.clusters import cluster_map, cluster_sizes, plane_of, silhouette_blades
from lloydformer.plots.curves import descent, over_numbers
from lloydformer.report import Part, code, figure, heading, page, section, table, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 20
"""So many of the farthest points are listed."""
MOST = 40
"""So many clusters are drawn, the largest."""
WIDEST = 60
"""So many columns of the centers are shown."""


def fit_page(request: Request, runs: Runs, found: Found) -> str:
    """One self-contained page of HTML."""
    several = "clusters" if found.n_clusters > 1 else "cluster"
    title = f"{found.n_clusters} {several} of {request.data}"
    parts = [heading(title, level=1), text(*_lead(request, found), lead=True)]
    parts += [text(f"Note: {note}") for note in runs.notes]
    if len(runs.done) > 1:
        parts += [
            heading("The number of clusters"),
            section(*_numbers(runs, found), kind="columns"),
        ]
    inside = [] if found.silhouette is None else [_silhouettes(found)]
    shown = [_sizes(found), _map(found), *inside, _descent(found)]
    parts += [heading("The clusters"), section(*shown, kind="columns")]
    parts += [heading("Centers"), *_centers(found)]
    aside = [section(heading("Farthest points"), *_far(found)),
             section(heading("Settings"), *_settings(request, found))]  # fmt: skip
    parts += [section(*aside, kind="columns"), code(request.command)]
    return page(title, parts)


def _lead(request: Request, found: Found) -> list[str]:
    n, d = found.blocks.n_rows, found.blocks.n_features
    most = ", the most allowed," if found.ran_out else ","
    words = (
        f"{n:,} rows with {d:,} columns, clustered by **{request.settings.algorithm}**: objective "
        f"**{found.model.inertia_:.6g}** after {found.model.n_iter_} iterations{most} "
        f"in {found.seconds:.2g} seconds."
    )
    if found.silhouette is None:
        return [words]
    return [f"{words} Mean silhouette of a sample of {len(found.sampled[0]):,} rows: "
            f"**{found.silhouette:.2f}**."]  # fmt: skip


def _axes(height: float = 3.4) -> "Axes":
    """Not pyplot's: pictures that are saved need no window, and are forgotten."""
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, height), layout="constrained").add_subplot()


def _drawn(ax: "Axes", caption: str, alt: str) -> Part:
    return figure(ax.figure, caption, alt)  # type: ignore[arg-type]


def _numbers(runs: Runs, found: Found) -> list[Part]:
    ks, chosen = [run.k for run in runs.done], found.n_clusters
    objective = over_numbers(ks, [r.objective for r in runs.done], "objective", chosen, _axes())
    scores = [run.silhouette for run in runs.done]
    silhouette = over_numbers(ks, scores, "mean silhouette", chosen, _axes())
    return [
        _drawn(objective, "Objective: it falls with k; a bend is where more clusters help less.",
               "Objective for each number of clusters"),
        _drawn(silhouette, f"Silhouette: k = {chosen} has the best, and is shown on this page.",
               "Silhouette for each number of clusters"),
    ]  # fmt: skip


def _drawn_clusters(found: Found) -> list[int]:
    """The largest ones, in the order of their numbers."""
    by_size = sorted(range(found.n_clusters), key=lambda j: -found.sizes[j])
    return sorted(by_size[:MOST])


def _high(found: Found) -> float:
    """Inches for a picture with a line for each cluster."""
    return max(2.2, 0.25 * min(found.n_clusters, MOST) + 0.9)


def _sizes(found: Found) -> Part:
    sizes = {j: found.sizes[j] for j in _drawn_clusters(found)}
    ax = cluster_sizes(sizes, _axes(_high(found)), found.blocks.n_rows)
    which = "each cluster" if found.n_clusters <= MOST else f"the {MOST} largest clusters"
    left_out = sum(found.left_out or [])
    more = f"; {left_out:,} rows were left out" if found.left_out is not None else ""
    return _drawn(ax, f"Sizes: rows in {which}{more}.", "Bars with the sizes of the clusters")


def _map(found: Found) -> Part:
    out = found.assignment.left_out
    kept = found.sample.rows >= 0 if out is None else ~out[found.sample.rows]
    middle, components = plane_of(found.sample.points[kept])
    seen = as_seen(found.model, found.blocks)
    centers = seen.layout.place(torch.as_tensor(found.model.cluster_centers_))
    labels = torch.where(kept, found.assignment.clusters[found.sample.rows].long(), -1)
    flat = [(rows - middle) @ components.T for rows in (found.sample.points, centers)]
    numbered = {j: (flat[1][j, 0].item(), flat[1][j, 1].item()) for j in _drawn_clusters(found)}
    ax = cluster_map(flat[0], labels, numbered, _axes(4.2))
    crosses = "; crosses were left out" if out is not None else ""
    return _drawn(
        ax, f"Map: {len(labels):,} rows on their first two principal components, centers with "
        f"their numbers{crosses}.", "Points by cluster in two dimensions"
    )  # fmt: skip


def _silhouettes(found: Found) -> Part:
    clusters, values = found.sampled
    drawn = torch.isin(clusters, torch.tensor(_drawn_clusters(found)))
    ax = silhouette_blades(values[drawn], clusters[drawn], _axes(_high(found)), found.silhouette)
    return _drawn(
        ax, "Silhouettes: near 1 a row is well inside its cluster, near 0 between two, below 0 "
        f"nearer to another one; a sample of {len(values):,} rows.", "Silhouettes by cluster"
    )  # fmt: skip


def _descent(found: Found) -> Part:
    ax = descent(found.model.objective_history_.tolist(), _axes())
    return _drawn(ax, "Objective from iteration to iteration.", "Curve of the objective")


def _centers(found: Found) -> list[Part]:
    names = found.columns[:WIDEST]
    rest = len(found.columns) - len(names)
    more = f" The first {len(names)} of {len(found.columns)} columns." if rest else ""
    centers = np.asarray(found.model.cluster_centers_)[:, :WIDEST].tolist()
    rows = [[str(j), f"{found.sizes[j]:,}", *(f"{value:.4g}" for value in center)]
            for j, center in enumerate(centers)]  # fmt: skip
    words = f"In the units of the data.{more} All digits are in `centers.csv`."
    return [text(words), table(["cluster", "size", *names], rows)]


def _far(found: Found) -> list[Part]:
    """The points farthest from their centers; where some are left out, these."""
    clusters, away, out = (getattr(found.assignment, name)
                           for name in ("clusters", "distances", "left_out"))  # fmt: skip
    ranked = away if out is None else torch.where(out, away, -1.0)
    count = min(FAR, len(away) if out is None else int(out.sum()))
    if count == 0:
        return [text("No row was left out.")]
    rows = [[str(row + 1), str(int(clusters[row])), f"{away[row].item():.4g}"]
            for row in ranked.topk(count).indices.tolist()]  # fmt: skip
    which = f"The {count} rows farthest from their centers"
    if out is not None:
        which = f"{count} of the {int(out.sum()):,} rows left out, the farthest first"
    measure = "1 - cosine" if found.model._directions else "distance"
    scaled = "; distances are in scaled units" if found.model._view.scaling is not None else ""
    words = f"{which}. Rows are counted from 1{scaled}."
    return [text(words), table(["row", "cluster", measure], rows)]


def _settings(request: Request, found: Found) -> list[Part]:
    made = found.model.get_params()
    shown = {name: made[name] for name in ("n_init", "max_iter", "tol") if name in made}
    settings = {
        "data": request.data, "algorithm": request.settings.algorithm, "k": found.n_clusters,
        "scale": request.scale or "none", **shown, **request.started.printable,
    }  # fmt: skip
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    rows = [[str(name), str(value)] for name, value in settings.items()]
    return [text(f"Made with {made_with}."), table(["setting", "value"], rows)]
