"""Where points come from: rows, blocks of them that can be read again, and files."""

from lloydformer.data.open import open

__all__ = ["open"]
