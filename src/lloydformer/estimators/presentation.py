"""Methods of fitted models that show them: `plot`, `describe`, and the table in a notebook.

What they show is computed in `profiles` and drawn in `plots`, which are rooms after this one, and a
room imports only from rooms before it. So the methods are here, where users look for them, and the
public front of the package (`lloydformer/__init__.py`), which knows all rooms, enters in `SHOWN_BY`
which function does the work. It is imported when a method is first called.
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The place of the function behind a method, as "module:name".
SHOWN_BY: dict[str, str] = {}
# Clusters and columns of the table in a notebook: what fits on a screen without scrolling.
_MOST_CLUSTERS, _MOST_COLUMNS = 20, 8
_CELL = "text-align: right; padding: 0.15em 0.8em"


def _shown_by(method: str) -> Any:
    module, _, name = SHOWN_BY[method].partition(":")
    return getattr(import_module(module), name)


class Presented:
    """Adds `plot`, `describe` and a table in notebooks to a fitted estimator."""

    cluster_centers_: Any

    def plot(
        self,
        X: Any,
        kind: str = "map",
        *,
        names: Sequence[str] | Mapping[int, str] | None = None,
        sample_weight: Any = None,
        seed: int = 0,
        ax: Any = None,
    ) -> "Figure":
        """Draw the clusters of rows with matplotlib.

        It needs matplotlib: ``pip install "lloydformer[plots]"``.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        kind : {"map", "silhouettes", "sizes", "profiles", "centers"}, default="map"
            "map" shows rows and centers in the plane of their first two principal components.
            "silhouettes" shows how well each row fits its cluster, "sizes" the number of rows,
            "profiles" where half of the rows of each cluster lie in the columns that differ most,
            "centers" a heat map of clusters and columns.
        names : list of str, dict of int to str, or None, default=None
            Names for clusters: one for each, or some by their numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.
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
        lloydformer.plots : The functions behind it, which take axes.
        lloydformer.report : All of them as an HTML page.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[0.0, 1.0], [1.0, 0.0], [8.0, 9.0], [9.0, 8.0]]
        >>> figure = lf.KMeans(2, random_state=0).fit(X).plot(X, kind="sizes")
        >>> figure.axes[0].get_xlabel()
        'rows'
        """
        draw = _shown_by("plot")
        return draw(self, X, kind, names=names, sample_weight=sample_weight, seed=seed, ax=ax)

    def describe(
        self,
        X: Any,
        *,
        names: Sequence[str] | Mapping[int, str] | None = None,
        extra: Any = None,
        sample_weight: Any = None,
        seed: int = 0,
    ) -> Any:
        """Describe the clusters of rows: sizes, and what sets each one apart.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        names : list of str, dict of int to str, or None, default=None
            Names for clusters: one for each, or some by their numbers.
        extra : data frame, dict of columns, Series or None, default=None
            Columns that were not clustered, with a value for each row of X: numbers, words, dates,
            also missing ones. Columns that name the rows, such as ids, are left out.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.
        seed : int, default=0
            Draws 2,000 rows for silhouettes and examples at the edges, and 20,000 rows of each
            larger cluster for quartiles.

        Returns
        -------
        Description
            Sentences and data frames. Printed, it shows the sentences.

        Raises
        ------
        ValueError
            If X, names, columns or weights do not belong to the model.

        See Also
        --------
        lloydformer.describe : The same as a function.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[0.0], [1.0], [8.0], [9.0]]
        >>> model = lf.KMeans(2, init=[[0.0], [9.0]]).fit(X)
        >>> model.describe(X).sentences[0]
        '2 rows (50.0%): low x1 (median 0.5, of all rows 4.5).'
        """
        describe = _shown_by("describe")
        return describe(self, X, names=names, extra=extra, sample_weight=sample_weight, seed=seed)

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram; of a fitted model, also sizes and centers.

        Both are attributes of the fit: nothing is computed from data.
        """
        from sklearn.utils import estimator_html_repr

        diagram: str = estimator_html_repr(self)
        return diagram + _describe_fit(self) if hasattr(self, "cluster_centers_") else diagram

    # Both call the function of scikit-learn directly in some of its versions.
    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from sklearn import get_config

        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle


def _describe_fit(model: Any) -> str:
    """Return an HTML table with the sizes and centers of a fitted model."""
    centers, sizes = model.cluster_centers_, _sizes(model)
    k, n_features = centers.shape
    names = getattr(model, "feature_names_in_", None)
    columns = [f"x{i + 1}" for i in range(n_features)] if names is None else list(map(str, names))
    shown = centers[:_MOST_CLUSTERS, :_MOST_COLUMNS].tolist()
    head = ["cluster", *([] if sizes is None else ["rows"]), *columns[:_MOST_COLUMNS]]
    if n_features > _MOST_COLUMNS:
        head.append("…")
    lines = []
    for j, center in enumerate(shown):
        cells = [str(j), *([] if sizes is None else [f"{sizes[j]:,}"])]
        cells += [f"{value:.4g}" for value in center] + ["…"] * (n_features > _MOST_COLUMNS)
        lines.append("".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells))
    more = []
    if k > _MOST_CLUSTERS:
        more.append(f"the first {_MOST_CLUSTERS} of {k} clusters")
    if n_features > _MOST_COLUMNS:
        more.append(f"the first {_MOST_COLUMNS} of {n_features} columns")
    if sizes is not None and (out := sizes[-1]):
        more.append(f"{out:,} rows were left out")
    words = f" ({', '.join(more)})" if more else ""
    header = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in head)
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        '<div style="overflow-x: auto; max-width: 100%"><table style="margin: 0.6em 0">'
        f'<caption style="text-align: left">Sizes and centers{words}. '
        "<code>plot(X)</code> and <code>describe(X)</code> show more.</caption>"
        f"<thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _sizes(model: Any) -> list[int] | None:
    """Return the number of rows of each cluster, then of those left out; None if unknown."""
    labels = getattr(model, "labels_", None)
    if labels is None or not hasattr(labels, "tolist"):  # of a fit on a cluster: lazy
        return None
    import torch

    from lloydformer.data.array_api import to_tensor

    k = len(model.cluster_centers_)
    numbers = to_tensor(labels).flatten().long()
    counts = torch.bincount(torch.where(numbers < 0, k, numbers), minlength=k + 1)
    return counts.tolist()
