"""The HTML page of a clustering: `lf.report`, and `lloydformer fit --report`."""

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from markupsafe import Markup, escape

from lloydformer.estimators.mixture import GaussianMixture
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.curves import history_curve
from lloydformer.plots.models import (
    MAX_CLUSTERS,
    centers_size,
    draw_centers,
    draw_clustering_map,
    draw_clustering_silhouettes,
    draw_clustering_sizes,
    draw_ranges_in,
    largest_clusters,
    line_height,
    panel_height,
    top_columns,
)
from lloydformer.plots.palette import SIGNED_WORDS, cluster_colour
from lloydformer.plots.report.pages import figure, render
from lloydformer.profiles.clustering import Clustering, open_clustering
from lloydformer.profiles.profile import ClusterProfile, profile_clusters
from lloydformer.profiles.sentences import rank_columns, summarize_clusters
from lloydformer.profiles.words import format_count, format_number

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Limits of what a reader takes in, chosen by hand; the files beside the page have everything.
MAX_FAR = 20  # rows in the table of farthest rows
MAX_COLUMNS = 60  # columns in the tables of centers and rows
MAX_TRAITS = 6  # columns in the profile of a cluster
MAX_RANKS = 15  # columns in the table of columns
# Coordinates that are smaller, compared with the largest of their column, are rounding errors of
# sums in float64, and shown as 0.
_ROUNDING = 1e-12
# Begins every page: `report` replaces a file only if it has this.
_MARK = '<meta name="generator" content="lloydformer">'


def report(
    model: Any,
    X: Any,
    path: "str | PathLike[str]" = "clusters.html",
    *,
    title: str | None = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
    extra: Any = None,
    sample_weight: Any = None,
    seed: int = 0,
) -> Path:
    """Write an HTML page about the clusters of a fitted model.

    The page needs no other file and no network. It begins with a few sentences for readers who do
    not know the algorithm, and has pictures, profiles, example rows and centers. Readers can name
    clusters in the page. It is the page of ``lloydformer fit --report``, and needs matplotlib:
    ``pip install "lloydformer[plots]"``.

    Parameters
    ----------
    model : Clusterer
        A fitted estimator. It is not changed.
    X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
        Rows as `predict` takes them: those of the fit or others. If they are those of the fit,
        rows that `TrimmedKMeans` left out are also left out here.
    path : str or PathLike, default="clusters.html"
        The file to write. An existing file is replaced if it is such a page.
    title : str or None, default=None
        Title of the page; None says how many clusters there are.
    names : list of str, dict of int to str, or None, default=None
        Names for clusters: one for each, or some by their numbers.
    extra : data frame, dict of columns, Series or None, default=None
        Columns that were not clustered, with a value for each row of X: numbers, words, dates,
        also missing ones. Columns that name the rows, such as ids, are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for shares, means and quartiles.
    seed : int, default=0
        Draws 2,000 rows for pictures, silhouettes and examples at the edges, and 20,000 rows of
        each larger cluster for quartiles.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    FileExistsError
        If there is a file that is not such a page.
    ValueError
        If X, names, columns or weights do not belong to the model.

    See Also
    --------
    describe : The sentences, and data frames.
    KMeans.plot : One picture.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lloydformer as lf
    >>> X = [[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0]]
    >>> model = lf.KMeans(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = lf.report(model, X, Path(folder) / "clusters.html", names=["small", "large"])
    ...     print("<h1>2 clusters</h1>" in page.read_text(encoding="utf-8"))
    True
    """
    require_matplotlib()
    path = Path(path)
    if path.is_dir() or (path.exists() and _MARK not in _beginning(path)):
        raise FileExistsError(
            f"path: {path} exists and is not a page of lf.report; choose another name, or remove it"
        )
    clustering = open_clustering(
        model, X, names=names, extra=extra, sample_weight=sample_weight, seed=seed
    )
    kind = type(model).__name__
    parameters = {"estimator": kind, "rows": f"{clustering.n_rows:,}"}
    parameters |= {name: repr(value) for name, value in _changed_parameters(model).items()}
    page = clusters_page(
        clustering,
        title=title or format_count(clustering.n_clusters, "cluster"),
        parameters=parameters,
        fit_words=describe_fit(clustering, kind),
        command=f"lf.report(model, X, {str(path)!r})",
        versions=_versions(),
    )
    path.write_text(page, encoding="utf-8")
    return path


def _beginning(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1000)


def _versions() -> dict[str, str]:
    from lloydformer import __version__

    return {"lloydformer": __version__, "torch": torch.__version__, "numpy": np.__version__}


def _changed_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that are not the defaults and are short."""
    defaults = {name: p.default for name, p in signature(type(model).__init__).parameters.items()}
    found = {}
    for name, value in model.get_params(deep=False).items():
        is_plain = value is None or isinstance(value, str | int | float | bool)
        if is_plain and value != defaults.get(name):
            found[name] = value
    return found


def describe_fit(clustering: Clustering, kind: str, seconds: float | None = None) -> str:
    """Return how the fit went, in a sentence."""
    model = clustering.model
    words = Markup("Clustered by <strong>{}</strong>").format(kind)
    if hasattr(model, "inertia_"):
        words += Markup(": objective <strong>{}</strong>").format(format_number(model.inertia_, 6))
    if hasattr(model, "n_iter_"):
        most = getattr(model, "max_iter", None)
        # An algorithm that draws has no other end, unless it has `patience`.
        draws = hasattr(model, "best_objective_history_")
        full = most is not None and model.n_iter_ >= most and not draws
        words += f" after {format_count(model.n_iter_, 'iteration')}"
        words += ", the most allowed" if full else ""
    if seconds is not None:
        words += f", in {format_number(seconds, 2)} seconds"
    return words + "."


def clusters_page(
    clustering: Clustering,
    *,
    title: str,
    parameters: Mapping[str, str],
    fit_words: str,
    command: str,
    versions: Mapping[str, str],
    certainty: str = "",
    advice: Sequence[str] = (),
    notes: Sequence[str] = (),
    runs: Sequence[Markup] = (),
    centers_note: Markup | str = "",
    rows_note: str = "",
) -> str:
    """Return the self-contained page; its text is in clusters.html.

    `certainty` is a sentence on how sure the number of clusters is; `runs` are pictures of the
    numbers that were tried.
    """
    profiles = profile_clusters(clustering, largest_clusters(clustering))
    ranks = rank_columns(clustering)
    far, left_out = _far_rows(clustering), clustering.totals.left_out
    measure = "1 - cosine" if clustering.model.compares_directions else "distance"
    return render(
        Path(__file__).with_name("templates") / "clusters.html",
        title=title,
        summary=" ".join(summarize_clusters(clustering)),
        certainty=certainty,
        advice=advice,
        notes=notes,
        runs=runs,
        pictures=draw_pictures(clustering),
        centers_width=f"{centers_size(clustering)[0]:.1f}",
        ranges=draw_ranges(clustering),
        ranks=ranks[:MAX_RANKS] if clustering.n_clusters > 1 and len(ranks) > 1 else [],
        n_ranks=len(clustering.columns),
        n_clusters=clustering.n_clusters,
        profiles=profiles,
        names=clustering.names or {},
        left_out_columns=clustering.left_out_columns,
        max_traits=MAX_TRAITS,
        examples=_examples_table(clustering, profiles),
        n_columns=len(clustering.columns),
        max_columns=MAX_COLUMNS,
        centers=_centers_table(clustering),
        centers_note=centers_note,
        n_far=len(far),
        n_left_out=None if left_out is None else sum(left_out),
        far_rows=_rows_table(clustering, far, ["cluster", measure]) if far else None,
        rows_note=rows_note,
        fit_words=fit_words,
        versions=versions,
        # str() would turn an escaped name into plain text.
        parameters=[[n, v if isinstance(v, str) else str(v)] for n, v in parameters.items()],
        curve=draw_history(clustering),
        command=command,
        cluster_colour=cluster_colour,
    )


def new_axes(height: float = 3.4, width: float = 5.0) -> "Axes":
    """Return axes of a new figure.

    They are made without pyplot, which would open a window and keep the figure in memory.
    """
    return _new_figure(width, height).add_subplot()


def show_axes(ax: "Axes", caption: str, alt: str) -> Markup:
    """Return the figure of axes for a page."""
    return figure(ax.figure, caption, alt)  # type: ignore[arg-type]


def _new_figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_pictures(clustering: Clustering) -> dict[str, Markup]:
    """Draw the map, sizes, silhouettes and centers of the clusters."""
    k = clustering.n_clusters
    few = "each cluster" if k <= MAX_CLUSTERS else f"the {MAX_CLUSTERS} largest clusters"
    left_out = clustering.totals.left_out
    more = "" if left_out is None else f"; {sum(left_out):,} rows were left out"
    pictures = dict.fromkeys(("map", "sizes", "silhouettes", "centers"), Markup())
    pictures["map"] = _draw_map(clustering)
    ax = draw_clustering_sizes(clustering, new_axes(line_height(clustering)))
    words = "Bars with the sizes of the clusters"
    pictures["sizes"] = show_axes(ax, f"Sizes: rows in {few}{more}.", words)
    if clustering.silhouette is not None:
        n_rows = len(clustering.sample_silhouettes[0])
        rows = f"a sample of {n_rows:,} rows" if n_rows < clustering.n_rows else "all rows"
        ax = draw_clustering_silhouettes(clustering, new_axes(line_height(clustering)))
        caption = (
            "Silhouettes: near 1 a row is well inside its cluster, near 0 it lies between two "
            f"clusters, below 0 it is nearer to another; {rows}."
        )
        pictures["silhouettes"] = show_axes(ax, caption, "Silhouettes by cluster")
    if k > 1:
        width, height = centers_size(clustering)
        ax = draw_centers(clustering, new_axes(height, width))
        numbers = " Numbers in the cells are in the units of the data." if ax.texts else ""
        caption = (
            "Centers: how far each is from the mean of all rows, in standard deviations "
            f"({SIGNED_WORDS}).{numbers}"
        )
        pictures["centers"] = show_axes(ax, caption, "Heat map of centers and columns")
    return pictures


def draw_ranges(clustering: Clustering) -> list[Markup]:
    """Draw where clusters lie in the columns that differ most; a figure for each column."""
    if clustering.n_clusters == 1:
        return []
    figures = []
    for place in top_columns(clustering):
        ax = draw_ranges_in(clustering, place, new_axes(panel_height(clustering), 3.4))
        name = clustering.columns[int(clustering.statistics.chosen[place])]
        figures.append(show_axes(ax, escape(name), f"Ranges of the clusters in {name}"))
    return figures


def _draw_map(clustering: Clustering) -> Markup:
    ax, n_rows = draw_clustering_map(clustering, new_axes(4.2)), len(clustering.sample.rows)
    sample = f"a sample of {n_rows:,} rows" if n_rows < clustering.n_rows else f"{n_rows:,} rows"
    flat = len(clustering.columns) <= 2 and not clustering.model.compares_directions
    where = "" if flat else " in the plane of their first two principal components"
    crosses = "" if clustering.totals.left_out is None else "; crosses were left out"
    ellipses = ""
    if isinstance(clustering.model, GaussianMixture) and len(clustering.columns) > 1:
        ellipses = "; ellipses are two standard deviations of a component"
    caption = f"Map: {sample}{where}, centers with their numbers{ellipses}{crosses}."
    return show_axes(ax, caption, "Points by cluster in two dimensions")


def draw_history(clustering: Clustering) -> Markup | None:
    """Draw the objective after each iteration; None if the model has no history."""
    history = getattr(clustering.model, "objective_history_", None)
    if history is None:
        return None
    curve = history_curve(np.asarray(history).tolist(), new_axes(2.6))
    return show_axes(curve, "Objective after each iteration.", "Curve of the objective")


def _far_rows(clustering: Clustering) -> dict[int, list[str]]:
    """Return cluster and distance of the rows farthest from their centers.

    If rows were left out, these are the farthest of those.
    """
    assignment, out = clustering.assignment, clustering.assignment.left_out
    distances = assignment.distances
    ranked = distances if out is None else torch.where(out, distances, -1.0)
    count = min(MAX_FAR, len(distances) if out is None else int(out.sum()))
    clusters = assignment.clusters
    return {
        row: [clustering.name(int(clusters[row])), format_number(distances[row].item())]
        for row in ranked.topk(count).indices.tolist()
    }


def _examples_table(
    clustering: Clustering, profiles: Sequence[ClusterProfile]
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of the table of example rows."""
    cells, rows = list[list[str]](), list[int]()
    for profile in profiles:
        for example in profile.examples:
            edge = f"edge to {example.neighbour}"
            cells.append([profile.name, example.kind if example.kind == "typical" else edge])
            rows.append(example.row)
    return _table(clustering, rows, cells, ["cluster", "example"])


def _rows_table(
    clustering: Clustering, before: dict[int, list[str]], names: list[str]
) -> tuple[list[str], list[list[str]]]:
    return _table(clustering, list(before), list(before.values()), names)


def _table(
    clustering: Clustering, rows: Sequence[int], before: Sequence[list[str]], names: list[str]
) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of a table of rows; the cells `before` the values have these names.

    Names and values of the data are escaped here, so that they are shown as they are: signs in
    other cells would be marks.
    """
    columns, shown = clustering.show_rows(rows)
    count = MAX_COLUMNS + 2
    cells: list[list[str]] = [
        [*map(escape, own), *map(escape, row[:count])]
        for own, row in zip(before, shown, strict=True)
    ]
    return [*names, *map(escape, columns[:count])], cells


def _centers_table(clustering: Clustering) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of the table of centers."""
    centers = np.asarray(clustering.model.cluster_centers_)[:, :MAX_COLUMNS]
    is_rounding = np.abs(centers) < _ROUNDING * np.abs(centers).max(axis=0)
    pairs = zip(clustering.totals.sizes, np.where(is_rounding, 0.0, centers).tolist(), strict=True)
    rows = [
        [escape(clustering.name(j)), f"{size:,}", *map(format_number, center)]
        for j, (size, center) in enumerate(pairs)
    ]
    return ["cluster", "size", *map(escape, clustering.columns[:MAX_COLUMNS])], rows
