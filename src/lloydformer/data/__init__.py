"""Sources of points: files, tables and arrays as blocks of rows that can be read repeatedly.

It imports `numerics` alone. Begin with `blocks.py` (what engines read) and `sources.py` (how a file
becomes blocks); `table.py` is what all kinds of tables have in common, `csv_format.py` detects how
a text is written, `notation_choice.py` how its values are; `column_choice.py` chooses columns, and
`conversion.py` turns them into points. `storage/` writes files and folders so that they are whole
or absent.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.data.sources import open_dataset as open_dataset
else:  # the same name, imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {"open_dataset": "lloydformer.data.sources"}
    __all__ = [*_HOMES]
    _RENAMED = {"open": "open_dataset"}
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, _RENAMED)
