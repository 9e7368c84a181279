"""Arrays of other libraries that follow the array API standard: in by DLPack, and back."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

_CPU = 1
"""DLPack's number of the CPU."""


def namespace_of(X: Any) -> Any:
    """The library of an array; None for NumPy, torch, and what is no array of the standard."""
    if isinstance(X, np.ndarray | Tensor) or not hasattr(X, "__array_namespace__"):
        return None
    return X.__array_namespace__() if hasattr(X, "__dlpack__") else None


def tensor_of(values: Any) -> Tensor:
    """An array of any library as a tensor on its device, without a copy where possible."""
    if namespace_of(values) is None:
        return torch.as_tensor(values)
    try:
        if values.__dlpack_device__()[0] == _CPU:
            return unwarned(np.ascontiguousarray(np.from_dlpack(values)))
        if any(step < 0 for step in getattr(values, "strides", ())):  # torch would end the process
            values = values.copy()
        return torch.utils.dlpack.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(
            f"found an array of {type(values).__module__} that torch cannot read ({error}); "
            "pass one of NumPy or torch"
        ) from None


def unwarned(array: np.ndarray) -> Tensor:
    """An array as a tensor, without a warning if it is read-only: nothing here writes to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)
