"""CSR matrices as the rest of the package expects them."""

from copy import copy
from typing import Any

import numpy as np

_KNOWN = ("_has_canonical_format", "_has_sorted_indices")
"""What SciPy remembers of a matrix; wrong if its arrays were written since."""


def canonical(matrix: Any) -> Any:
    """The same CSR matrix, in which the columns of a row ascend and none is stored twice.

    Entries that are stored twice are added. The matrix itself is returned if it is so already;
    otherwise a copy. The given one is never changed.

    Raises
    ------
    ValueError
        If a row begins behind its end, or an index is not that of a column.
    """
    _check(matrix)
    fresh = _forgotten(copy(matrix))
    if fresh.has_canonical_format:
        return matrix
    fresh = _forgotten(matrix.copy())
    fresh.sum_duplicates()
    return fresh


def _check(matrix: Any) -> None:
    starts, n_columns = matrix.indptr, matrix.shape[1]
    inside = starts[0] == 0 and starts[-1] <= min(len(matrix.indices), len(matrix.data))
    if not inside or (starts[1:] < starts[:-1]).any():
        raise ValueError(
            "X: found a CSR matrix whose indptr does not ascend from 0 to the number "
            "of its entries; build it again"
        )
    used = matrix.indices[: starts[-1]]
    lowest, highest = np.min(used, initial=0), np.max(used, initial=0)
    if lowest < 0 or highest >= n_columns:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(
            f"X: found column {wrong} in a CSR matrix of {n_columns} columns; build it again"
        )


def _forgotten(matrix: Any) -> Any:
    for name in _KNOWN:
        vars(matrix).pop(name, None)
    return matrix
