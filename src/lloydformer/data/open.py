"""`lf.data.open`: any source of points as re-readable blocks."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.files import checked, chosen, read_table
from lloydformer.data.frames import from_frame
from lloydformer.data.scaling import Scale, scaling_of
from lloydformer.data.tables import Table, from_arrow


def open(
    source: str | os.PathLike[str] | np.ndarray | Any,
    *,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
) -> TensorBlocks:
    """Points as blocks that every estimator's `fit` and `predict` accept.

    source: a .csv, .tsv, .parquet, .npy or .npz file, a folder of such files, an array, a data
    frame, a pyarrow Table, or the name or number of an OpenML data set. NPY files are mapped, not
    read, and must not change while they are in use; tables larger than 256 MB go through a scratch
    file in the folder for temporary files, as do chosen columns of a mapped file.

    columns: names, or numbers counted from 1 where columns have no names. scale: "minmax" or
    "standard"; computed once, applied as rows are read, kept with the model and undone on its
    centers.
    """
    wanted = None if columns is None else tuple(columns)
    table = _table(source, wanted)
    with warnings.catch_warnings():  # a mapped file must not be written to: nothing here does
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        points = torch.from_numpy(table.points)
    scaling = None if scale is None else scaling_of(points, scale)
    mapped = isinstance(table.points, np.memmap)
    return TensorBlocks(points, scaling=scaling, names=table.names, mapped=mapped)


def _table(source: Any, columns: tuple[str, ...] | None) -> Table:
    if isinstance(source, np.ndarray):
        return checked("source", Table(chosen("source", source, columns), None))
    if hasattr(source, "iloc"):
        return checked("source", from_frame(source, columns))
    if hasattr(source, "to_batches"):
        return checked("source", from_arrow(source, columns))
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source: found {type(source).__name__}; pass a path, an array, a data "
                         "frame, a pyarrow Table or the name of an OpenML set")  # fmt: skip
    if not str(source):
        raise ValueError("source: found an empty name; pass that of a file, a folder or a set")
    path = Path(source)
    if not path.exists() and not path.suffix and path.name == str(source):
        return _from_openml(str(source), columns)
    return read_table(path, columns)


def _from_openml(name: str, columns: tuple[str, ...] | None) -> Table:
    """The set of this name in the folder LLOYDFORMER_DATA, else from OpenML, cached."""
    folder = os.environ.get("LLOYDFORMER_DATA")
    if folder and (path := Path(folder) / f"{name}.npz").exists():
        return read_table(path, columns)
    from sklearn.datasets import fetch_openml

    which = {"data_id": int(name)} if name.isdigit() else {"name": name}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred")  # it is said below
            found = fetch_openml(**which, as_frame=False, parser="liac-arff")
    except (ValueError, OSError) as error:  # an unknown name; the network or the server
        raise ValueError(
            f"{name}: no such file, and OpenML did not give a data set of this name "
            f"({type(error).__name__}); check the path, or set LLOYDFORMER_DATA to a folder of .npz"
        ) from None
    return Table(np.asarray(found.data, dtype=np.float64), tuple(found.feature_names))
