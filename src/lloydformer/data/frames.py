"""Data frames, as pandas has them."""

from typing import Any

import numpy as np

from lloydformer.data.tables import Table, place


def from_frame(source: Any, columns: tuple[str, ...] | None) -> Table:
    """The numbers of a frame, in float32 where every column is; its names if they are words."""
    named = all(isinstance(name, str) for name in source.columns)
    names, width = list(source.columns) if named else None, source.shape[1]
    places = [place("source", c, names, width) for c in columns] if columns else range(width)
    frame = source.iloc[:, list(places)]
    for name, kind in frame.dtypes.items():
        if kind.kind not in "iubf":
            raise ValueError(f"source: column {name} holds no numbers; choose columns of numbers")
    small = all(kind == np.float32 for kind in frame.dtypes)
    points = frame.to_numpy(dtype=np.float32 if small else np.float64, na_value=np.nan)
    return Table(np.ascontiguousarray(points), tuple(frame.columns) if named else None)
