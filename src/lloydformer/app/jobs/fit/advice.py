"""Advice after a fit: one line for each thing in the data or the result that may mislead."""

import re
from collections.abc import Iterator

import numpy as np

from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.profiles.words import format_count, join_words

# A silhouette below this means that no substantial clusters were found (Kaufman and Rousseeuw,
# 1990).
WEAK = 0.25
# The other thresholds are chosen by hand: advice on every fit would not be read.
_MOST = 0.99  # smallest share of the variance, or of equal values, for which a column is named
_COPIES = 0.1  # copies are reported above this share of the rows
_ROWS = 20  # there is no advice for fewer rows
_COMPARED = 100_000  # copies are counted in the first rows only; sorting takes memory and time
# Names of columns that usually hold numbers of rows, customers or the like.
_ID = re.compile(r"(^|[_\W])(id|nr|no|index|key|uuid)$|[a-z]Id$|ID$", re.IGNORECASE)


def give_advice(result: FitResult) -> list[str]:
    """Return lines of advice: those about the data first, then those about the clusters."""
    if result.blocks.n_rows < _ROWS:
        return []
    advice = list(_advise_on_columns(result))
    rows = np.ascontiguousarray(result.blocks.points[:_COMPARED].numpy()) + 0.0  # -0 is 0
    # Rows as single values of bytes: np.unique(axis=0) would sort them column by column.
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    copies = len(rows) - len(np.unique(as_bytes))
    if copies > _COPIES * len(rows):
        first = "the first " if len(rows) < result.blocks.n_rows else ""
        advice.append(
            f"{copies:,} of {first}{len(rows):,} rows are copies of other rows; remove them if "
            "they are a mistake, since each counts"
        )
    return [*advice, *_advise_on_clusters(result)]


def _advise_on_columns(result: FitResult) -> Iterator[str]:
    """Yield advice on columns: one with most of the variance, ids, and nearly constant ones."""
    variances = result.sample.points.var(dim=0, correction=0).numpy()
    largest, total = variances.max(), variances.sum()
    if len(variances) > 1 and total > 0 and largest >= _MOST * total:
        yield (
            f"column {result.columns[int(variances.argmax())]} carries "
            f"{_format_share(largest / total)} of the variance, so the others "
            "hardly matter; --scale standard gives all columns the same weight"
        )
    points = result.blocks.points[result.sample.rows].numpy()
    numeric = [i for i, word in enumerate(result.categories) if word is None]
    ids = [result.columns[i] for i in numeric if _names_rows(points[:, i], result.columns[i])]
    if ids:
        yield (
            f"column{'s' * (len(ids) > 1)} {join_words(ids)}: a different integer in every row, as "
            f"numbers of rows and customers are; --id-column {ids[0]} leaves it out and copies it "
            "to the labels"
        )
    counts = {result.columns[i]: np.unique(points[:, i], return_counts=True)[1] for i in numeric}
    shares = {name: float(of_values.max() / len(points)) for name, of_values in counts.items()}
    if constant := [name for name, share in shares.items() if share == 1]:
        yield (
            f"the same value in every row: {join_words(constant)}; "
            f"--exclude {','.join(constant[:6])}"
        )
    nearly = [f"{n} ({_format_share(share)})" for n, share in shares.items() if _MOST <= share < 1]
    if nearly:
        yield (
            f"nearly the same value in every row: {join_words(nearly)}; "
            "--exclude leaves columns out"
        )


def _names_rows(column: np.ndarray, name: str) -> bool:
    """Return True for distinct integers that are sorted, or whose column is called an id."""
    if not (column == np.round(column)).all() or len(np.unique(column)) < len(column):
        return False
    steps = np.diff(column)
    return bool((steps > 0).all() or (steps < 0).all() or _ID.search(name))


def _advise_on_clusters(result: FitResult) -> Iterator[str]:
    """Yield advice on a weak silhouette, clusters of one row, and a range of k that ends early."""
    tried = [run.k for run in result.runs]
    if result.silhouette is not None and result.silhouette < WEAK:
        yield (
            f"the {'best ' * (len(tried) > 1)}silhouette is {result.silhouette:.2f}, which is weak "
            "(clear clusters have more than 0.5): there may be no clusters"
        )
    if alone := [j for j, size in enumerate(result.totals.sizes) if size == 1]:
        clusters, left_out = result.assignment.clusters, result.assignment.left_out
        if left_out is not None:  # sizes do not count these rows
            clusters = clusters.masked_fill(left_out, -1)
        rows = result.table_rows([int((clusters == j).nonzero()[0]) for j in alone])
        where = [f"{j} (row {row + 1})" for j, row in zip(alone, rows, strict=True)]
        has, one = ("have", "each") if len(alone) > 1 else ("has", "alone")
        yield (
            f"cluster{'s' * (len(alone) > 1)} {join_words(where)} {has} {format_count(1, 'row')} "
            f"{one}, perhaps an outlier; --algorithm trimmed leaves outliers out"
        )
    if len(tried) > 2 and result.n_clusters == max(tried):
        yield f"k {max(tried)} is the largest that was tried; try a larger range"


def _format_share(share: float) -> str:
    """Format a share below 1 as a percentage, never as 100 %.

    >>> _format_share(0.9901), _format_share(0.99999)
    ('99.0%', 'more than 99.9%')
    """
    return f"{100 * share:.1f}%" if share < 0.9995 else "more than 99.9%"
