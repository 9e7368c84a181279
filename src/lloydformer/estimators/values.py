"""Parameters and attributes of an estimator as JSON, their arrays apart, and back."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.circuits.activations import TopK
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.data.namespaces import namespace_of, tensor_of
from lloydformer.storage.model_folder import Arrays


def parameter_written(name: str, value: Any, tensors: Arrays) -> Any:
    """Parameters that are code or a stream of random numbers cannot be written down."""
    if name in ("callback", "checkpoint"):
        return None
    code = callable(value) and not isinstance(value, TopK)
    if code or isinstance(value, np.random.RandomState):
        raise ValueError(
            f"{name}: found {value!r}, which cannot be saved; call set_params({name}=...) before"
        )
    return value_written(name, value, tensors)


def value_written(name: str, value: Any, tensors: Arrays) -> Any:
    """A value as JSON; arrays and tensors go to `tensors` under its name."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, Recipe | TopK):
        return _part_written(name, value)
    if isinstance(value, Tensor) or namespace_of(value) is not None:
        tensors[name] = tensor_of(value).detach().cpu().numpy()
        return {"tensor": name}
    return _array_written(name, value, tensors)


def _part_written(name: str, value: Recipe | TopK) -> Any:
    try:
        return {"recipe": serialise(value)}
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _array_written(name: str, value: Any, tensors: Arrays) -> Any:
    array = value.toarray() if sparse.issparse(value) else np.asarray(value)
    if name == "feature_names_in_":
        return {"names": array.tolist()}
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: found {value!r}, which cannot be saved; pass numbers")
    tensors[name] = array.astype(array.dtype.newbyteorder("="))
    return {"array": name}


def value_read(name: str, found: Any, tensors: Arrays) -> Any:
    """What `value_written` wrote; arrays and tensors are taken out of `tensors`."""
    if not isinstance(found, dict):
        return found
    if len(found) != 1:
        raise ValueError(f"{name}: found {found!r}, which is no value")
    ((kind, value),) = found.items()
    if kind in ("array", "tensor") and isinstance(value, str) and value in tensors:
        array = tensors.pop(value)
        return array if kind == "array" else torch.from_numpy(array)
    if kind == "float" and value in ("inf", "-inf", "nan"):
        return float(value)
    if kind == "names" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return np.array(value, dtype=object)
    if kind == "recipe":
        return deserialise(value)
    raise ValueError(f"{name}: found {found!r}, which is no value or is not in the tensors")
