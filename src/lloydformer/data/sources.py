"""`lf.data.open`: any source of points as re-readable blocks."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.columns import Table
from lloydformer.data.files import check_table, read_table, select_columns
from lloydformer.data.frames import from_frame
from lloydformer.data.openml import read_openml
from lloydformer.data.paths import PREFIX, path_of
from lloydformer.data.scaling import Scale, scaling_of
from lloydformer.data.tables import from_arrow, from_arrow_stream


def open(
    source: str | os.PathLike[str] | np.ndarray | Any,
    *,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
) -> TensorBlocks:
    """Open points that every estimator's `fit` and `predict` accept.

    Data may be larger than memory. NPY files are memory-mapped, and must not change while they
    are in use. Tables larger than 256 MB are copied to a scratch file in the folder for temporary
    files (TMPDIR), as are chosen columns of an NPY file of that size.

    Parameters
    ----------
    source : str, path, array, data frame or Arrow table
        A .csv, .tsv, .txt, .parquet, .npy or .npz file, or a folder of these; or a NumPy array, a
        pandas or polars data frame, a pyarrow Table or another object with the method
        ``__arrow_c_stream__``; or a data set of OpenML: "openml:NAME",
        "openml:NAME@VERSION" or "openml:NUMBER". It is fetched once, and kept in the cache folder
        with its version and hash. If the environment variable LLOYDFORMER_DATA names a folder with
        NAME.npz, that is used in place of OpenML; nothing else uses the network.
    columns : sequence of str or None, default=None
        Columns to use: names, or numbers counted from 1 if columns have no names. None for all.
    scale : {"minmax", "standard"} or None, default=None
        Scale every column to [0, 1], or to mean 0 and variance 1. The scaling is computed once,
        applied as rows are read, kept with the model and undone on its centers.

    Returns
    -------
    TensorBlocks
        Rows that can be read repeatedly, block by block; `points` is the whole tensor.

    Raises
    ------
    ValueError
        If the source is not found, not readable or not numeric, or if it has missing or infinite
        values.

    See Also
    --------
    lloydformer.KMeans.fit : Fit on opened data.

    Examples
    --------
    >>> import numpy as np
    >>> import lloydformer as lf
    >>> data = lf.data.open(np.array([[0.0, 5.0], [1.0, 7.0], [4.0, 9.0]]), columns=["2"])
    >>> data.points
    tensor([[5.],
            [7.],
            [9.]], dtype=torch.float64)
    >>> lf.KMeans(1, random_state=0).fit(data).cluster_centers_
    array([[7.]])
    """
    wanted = None if columns is None else tuple(columns)
    table = _table(source, wanted)
    with warnings.catch_warnings():  # nothing writes to a mapped file
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        points = torch.from_numpy(table.points)
    scaling = None if scale is None else scaling_of(points, scale)
    mapped = isinstance(table.points, np.memmap)
    return TensorBlocks(points, scaling=scaling, names=table.names, mapped=mapped)


def _table(source: Any, columns: tuple[str, ...] | None) -> Table:
    if isinstance(source, np.ndarray):
        return check_table("source", Table(select_columns("source", source, columns), None))
    if hasattr(source, "iloc"):
        return check_table("source", from_frame(source, columns))
    if hasattr(source, "to_batches"):
        return check_table("source", from_arrow(source, columns))
    if hasattr(source, "__arrow_c_stream__"):
        return check_table("source", from_arrow_stream(source, columns))
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source: found {type(source).__name__}; pass a path, an array, a data "
                         "frame, an Arrow table or openml:NAME")  # fmt: skip
    if str(source).startswith(PREFIX):
        return read_openml(str(source), columns)
    return read_table(path_of(str(source)), columns)
