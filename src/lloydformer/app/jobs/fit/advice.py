"""Advice after a fit: one line for each thing in the data or the result that may mislead."""

import re
from collections.abc import Iterator

import numpy as np

from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.data.scale_choice import ColumnSample, choose_scale, share_unit
from lloydformer.profiles.words import format_count, join_words

# A silhouette below this means that no substantial clusters were found (Kaufman and Rousseeuw,
# 1990).
WEAK = 0.25
# The other thresholds are chosen by hand: advice on every fit would not be read.
_MOST = 0.99  # smallest share of the variance, or of equal values, for which a column is named
_COPIES = 0.1  # copies are reported above this share of the rows
_POSSIBLE = 10  # possible rows for each row, from which copies are no coincidence
_SAME = 0.9999  # correlation of columns that hold the same, perhaps in another unit
_ROWS = 20  # there is no advice for fewer rows
_ALONE = 10  # mean size of clusters from which one row alone is unusual
_COMPARED = 100_000  # copies are counted in the first rows only; sorting takes memory and time
_CORRELATED = 200  # most columns that are compared with each other
# Scales that leave tails as long, and words as heavy, as they are.
_KEEP_TAILS = ("none", "standard", "minmax", "robust")
_KEEP_WORDS = ("none", "standard", "minmax")
# Names of columns that usually hold numbers of rows, customers or the like.
_ID = re.compile(r"(^|[_\W])(id|nr|no|index|key|uuid)$|[a-z]Id$|ID$", re.IGNORECASE)


def give_advice(result: FitResult, scale: str = "none") -> list[str]:
    """Return lines of advice: those about the data first, then those about the clusters.

    `scale` is the option `--scale` of the fit.
    """
    if result.blocks.n_rows < _ROWS:
        return []
    about_scale = list(_advise_on_scale(result, scale))
    return [
        *_advise_on_columns(result),
        *about_scale,
        *_advise_on_copies(result),
        # Of columns that should be scaled first, the clusters and the best k are not known yet.
        *([] if about_scale else _advise_on_clusters(result)),
    ]


def _numbers(result: FitResult) -> dict[int, np.ndarray]:
    """Return the values of the columns of numbers in the sample, in the units of the data."""
    points = result.blocks.points[result.sample.rows].double().numpy()
    return {i: points[:, i] for i, word in enumerate(result.categories) if word is None}


def _ids(result: FitResult) -> list[int]:
    """Return the columns that name rows."""
    names = result.columns
    return [i for i, values in _numbers(result).items() if _names_rows(values, names[i])]


def _advise_on_columns(result: FitResult) -> Iterator[str]:
    """Yield advice to leave out columns: ids, constant ones, and one of two that are the same."""
    names, columns = result.columns, _numbers(result)
    if found := [names[i] for i in _ids(result)]:
        option = f"--id-column {found[0]} leaves it out and copies it to the labels"
        if result.table.id_column is not None or len(found) > 1:
            option = f"--exclude {','.join(found)}"
        yield (
            f"column{'s' * (len(found) > 1)} {join_words(found)}: a different integer in every "
            f"row, as numbers of rows and customers are; {option}"
        )
    counts = {names[i]: np.unique(values, return_counts=True)[1] for i, values in columns.items()}
    n_rows = len(result.sample.rows)
    shares = {name: float(of_values.max() / n_rows) for name, of_values in counts.items()}
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
    varied = [i for i in columns if shares[names[i]] < _MOST and i not in _ids(result)]
    if 1 < len(varied) <= _CORRELATED:
        same = np.abs(np.corrcoef(np.stack([columns[i] for i in varied]))) >= _SAME
        pairs = np.argwhere(np.triu(same, k=1))
        if len(pairs):
            first, second = (names[varied[i]] for i in pairs[0])
            yield (
                f"columns {first} and {second} say the same (correlation 1.00), so it counts "
                f"twice; --exclude {second}"
            )


def _advise_on_scale(result: FitResult, scale: str) -> Iterator[str]:
    """Yield advice on columns that outweigh others: by their unit, their tail, or their words."""
    variances = result.sample.points.var(dim=0, correction=0).numpy()
    names, words, ids = result.columns, np.array(result.categories, dtype=object), _ids(result)
    variances[ids] = 0.0  # they are to be left out first
    total = variances.sum()
    if len(variances) < 2 or total <= 0 or result.blocks.directions:
        return
    largest = int(variances.argmax())
    dominates = scale in _KEEP_WORDS and bool(variances[largest] >= _MOST * total)
    if dominates:
        yield (
            f"column {names[largest]} carries {_format_share(variances[largest] / total)} of the "
            "variance, so the others hardly matter; --scale auto gives each column its weight"
        )
    coded = words != None  # noqa: E711 (of each element)
    features = result.table.conversion.features
    n_coded = sum(feature.categories is not None for feature in features)
    n_numbers = len(features) - n_coded - len(ids)
    share = float(variances[coded].sum() / total)
    if scale in _KEEP_WORDS and n_numbers and share > max(0.5, 2 * n_coded / len(features)):
        yield (
            f"the {coded.sum()} columns of 0 and 1 carry {_format_share(share)} of the variance, "
            "and may hide the numbers; --scale auto gives all columns made from one column of "
            "words half the weight of a number"
        )
    if scale not in _KEEP_TAILS:
        return
    columns = {
        i: ColumnSample.of(values, np.ones(len(values)))
        for i, values in _numbers(result).items()
        if i not in ids and not (dominates and i == largest)
    }
    if share_unit(list(columns.values())):
        return
    choices = {i: choose_scale(column) for i, column in columns.items()}
    if tails := [names[i] for i, choice in choices.items() if choice.method == "log"]:
        yield (
            f"column{'s' * (len(tails) > 1)} {join_words(tails)}: a long tail, so that a few large "
            "values decide the clusters; --scale auto takes logarithms"
        )
    far = {names[i]: c.numbers["reach"] for i, c in choices.items() if c.method in ("clip", "rank")}
    if far:
        reach = max(far.values())
        yield (
            f"column{'s' * (len(far) > 1)} {join_words(list(far))}: values up to {reach:,.0f} "
            "deviations from the median, which weigh more than all others; --scale auto moves "
            "outliers to limits or takes ranks, and --algorithm trimmed leaves outliers out"
        )


def _advise_on_copies(result: FitResult) -> Iterator[str]:
    """Yield advice on rows that are copies in all columns of the file, not only in those used.

    Columns of few values repeat by chance: they must have many times more combinations than rows.
    """
    rows = np.ascontiguousarray(result.blocks.points[:_COMPARED].numpy()) + 0.0  # -0 is 0
    n_distinct = _count_distinct(rows)
    copies, tried = len(rows) - n_distinct, [run.k for run in result.runs]
    if len(rows) == result.blocks.n_rows and max(tried, default=0) > n_distinct:
        yield (
            f"k {max(tried)} is more than the {n_distinct:,} different rows; "
            f"-k {n_distinct} is the most that can be found"
        )
    if copies <= _COPIES * len(rows):
        return
    possible = np.prod([float(len(np.unique(column))) for column in rows.T])
    if possible < _POSSIBLE * len(rows):
        return
    table = result.table
    others = table.source.width - len(table.conversion.features)
    if others:  # rows may differ in the columns that were left out
        copies = min(copies, _count_copies_in_file(result, len(rows)))
    if copies > _COPIES * len(rows):
        first = "the first " if len(rows) < result.blocks.n_rows else ""
        yield (
            f"{copies:,} of {first}{len(rows):,} rows are copies of other rows, in all columns; "
            "remove them if they are a mistake, since each counts"
        )


def _count_distinct(rows: np.ndarray) -> int:
    """Return the number of different rows."""
    # Rows as single values of bytes: np.unique(axis=0) would sort them column by column.
    as_bytes = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
    return len(np.unique(as_bytes))


def _count_copies_in_file(result: FitResult, n_rows: int) -> int:
    """Return how many of the first rows of the file equal an earlier one in all its columns."""
    source, seen, count = result.table.source, set[tuple[str, ...]](), 0
    for batch in source.batches([], range(source.width)):
        texts = [column[: n_rows - count] for column in batch.texts]
        seen.update(tuple(map(str, row)) for row in zip(*texts, strict=True))
        count += len(texts[0])
        if count >= n_rows:
            break
    return count - len(seen)


def _names_rows(column: np.ndarray, name: str) -> bool:
    """Return True for distinct integers that are sorted, or whose column is called an id."""
    if not (column == np.round(column)).all() or len(np.unique(column)) < len(column):
        return False
    steps = np.diff(column)
    return bool((steps > 0).all() or (steps < 0).all() or _ID.search(name))


def _advise_on_clusters(result: FitResult) -> Iterator[str]:
    """Yield advice on a weak silhouette, clusters of one row, and a range of k that ends early."""
    tried = [run.k for run in result.runs]
    # In many columns all distances are alike, so silhouettes are small where gaps are clear.
    is_clear = result.evidence is not None and result.evidence.level == "clear"
    if result.silhouette is not None and result.silhouette < WEAK and not is_clear:
        yield (
            f"the {'best ' * (len(tried) > 1)}silhouette is {result.silhouette:.2f}, which is weak "
            "(clear clusters have more than 0.5): there may be no clusters"
        )
    alone = [j for j, size in enumerate(result.totals.sizes) if size == 1]
    trims = hasattr(result.model, "outliers_")
    if alone and not trims and result.blocks.n_rows >= _ALONE * result.n_clusters:
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
