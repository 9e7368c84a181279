"""Advice after a fit: what in the data or in the result may mislead, a line each."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from lloydformer.data.opened import rows_in_table
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.words import counted, listed

WEAK = 0.25
"""Silhouettes below this tell of no substantial clusters (Kaufman and Rousseeuw, 1990)."""
_MOST = 0.99
"""Share of the variance, or of equal values, from which a column is named."""
_COPIES = 0.1
"""Share of rows that are copies of others from which they are named."""
_ROWS = 20
"""Rows from which columns are judged."""
_COMPARED = 100_000
"""Rows among which copies are counted."""
_ID = re.compile(r"(^|[_\W])(id|nr|no|index|key|uuid)$|[a-z]Id$|ID$", re.IGNORECASE)


def advice(result: FitResult, tried: Sequence[int]) -> list[str]:
    """Lines of advice; `tried`: the numbers of clusters that were tried."""
    if result.blocks.n_rows < _ROWS:
        return []
    several = len(tried) > 1
    return [*_variance(result), *_columns(result), *_copies(result), *_silhouette(result, several),
            *_singles(result), *_edge(result, tried)]  # fmt: skip


def _variance(result: FitResult) -> Iterator[str]:
    shares = result.sample.points.var(dim=0, correction=0).numpy()
    total = shares.sum()
    if len(shares) < 2 or total == 0 or shares.max() < _MOST * total:
        return
    which, share = int(shares.argmax()), shares.max() / total
    yield (
        f"column {result.columns[which]} carries {_percent(share)} of the variance, so the others "
        "hardly matter; --scale standard gives all columns the same weight"
    )


def _columns(result: FitResult) -> Iterator[str]:
    """Columns that look like names of rows, and columns of nearly one value."""
    points = result.blocks.points[result.sample.rows].numpy()
    plain = [i for i, one_hot in enumerate(_one_hot(result)) if not one_hot]
    ids = [result.columns[i] for i in plain if _names_rows(points[:, i], result.columns[i])]
    if ids:
        yield (
            f"column{'s' * (len(ids) > 1)} {listed(ids)}: a different integer in every row, as "
            f"numbers of rows and customers are; --id-column {ids[0]} leaves it out and copies it "
            "to the labels"
        )
    same = [(result.columns[i], _most_common(points[:, i])) for i in plain]
    if constant := [name for name, share in same if share == 1]:
        yield (f"the same value in every row: {listed(constant)}; "
               f"--exclude {','.join(constant[:6])}")  # fmt: skip
    if nearly := [f"{name} ({_percent(share)})" for name, share in same if _MOST <= share < 1]:
        yield f"nearly the same value in every row: {listed(nearly)}; --exclude leaves columns out"


def _one_hot(result: FitResult) -> list[bool]:
    """Whether each column of the points comes from a word."""
    if result.table is None:
        return [False] * len(result.columns)
    features = result.table.conversion.features
    return [f.categories is not None for f in features for _ in f.categories or ("number",)]


def _names_rows(column: np.ndarray, name: str) -> bool:
    if not (column == np.round(column)).all() or len(np.unique(column)) < len(column):
        return False
    steps = np.diff(column)
    return bool((steps > 0).all() or (steps < 0).all() or _ID.search(name))


def _most_common(column: np.ndarray) -> float:
    _, counts = np.unique(column, return_counts=True)
    return float(counts.max() / len(column))


def _copies(result: FitResult) -> Iterator[str]:
    rows = np.ascontiguousarray(result.blocks.points[:_COMPARED].numpy()) + 0.0  # -0 is 0
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    copies = len(rows) - len(np.unique(whole))
    if copies > _COPIES * len(rows):
        of = f"the first {len(rows):,}" if len(rows) < result.blocks.n_rows else f"{len(rows):,}"
        yield (f"{copies:,} of {of} rows are copies of other rows; remove them if they are a "
               "mistake, since each counts")  # fmt: skip


def _silhouette(result: FitResult, several: bool) -> Iterator[str]:
    if result.silhouette is not None and result.silhouette < WEAK:
        yield (
            f"the {'best ' * several}silhouette is {result.silhouette:.2f}, which is weak (clear "
            "clusters have more than 0.5): there may be no clusters"
        )


def _singles(result: FitResult) -> Iterator[str]:
    alone = [j for j, size in enumerate(result.sizes) if size == 1]
    if not alone:
        return
    clusters = result.assignment.clusters.numpy()
    where = [f"{j} (row {_row(result, int(np.flatnonzero(clusters == j)[0]))})" for j in alone]
    has, one = ("have", "each") if len(alone) > 1 else ("has", "alone")
    yield (
        f"cluster{'s' * (len(alone) > 1)} {listed(where)} {has} {counted(1, 'row')} {one}, perhaps "
        "an outlier; --algorithm trimmed leaves outliers out"
    )


def _edge(result: FitResult, tried: Sequence[int]) -> Iterator[str]:
    if len(tried) > 2 and result.n_clusters == max(tried):
        yield f"k {max(tried)} is the largest that was tried; try a larger range"


def _row(result: FitResult, row: int) -> int:
    """The row in the file, from 1."""
    if result.table is None:
        return row + 1
    return int(rows_in_table(np.array([row]), result.table.dropped)[0]) + 1


def _percent(share: float) -> str:
    """Never 100 % of what is not all.

    >>> _percent(0.9901), _percent(0.99999)
    ('99.0%', 'more than 99.9%')
    """
    return f"{100 * share:.1f}%" if share < 0.9995 else "more than 99.9%"
