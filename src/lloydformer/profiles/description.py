"""`lf.describe`: what sets each cluster apart, as sentences and data frames."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from lloydformer.profiles.clustering import Clustering, open_clustering
from lloydformer.profiles.profile import Trait, profile_clusters
from lloydformer.profiles.sentences import rank_columns, summarize_clusters

if TYPE_CHECKING:
    from pandas import DataFrame

_MISSING = "pandas is missing; get it with: pip install pandas"


class Description:
    """The clusters of some rows in sentences and data frames; `lf.describe` returns it.

    Printed, it is `summary` and a line for each cluster. Data frames need pandas.

    Parameters
    ----------
    clustering : Clustering
        A fitted model together with rows.

    Attributes
    ----------
    summary : str
        How many clusters there are, how large, what sets them apart and how separate they are.
    sentences : tuple of str
        What sets each cluster apart, one sentence for each.
    clusters : pandas.DataFrame
        A row for each cluster.
    columns : pandas.DataFrame
        A row for each cluster and column.
    importance : pandas.DataFrame
        A row for each column.

    See Also
    --------
    describe : Make a description of a fitted model and rows.

    Examples
    --------
    >>> import lloydformer as lf
    >>> X = [[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 6.0]]
    >>> model = lf.KMeans(2, init=[[0.0, 5.0], [9.0, 5.0]]).fit(X)
    >>> found = lf.describe(model, X)
    >>> isinstance(found, lf.Description)
    True
    """

    def __init__(self, clustering: Clustering) -> None:
        self._clustering, self._profiles = clustering, profile_clusters(clustering)
        self.summary = " ".join(summarize_clusters(clustering))
        self.sentences = tuple(profile.sentence() for profile in self._profiles)

    def __repr__(self) -> str:
        return str(self)  # what an interactive session shows

    @property
    def clusters(self) -> "DataFrame":
        """A row for each cluster, as a pandas data frame.

        Its columns are `name`; `size`, the number of rows; `share` of all rows, by weight;
        `silhouette`, the mean of a sample; `mean_distance` of its rows to the center;
        `typical_row`, the position in X of the row nearest to the center; `description`.

        See Also
        --------
        Description.columns : A row for each cluster and column.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[0.0], [1.0], [8.0], [9.0], [9.5]]
        >>> model = lf.KMeans(2, init=[[0.0], [9.0]]).fit(X)
        >>> lf.describe(model, X).clusters["size"].tolist()
        [2, 3]
        """
        clustering, profiles = self._clustering, self._profiles
        frame = _pandas().DataFrame(
            {
                "name": [(clustering.names or {}).get(p.number, str(p.number)) for p in profiles],
                "size": [profile.size for profile in profiles],
                "share": [profile.share for profile in profiles],
                "silhouette": [profile.silhouette for profile in profiles],
                "mean_distance": clustering.totals.mean_distances,
                "typical_row": _pandas().array([p.typical for p in profiles], dtype="Int64"),
                "description": list(self.sentences),
            }
        )
        frame["silhouette"] = frame["silhouette"].astype(float)
        frame.index.name = "cluster"
        return frame

    @property
    def columns(self) -> "DataFrame":
        """A row for each cluster and column, most striking first, as a pandas data frame.

        The index has `cluster` and `column`; for words, the column is "name = word". Columns are
        `median`, `lower` and `upper` (quartiles: half of the rows lie between them), `mean`, the
        same of all rows (`median_of_all` and so on), `z` (mean less that of all rows, in standard
        deviations of all rows) and `clustered` (False for columns of `extra`). The mean of a word
        is the share of rows that have it. Dates are days since 1970-01-01. If there are more
        than 500 columns, these are the ones that the clusters explain best.

        See Also
        --------
        Description.importance : How much the clusters say about each column.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[0.0], [1.0], [8.0], [9.0], [9.5]]
        >>> model = lf.KMeans(2, init=[[0.0], [9.0]]).fit(X)
        >>> lf.describe(model, X).columns.loc[(1, "x1"), "median"].item()
        9.0
        """
        rows = [
            {"cluster": profile.number, "column": trait.label, **_numbers(trait), "clustered": own}
            for profile in self._profiles
            for own, traits in ((True, profile.traits), (False, profile.others))
            for trait in traits
        ]
        return _pandas().DataFrame(rows).set_index(["cluster", "column"])

    @property
    def importance(self) -> "DataFrame":
        """Importance of each column for the clusters, largest first, as a pandas data frame.

        `importance` is the share of a column's variance that lies between the means of the
        clusters: 0 if all clusters have the same mean, 1 if the column is constant within each
        cluster.

        See Also
        --------
        Description.columns : A row for each cluster and column.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[0.0, 5.0], [0.0, 6.0], [8.0, 5.0], [8.0, 6.0]]
        >>> model = lf.KMeans(2, init=[[0.0, 5.0], [8.0, 5.0]]).fit(X)
        >>> lf.describe(model, X).importance["importance"].tolist()
        [1.0, 0.0]
        """
        pairs = rank_columns(self._clustering)
        frame = _pandas().DataFrame(pairs, columns=["column", "importance"])
        return frame.set_index("column")

    def __str__(self) -> str:
        pairs = zip(self._profiles, self.sentences, strict=True)
        return "\n".join([self.summary, *(f"{p.name}: {sentence}" for p, sentence in pairs)])

    def _repr_html_(self) -> str:
        """Return the sentences for a notebook."""
        items = "".join(
            f"<li><strong>{escape(profile.name)}</strong>: {escape(sentence)}</li>"
            for profile, sentence in zip(self._profiles, self.sentences, strict=True)
        )
        return f'<p>{escape(self.summary)}</p><ul style="text-align: left">{items}</ul>'


def describe(
    model: Any,
    X: Any,
    *,
    names: Sequence[str] | Mapping[int, str] | None = None,
    extra: Any = None,
    sample_weight: Any = None,
    seed: int = 0,
) -> Description:
    """Describe the clusters of a fitted model: sizes, and what sets each one apart.

    Parameters
    ----------
    model : Clusterer
        A fitted estimator. It is not changed.
    X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
        Rows as `predict` takes them: those of the fit or others. If they are those of the fit,
        rows that `TrimmedKMeans` left out are also left out here.
    names : list of str, dict of int to str, or None, default=None
        Names for clusters: one for each, or some by their numbers.
    extra : data frame, dict of columns, Series or None, default=None
        Columns that were not clustered, with a value for each row of X: numbers, words, dates,
        also missing ones. Columns that name the rows, such as ids, are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for shares, means and quartiles.
    seed : int, default=0
        Draws 2,000 rows for silhouettes and examples at the edges, and 20,000 rows of each larger
        cluster for quartiles.

    Returns
    -------
    Description
        Sentences and data frames. Printed, it shows the sentences.

    Raises
    ------
    ValueError
        If the model is not an estimator of lloydformer or has no columns (a distance matrix), if X
        is not in memory (Dask), or if names, columns or weights do not belong to the rows.

    See Also
    --------
    report : The same and pictures as an HTML page.
    KMeans.plot : Pictures.

    Examples
    --------
    >>> import lloydformer as lf
    >>> X = [[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0], [9.5, 5.0]]
    >>> model = lf.KMeans(2, init=[[0.0, 5.0], [9.0, 5.0]]).fit(X)
    >>> print(lf.describe(model, X, names=["small", "large"]))
    5 rows with 2 columns fall into 2 groups of 3 (large, 60%) and 2 (small, 40%) rows. They differ most in x1. The groups are clearly separate: no row lies between two (mean silhouette 0.88).
    0 small: 2 rows (40.0%): low x1 (median 0.5, of all rows 8).
    1 large: 3 rows (60.0%): high x1 (median 9, of all rows 8).
    """  # noqa: E501 (a doctest is one line)
    clustering = open_clustering(
        model, X, names=names, extra=extra, sample_weight=sample_weight, seed=seed
    )
    return Description(clustering)


def _numbers(trait: Trait) -> dict[str, float]:
    lower, median, upper = trait.quartiles
    lower_of_all, median_of_all, upper_of_all = trait.overall_quartiles
    return {
        "median": median,
        "lower": lower,
        "upper": upper,
        "mean": trait.mean,
        "median_of_all": median_of_all,
        "lower_of_all": lower_of_all,
        "upper_of_all": upper_of_all,
        "mean_of_all": trait.overall,
        "z": trait.z,
    }


def _pandas() -> Any:
    """Return pandas; raise an ImportError with the command that installs it, if it is missing."""
    try:
        import pandas
    except ImportError:
        raise ImportError(_MISSING) from None
    return pandas
