"""Sources of points: files, tables and arrays as blocks of rows that can be read repeatedly."""

from lloydformer.data.open import open

__all__ = ["open"]
