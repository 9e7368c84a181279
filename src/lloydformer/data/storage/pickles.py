"""Small values as bytes: tensors by value, and nothing but data when they are read."""

import importlib
import io
import pickle
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_ALLOWED = {
    "builtins": {"frozenset", "set", "range", "slice", "complex", "bytearray"},
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "torch": {"device", "float32", "float64"},
    "lloydformer.storage.pickles": {"tensor_of"},
    "lloydformer.engines.parts.running_sums": {"RunningSums"},
    "lloydformer.solving.best_seen": {"BestSeen"},
}
"""Names that bytes from a file may use, beside classes of this package that only hold values."""


class _Pickler(pickle.Pickler):
    """Tensors by value: not the whole storage that they are a view of, and on the CPU."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return tensor_of, (value.detach().cpu().numpy().copy(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Reads data alone: a file with anything that could run a program is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _ALLOWED.get(module, ()):
            return getattr(importlib.import_module(module), name)
        if module.startswith("lloydformer."):
            found = getattr(importlib.import_module(module), name, None)
            if is_value_class(found) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no data")


def is_value_class(found: Any) -> bool:
    """Is this a class that only holds values: a dataclass or a named tuple?"""
    return isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields"))


def tensor_of(array: np.ndarray) -> Tensor:
    """A tensor in the memory of an array."""
    return torch.from_numpy(array)


def pickled(value: Any) -> bytes:
    """A value as bytes."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def unpickled_data(content: bytes) -> Any:
    """The value of `pickled`; raises `pickle.UnpicklingError` for anything but data."""
    return _Unpickler(io.BytesIO(content)).load()
