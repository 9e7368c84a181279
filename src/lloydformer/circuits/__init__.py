"""The parts of the transformer, from the subspaces of a token to a circuit of many layers."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from lloydformer.lazy_imports import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
