"""`lf.data.open`: any source of points as re-readable blocks."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.files import check_table, read_table, select_columns
from lloydformer.data.frames import from_frame
from lloydformer.data.scaling import Scale, scaling_of
from lloydformer.data.tables import Table, from_arrow


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
    source : str, path, array, data frame or pyarrow.Table
        A .csv, .tsv, .txt, .parquet, .npy or .npz file, or a folder of these; or a NumPy array, a
        pandas data frame or a pyarrow Table; or the name or number of an OpenML data set. If the
        environment variable LLOYDFORMER_DATA names a folder with NAME.npz, that is used in place
        of OpenML.
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
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source: found {type(source).__name__}; pass a path, an array, a data "
                         "frame, a pyarrow Table or the name of an OpenML set")  # fmt: skip
    if not str(source):
        raise ValueError("source: found an empty name; pass a file, a folder or an OpenML set")
    path = Path(source)
    if not path.exists() and not path.suffix and path.name == str(source):
        return _from_openml(str(source), columns)
    return read_table(path, columns)


def _from_openml(name: str, columns: tuple[str, ...] | None) -> Table:
    """Read NAME.npz in the folder LLOYDFORMER_DATA, else fetch the set from OpenML, cached."""
    folder = os.environ.get("LLOYDFORMER_DATA")
    if folder and (path := Path(folder) / f"{name}.npz").exists():
        return read_table(path, columns)
    from sklearn.datasets import fetch_openml

    which = {"data_id": int(name)} if name.isdigit() else {"name": name}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred")  # the error below says so
            found = fetch_openml(**which, as_frame=False, parser="liac-arff")
    except (ValueError, OSError) as error:  # unknown name; network or server
        raise ValueError(
            f"{name}: no such file, and OpenML returned no data set of this name "
            f"({type(error).__name__}); check the path, or set LLOYDFORMER_DATA to a folder of .npz"
        ) from None
    return Table(np.asarray(found.data, dtype=np.float64), tuple(found.feature_names))
