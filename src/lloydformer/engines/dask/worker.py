"""What workers do: make parts of pieces, and answer questions about them.

The state of the points of a part lives beside them in the worker, and ends with them: it is found
by the object that holds the rows, which Dask keeps as long as somebody wants it.
"""

import pickle
from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lloydformer.engines.dask.pieces import rows_of
from lloydformer.engines.parts.holder import Holder, OpenPart
from lloydformer.engines.parts.opening import PartRows
from lloydformer.numerics.units import divided
from lloydformer.storage.pickles import pickled

_OPEN: "WeakKeyDictionary[PartRows, dict[str, OpenPart]]" = WeakKeyDictionary()
_LOCK = Lock()


def made_part(
    first_row: int, dtype: str, exponent: int | None, ignore_zeros: bool,
    pieces: Sequence[tuple[int, int, int]], blocks: Sequence[Any], weights: Sequence[Any],
) -> PartRows:  # fmt: skip
    """The rows of a part. Those of a single piece are not copied, if they have the precision.

    Parameters
    ----------
    first_row : int
        Its first row among all rows.
    dtype : str
        Of all rows.
    exponent : int or None
        Weights are divided by 2 to this power; None: there are none.
    ignore_zeros : bool
        Rows of zeros get the weight 0.
    pieces : sequence of (int, int, int)
        The number of each piece, and the rows [from, to) of it.
    blocks, weights : sequence
        The pieces, and their weights.
    """
    taken = [
        rows_of(number, block)[start:stop]
        for (number, start, stop), block in zip(pieces, blocks, strict=True)
    ]
    points = taken[0] if len(taken) == 1 else np.concatenate(taken)
    points = points.astype(dtype, copy=False)
    if exponent is None:
        return PartRows(first_row, points)
    pairs = zip(pieces, weights, strict=True)
    given = np.concatenate([np.asarray(w, dtype=np.float64)[a:b] for (_, a, b), w in pairs])
    scaled = divided(given, exponent)
    if ignore_zeros:
        scaled[~points.any(axis=1)] = 0.0
    return PartRows(first_row, points, scaled)


def answered(
    session: str, sent: bytes, n_rows: int, numbers: Sequence[int], parts: Sequence[PartRows],
    n_threads: int | None = None,
) -> tuple[str, bytes]:  # fmt: skip
    """The address of this worker, and its answer to a question about some parts that it has.

    Opening and question come, and the answer goes, as bytes: torch needs milliseconds for the few
    tensors in them (`storage.pickles`).
    """
    from distributed import get_worker

    worker, (opening, question) = get_worker(), pickle.loads(sent)
    holder = Holder(opening, n_threads or worker.state.nthreads, n_rows)
    for number, rows in zip(numbers, parts, strict=True):
        with _LOCK:
            opened = _OPEN.setdefault(rows, {})
            if session not in opened:
                opened[session] = holder.opened(rows)
            holder.parts[number] = opened[session]
    return worker.address, pickled(holder.answer(question))
