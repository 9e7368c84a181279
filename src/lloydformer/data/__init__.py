"""Sources of points: files, tables and arrays as blocks of rows that can be read repeatedly."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.data.sources import open as open
else:  # the same name, imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {"open": "lloydformer.data.sources"}
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
