"""Plots of a fitted model and rows: `model.plot(X)`, and the pictures of the HTML report.

Begin with `plot`; the functions in `KINDS` draw a `Clustering`, with those of `clusters.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.data.array_api import to_tensor
from lloydformer.estimators.mixture import GaussianMixture
from lloydformer.plots.axes import colormap, open_frame, require_matplotlib
from lloydformer.plots.clusters import (
    cluster_map,
    cluster_sizes,
    principal_plane,
    silhouette_bands,
)
from lloydformer.plots.palette import SIGNED, cluster_colour, ink_on
from lloydformer.profiles.clustering import Clustering, open_clustering
from lloydformer.profiles.words import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Names = Sequence[str] | Mapping[int, str] | None

# Limits of what a reader takes in, chosen by hand.
MAX_CLUSTERS = 40  # clusters in bars and profiles: the largest
MAX_PANELS = 9  # columns in the plot of profiles
MAX_COLUMNS = 30  # columns in the heat map
OUTLINE = 73  # points of the ellipse of a component, one every five degrees
_MOST_NUMBERS = 150  # cells of a heat map that has numbers in them
_ACROSS = 3  # panels of the plot of profiles that are beside each other
_NEUTRAL = "#888888"  # of all rows; seen on white and on dark pages
# Inches for a cluster that has a line of its own, and for everything around these lines.
_LINE, _REST = 0.25, 0.9


def largest_clusters(clustering: Clustering) -> list[int]:
    """Return the clusters that have a line of their own, in the order of their numbers."""
    sizes = clustering.totals.sizes
    return sorted(sorted(range(len(sizes)), key=lambda j: -sizes[j])[:MAX_CLUSTERS])


def line_height(clustering: Clustering) -> float:
    """Return the height in inches of a picture with a line for each cluster."""
    return max(2.2, _LINE * min(clustering.n_clusters, MAX_CLUSTERS) + _REST)


def draw_clustering_map(clustering: Clustering, ax: "Axes") -> "Axes":
    """Draw the sample and the centers: by one or two columns, or by principal components.

    Components of Gaussian mixtures have an ellipse, two standard deviations away.
    """
    sample, kept, centers = clustering.sample, clustering.kept_sample, clustering.centers
    points, n_columns = sample.points, sample.points.shape[1]
    if n_columns > 2 or clustering.model.compares_directions:
        middle, axes = principal_plane(points[kept])  # outliers would turn the plane

        def flatten(rows: Tensor) -> Tensor:
            return (rows - middle).to(axes) @ axes.T

        flat = [flatten(rows) for rows in (points, centers)]
        total = points[kept].var(dim=0, correction=0).sum().item()
        shares = flat[0][kept].var(dim=0, correction=0) / max(total, 1e-300)
        names = [
            f"component {i} ({100 * share:.0f}% of the variance)"
            for i, share in enumerate(shares.tolist(), 1)
        ]
    else:
        # As the user knows them: in the units of the data.
        axes = torch.eye(n_columns, dtype=points.dtype)

        def flatten(rows: Tensor) -> Tensor:
            return clustering.blocks.layout.to_data_units(rows).double()

        flat = [flatten(rows) for rows in (points, centers)]
        names = [*clustering.columns]
        if n_columns == 1:  # rows of one column are spread over the height, centers are below
            noise = np.random.default_rng(clustering.seed).random(len(points))
            heights = torch.from_numpy(noise), torch.full((len(centers),), -0.15)
            pairs = zip(flat, heights, strict=True)
            flat = [torch.stack([rows[:, 0], height.double()], dim=1) for rows, height in pairs]
            names.append("")
    labels = torch.where(kept, clustering.assignment.clusters[sample.rows].long(), -1)
    shown = largest_clusters(clustering)
    numbered = {j: (flat[1][j, 0].item(), flat[1][j, 1].item()) for j in shown}
    outlines = {}
    if isinstance(clustering.model, GaussianMixture) and n_columns > 1:
        outlines = {j: flatten(outline_component(clustering, j, axes)) for j in shown}
    cluster_map(flat[0], labels, numbered, ax, clustering.names, outlines)
    ax.set(xlabel=names[0], ylabel=names[1])
    if n_columns == 1:
        ax.set_yticks([])
    return ax


def outline_component(
    clustering: Clustering, j: int, axes: Float[Tensor, "2 d"]
) -> Float[Tensor, "o d"]:
    """Return a curve around a component in the plane of two axes, two standard deviations away."""
    model, d = clustering.model, axes.shape[1]
    assert isinstance(model, GaussianMixture)
    own = to_tensor(model.covariances_).cpu().double()
    if model.covariance_type != "tied":
        own = own[j]
    if model.covariance_type in ("diag", "spherical"):
        own = own.expand(d).diag()
    axes = axes.double()
    values, vectors = torch.linalg.eigh(axes @ own @ axes.T)
    turn = torch.linspace(0, 2 * math.pi, OUTLINE, dtype=torch.float64)
    circle = torch.stack([turn.cos(), turn.sin()], dim=1)  # (o, 2)
    ellipse = (2 * circle * values.clamp(min=0).sqrt()) @ vectors.T
    return clustering.centers[j].double() + ellipse @ axes


def draw_clustering_sizes(clustering: Clustering, ax: "Axes") -> "Axes":
    """Draw bars with the number of rows of each cluster."""
    sizes = {j: clustering.totals.sizes[j] for j in largest_clusters(clustering)}
    cluster_sizes(sizes, ax, clustering.n_rows)
    return _name_lines(clustering, ax, list(sizes))


def draw_clustering_silhouettes(clustering: Clustering, ax: "Axes") -> "Axes":
    """Draw the silhouettes of the sample, cluster by cluster."""
    if clustering.silhouette is None:
        raise ValueError(
            "kind: found 'silhouettes', which compare clusters; all rows of the sample are in one"
        )
    clusters, values = clustering.sample_silhouettes
    shown = torch.isin(clusters, torch.tensor(largest_clusters(clustering)))
    silhouette_bands(values[shown], clusters[shown], ax, clustering.silhouette)
    return _name_lines(clustering, ax, sorted(set(clusters[shown].tolist())))


def _name_lines(clustering: Clustering, ax: "Axes", clusters: Sequence[int]) -> "Axes":
    """Name clusters that are drawn as lines, if the user named them."""
    if clustering.names is not None:
        ax.set_yticks(range(len(clusters)), [clustering.name(j) for j in clusters])
        ax.set_ylabel("")
    return ax


def top_columns(clustering: Clustering) -> list[int]:
    """Return the places in the statistics of the columns that differ most between clusters."""
    order = np.argsort(-clustering.statistics.explained, kind="stable")
    return order[:MAX_PANELS].tolist()


def draw_ranges_in(clustering: Clustering, place: int, ax: "Axes") -> "Axes":
    """Draw where half of the rows of each cluster lie in one column, and half of all rows."""
    statistics, clusters = clustering.statistics, largest_clusters(clustering)
    low, middle, high = statistics.overall_quartiles[:, place]
    ax.axvspan(low, high, color=_NEUTRAL, alpha=0.22, lw=0)
    ax.axvline(middle, color=_NEUTRAL, linewidth=1.0, linestyle=":")
    for line, cluster in enumerate(clusters):
        left, median, right = statistics.quartiles[:, cluster, place]
        colour = cluster_colour(cluster)
        ax.plot([left, right], [line, line], color=colour, lw=5, alpha=0.55, solid_capstyle="butt")
        ax.plot([median], [line], "o", color=colour, markersize=5.5, mec="white", mew=0.6)
    ax.set_ylim(len(clusters) - 0.5, -0.5)
    ax.set_yticks(range(len(clusters)), [clustering.name(j) for j in clusters])
    ax.tick_params(labelsize=8)
    ax.locator_params(axis="x", nbins=4)
    return open_frame(ax)


def draw_profiles(clustering: Clustering, figure: "Figure") -> "Figure":
    """Draw a panel with `draw_ranges_in` for each of the columns that differ most."""
    places = top_columns(clustering)
    n_across = min(_ACROSS, len(places))
    n_down = -(-len(places) // n_across)
    panels = figure.subplots(n_down, n_across, squeeze=False, sharey=True).flat
    for place, ax in zip(places, panels, strict=False):
        draw_ranges_in(clustering, place, ax)
        column = int(clustering.statistics.chosen[place])
        ax.set_title(_shorten(clustering.columns[column]), fontsize=9)
    for ax in panels:  # those that are left
        ax.set_axis_off()
    words = "bar: half of the rows; dot: median; grey: half of all rows"
    figure.supxlabel(words, fontsize=9)
    return figure


def panel_height(clustering: Clustering) -> float:
    """Return the height in inches of `draw_ranges_in`."""
    return max(1.5, 0.2 * min(clustering.n_clusters, MAX_CLUSTERS) + 0.7)


def profiles_size(clustering: Clustering) -> tuple[float, float]:
    """Return the size in inches of `draw_profiles`."""
    count = len(top_columns(clustering))
    across = min(_ACROSS, count)
    return 2.5 * max(across, 2) + 0.3, -(-count // across) * panel_height(clustering) + 0.3


def draw_centers(clustering: Clustering, ax: "Axes") -> "Axes":
    """Draw a heat map: how far each center is from the mean of all rows, column by column.

    Numbers in the cells are the coordinates of the centers, if there are few.
    """
    statistics, clusters = clustering.statistics, largest_clusters(clustering)
    most = np.argsort(-statistics.explained, kind="stable")[:MAX_COLUMNS]
    shown = np.sort(most)  # columns keep the order of the data
    values = np.asarray(clustering.model.cluster_centers_, dtype=np.float64)
    values = values[clusters][:, statistics.chosen[shown]]
    overall, spread = statistics.overall[shown], statistics.spread[shown]
    if clustering.model.compares_directions:  # centers are unit vectors, rows may not be
        overall, spread = values.mean(axis=0), values.std(axis=0)
    scores = (values - overall) / np.where(spread > 0, spread, 1.0)
    scores[:, spread == 0] = 0.0
    # Colours end at 3 standard deviations at most: one far center would pale all others.
    top = float(np.clip(np.abs(scores).max(initial=0.0), 0.5, 3.0))
    image = ax.imshow(scores, cmap=colormap(SIGNED), vmin=-top, vmax=top, aspect="auto")
    names = [_shorten(clustering.columns[int(statistics.chosen[i])]) for i in shown]
    turned = max(map(len, names)) > 6 or len(names) > 8
    style: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(shown)), names, fontsize=8, **(style if turned else {}))
    ax.set_yticks(range(len(clusters)), [clustering.name(j) for j in clusters], fontsize=8)
    ax.set_ylabel("cluster")
    ax.tick_params(length=0)
    if values.size <= _MOST_NUMBERS:
        for row, column in np.ndindex(values.shape):
            red, green, blue, _ = image.cmap(image.norm(scores[row, column]))
            shade = "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))
            text = format_number(float(values[row, column]), 2)
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color=ink_on(shade))
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02)
    bar.set_label("z-score", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return ax


def centers_size(clustering: Clustering) -> tuple[float, float]:
    """Return the size in inches of `draw_centers`."""
    columns = min(len(clustering.statistics.chosen), MAX_COLUMNS)
    lines = min(clustering.n_clusters, MAX_CLUSTERS)
    cell = 0.5 if columns * lines <= _MOST_NUMBERS else 0.3  # with numbers, or without
    longest = max(len(_shorten(name)) for name in clustering.columns[:MAX_COLUMNS])
    height = max(1.6, 0.24 * lines + 0.4) + 0.055 * min(longest, 18) + 0.2
    return max(5.0, cell * columns + 2.0), height


def _shorten(name: str, most: int = 18) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


KINDS: dict[str, Callable[[Clustering, "Axes"], "Axes"]] = {
    "map": draw_clustering_map,
    "silhouettes": draw_clustering_silhouettes,
    "sizes": draw_clustering_sizes,
    "centers": draw_centers,
}


def figure_size(clustering: Clustering, kind: str) -> tuple[float, float]:
    """Return the size in inches of a plot of this kind."""
    if kind == "map":
        return 6.4, 4.8
    if kind == "centers":
        return centers_size(clustering)
    return (6.4, line_height(clustering)) if kind != "profiles" else profiles_size(clustering)


def plot(
    model: Any,
    X: Any,
    kind: str = "map",
    *,
    names: Names = None,
    sample_weight: Any = None,
    seed: int = 0,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the clusters of a fitted model.

    It needs matplotlib: ``pip install "lloydformer[plots]"``.

    Parameters
    ----------
    model : Clusterer
        A fitted estimator.
    X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
        Rows as `predict` takes them: those of the fit or others.
    kind : {"map", "silhouettes", "sizes", "profiles", "centers"}, default="map"
        "map" shows rows and centers in the plane of their first two principal components.
        "silhouettes" shows how well each row fits its cluster, "sizes" the number of rows,
        "profiles" where half of the rows of each cluster lie in the columns that differ most,
        "centers" a heat map of clusters and columns.
    names : list of str, dict of int to str, or None, default=None
        Names for clusters: one for each, or some by their numbers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for shares, means and quartiles.
    seed : int, default=0
        Draws the 2,000 rows that a map and silhouettes show, if there are more.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure. "profiles" always creates one.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which notebooks show.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If `kind` is not one of these, or if X does not belong to the model.

    See Also
    --------
    lloydformer.report : All of them as an HTML page.

    Examples
    --------
    >>> import lloydformer as lf
    >>> X = [[0.0, 1.0], [1.0, 0.0], [8.0, 9.0], [9.0, 8.0]]
    >>> figure = lf.plots.plot(lf.KMeans(2, random_state=0).fit(X), X, "silhouettes")
    >>> figure.axes[0].get_xlabel()
    'silhouette'
    """
    require_matplotlib()
    if kind not in (*KINDS, "profiles"):
        raise ValueError(f"kind: found {kind!r}; pass {', '.join(KINDS)} or profiles")
    if ax is not None and kind == "profiles":
        raise ValueError("ax: kind='profiles' has several axes and makes a figure; leave ax out")
    clustering = open_clustering(model, X, names=names, sample_weight=sample_weight, seed=seed)
    if ax is not None:
        return KINDS[kind](clustering, ax).figure  # type: ignore[return-value]
    import matplotlib
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=figure_size(clustering, kind), layout="constrained")
    if kind == "profiles":
        draw_profiles(clustering, figure)
    else:
        KINDS[kind](clustering, figure.add_subplot())
    # A notebook shows the figure that is returned, and would show an open one a second time.
    if "inline" in matplotlib.get_backend():
        pyplot.close(figure)
    return figure
