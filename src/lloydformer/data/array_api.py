"""Arrays of other libraries that follow the array API standard: converted to tensors by DLPack."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

# DLPack's number of the CPU (kDLCPU).
_CPU = 1


def get_namespace(X: Any) -> Any:
    """Return the library of an array; None for NumPy, torch, and what follows no standard."""
    if isinstance(X, np.ndarray | Tensor) or not hasattr(X, "__array_namespace__"):
        return None
    return X.__array_namespace__() if hasattr(X, "__dlpack__") else None


def to_tensor(values: Any) -> Tensor:
    """Return an array of any library as a tensor on its device, without a copy where possible."""
    if get_namespace(values) is None:
        return torch.as_tensor(values)
    try:
        if values.__dlpack_device__()[0] == _CPU:
            return tensor_from_numpy(np.ascontiguousarray(np.from_dlpack(values)))
        if any(step < 0 for step in getattr(values, "strides", ())):
            values = values.copy()  # at a negative stride torch would end the process
        return torch.utils.dlpack.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(
            f"found an array of {type(values).__module__} that torch cannot read ({error}); "
            "pass one of NumPy or torch"
        ) from None


def tensor_from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor in the memory of an array, which may be read-only: it is never written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)
