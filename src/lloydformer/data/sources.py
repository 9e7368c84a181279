"""`lf.data.open`: any source of points as re-readable blocks."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lloydformer.data.array_source import ArraySource
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.frames import FrameSource
from lloydformer.data.opened import OpenedTable, convert, open_table
from lloydformer.data.scaling import Scale, scaling_of
from lloydformer.data.table_options import Missing, TableOptions
from lloydformer.data.tables import arrow_source, arrow_stream_source


def open(
    source: str | os.PathLike[str] | np.ndarray | Any,
    *,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
    exclude: Sequence[str] = (),
    one_hot: Sequence[str] = (),
    numeric_only: bool = False,
    missing: Missing = "error",
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> TensorBlocks:
    """Open points that every estimator's `fit` and `predict` accept.

    Data may be larger than memory. NPY files are memory-mapped, and must not change while they
    are in use. Tables larger than 256 MB are copied to a scratch file in the folder for temporary
    files (TMPDIR), as are chosen columns of an NPY file of that size.

    Parameters
    ----------
    source : str, path, array, data frame or Arrow table
        A .csv, .tsv, .txt, .xlsx, .parquet, .npy or .npz file, a text compressed as .gz, .zst,
        .bz2 or .xz, or a folder of these; or "-", standard input; or a NumPy array, a pandas or
        polars data frame, a pyarrow Table or another object with the method
        ``__arrow_c_stream__``; or a data set of OpenML: "openml:NAME",
        "openml:NAME@VERSION" or "openml:NUMBER". It is fetched once, and kept in the cache folder
        with its version and hash. If the environment variable LLOYDFORMER_DATA names a folder with
        NAME.npz, that is used in place of OpenML; nothing else uses the network.
    columns : sequence of str or None, default=None
        Columns to use: names, or numbers counted from 1 if columns have no names. None for all.
    scale : {"minmax", "standard"} or None, default=None
        Scale every column to [0, 1], or to mean 0 and variance 1. The scaling is computed once,
        applied as rows are read, kept with the model and undone on its centers.
    exclude : sequence of str, default=()
        Columns to leave out.
    one_hot : sequence of str, default=()
        Columns of words, at most 100 different ones each, to convert to a column of 0 and 1 for
        each word.
    numeric_only : bool, default=False
        Leave out columns that hold anything but numbers and missing values.
    missing : {"error", "drop", "median"}, default="error"
        What to do with missing values: raise an error, leave out their rows, or fill in the median
        of the column (for `one_hot` the most common word).
    sep, decimal, encoding : str or None, default=None
        How a text is written: the separator of values, "." or "," in numbers, and the encoding.
        None stands for what is recognised in its beginning.
    header : bool or None, default=None
        Whether the first line of a text has the names of the columns. None stands for yes if it
        holds words, no if it holds numbers; a line that may be either is an error.

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
    options = TableOptions(
        None if columns is None else tuple(columns), tuple(exclude), tuple(one_hot), numeric_only,
        None, missing, sep, decimal, encoding, header,
    )  # fmt: skip
    return blocks_of(_opened(source, options), scale)


def blocks_of(opened: OpenedTable, scale: Scale | None = None) -> TensorBlocks:
    """The points of an opened table as blocks."""
    with warnings.catch_warnings():  # nothing writes to a mapped file
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        points = torch.from_numpy(opened.points)
    scaling = None if scale is None else scaling_of(points, scale)
    mapped = isinstance(opened.points, np.memmap)
    return TensorBlocks(points, scaling=scaling, names=opened.names, mapped=mapped)


def _opened(source: Any, options: TableOptions) -> OpenedTable:
    if isinstance(source, np.ndarray):
        return convert(ArraySource("source", source), options)
    if hasattr(source, "iloc"):
        return convert(FrameSource(source, options), options)
    if hasattr(source, "to_batches"):
        return convert(arrow_source(source, options), options)
    if hasattr(source, "__arrow_c_stream__"):
        return convert(arrow_stream_source(source, options), options)
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source: found {type(source).__name__}; pass a path, an array, a data "
                         "frame, an Arrow table or openml:NAME")  # fmt: skip
    return open_table(str(source), options)
