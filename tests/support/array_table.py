"""Arrays as tables, for jobs that read tables."""

import numpy as np

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sources import OpenedTable, convert, to_blocks
from lloydformer.data.table_options import TableOptions
from lloydformer.data.typed_tables import ArrayTable


def open_array(points: np.ndarray) -> tuple[OpenedTable, TensorBlocks]:
    """Return the table of an array, and its rows."""
    table = convert(ArrayTable("array", points, TableOptions()))
    return table, to_blocks(table)
