"""Pickles that hold data alone: small values as bytes, for checkpoints and for other processes.

Reading a pickle can run any program. So `load_data` refuses everything but known types: classes of
this package that only hold values, arrays and tensors.
"""

import importlib
import io
import pickle
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Names that bytes from a file may use, beside dataclasses and named tuples of this package.
_ALLOWED = {
    "builtins": {"frozenset", "set", "range", "slice", "complex", "bytearray"},
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "torch": {"device", "float32", "float64"},
    "lloydformer.data.storage.pickles": {"tensor_of"},
}


class _Pickler(pickle.Pickler):
    """Write tensors by value: not the whole storage that they are a view of, and on the CPU."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return tensor_of, (value.detach().cpu().numpy().copy(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Read data alone; raises `pickle.UnpicklingError` at a name that is not allowed."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _ALLOWED.get(module, ()):
            return getattr(importlib.import_module(module), name)
        if module.startswith("lloydformer."):
            found = getattr(importlib.import_module(module), name, None)
            # Dataclasses and named tuples only hold values. One that a module has imported from
            # elsewhere does not count.
            holds_values = isinstance(found, type) and (
                is_dataclass(found) or hasattr(found, "_fields")
            )
            if holds_values and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is not data")


def tensor_of(array: np.ndarray) -> Tensor:
    """Return a tensor in the memory of an array; pickles call it by its name."""
    return torch.from_numpy(array)


def dump_data(value: Any) -> bytes:
    """Return a value as bytes."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def load_data(content: bytes) -> Any:
    """Return the value of `dump_data`; raises `pickle.UnpicklingError` for anything but data."""
    return _Unpickler(io.BytesIO(content)).load()
