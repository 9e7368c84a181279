"""pandas data frames as tables of points."""

from typing import Any

import numpy as np

from lloydformer.data.columns import ColumnFinder, Table


def from_frame(source: Any, columns: tuple[str, ...] | None) -> Table:
    """Convert a frame: float32 if every column is, else float64; with names if all are strings."""
    named = all(isinstance(name, str) for name in source.columns)
    names, width = list(source.columns) if named else None, source.shape[1]
    indices = ColumnFinder("source", names, width).indices(columns)
    frame = source.iloc[:, list(indices)]
    for name, kind in frame.dtypes.items():
        if kind.kind not in "iubf":
            raise ValueError(f"source: column {name} holds no numbers; choose columns of numbers")
    small = all(kind == np.float32 for kind in frame.dtypes)
    points = frame.to_numpy(dtype=np.float32 if small else np.float64, na_value=np.nan)
    return Table(np.ascontiguousarray(points), tuple(frame.columns) if named else None)
