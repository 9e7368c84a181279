"""The attributes of a fitted estimator: their names, types and shapes."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.scaling import Scaling
from lloydformer.engines.dask.pieces import is_collection
from lloydformer.estimators.source import View

_NUMBERS: dict[str, type[Any]] = {
    "inertia_": float, "n_iter_": int, "n_features_in_": int, "lowered_": bool,
    "_n_features_out": int, "_n_init": int, "n_steps_": int, "inverse_temperature_": float,
}  # fmt: skip
_ARRAYS = {
    "cluster_centers_": ("f", ("k", "d")),
    "labels_": ("i", ("any",)),
    "outliers_": ("i", ("any",)),
    "medoid_indices_": ("i", ("k",)),
    "_counts": ("f", ("k",)),
    "objective_history_": ("f", ("any",)),
    "best_objective_history_": ("f", ("any",)),
    "feature_names_in_": ("O", ("d",)),
}
"""Kind of number and shape; k clusters, d features."""
_VIEW = dict.fromkeys(("origin", "shift", "scale"), ("f", ("d",)))
_ALWAYS = {"cluster_centers_", "inertia_", "n_features_in_", "_n_features_out"}
LAZY = ("labels_", "outliers_")
"""After a fit on a cluster these are dask arrays, which stay with the collection they belong to."""
_OF_A_SESSION = {"_sklearn_output_config", "_metadata_request", "_view"}
"""How results are shown and weights are routed is not the model's; the view is apart."""


def attributes_of(model: Any) -> dict[str, Any]:
    """Everything that fitting has set; empty where the model is not fitted."""
    if not hasattr(model, "cluster_centers_"):
        return {}
    parameters = model.get_params(deep=False).keys()
    kept = without_lazy(vars(model))
    names = [n for n in kept if n not in parameters and n not in _OF_A_SESSION]
    if unknown := [n for n in names if n not in _NUMBERS and n not in _ARRAYS]:
        raise ValueError(
            f"{', '.join(unknown)}: no attribute of a fitted {type(model).__name__}, and cannot "
            "be saved; delete it before"
        )
    return {name: getattr(model, name) for name in names}


def without_lazy(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes without labels that are not computed: their graph may hold all the data."""
    lazy = [n for n in LAZY if n in state and is_collection(state[n])]
    return {name: value for name, value in state.items() if name not in lazy}


def view_arrays(model: Any) -> dict[str, Tensor]:
    """How it looks at rows; empty where the model is not fitted."""
    if not hasattr(model, "cluster_centers_"):
        return {}
    view = model._view
    scaling = view.scaling
    scales = {} if scaling is None else {"shift": scaling.shift, "scale": scaling.scale}
    return {"origin": view.origin, **scales}


def view_of(arrays: dict[str, Any]) -> View:
    scaling = Scaling(arrays["shift"], arrays["scale"]) if "scale" in arrays else None
    return View(arrays["origin"], scaling)


def check_fitted(attributes: dict[str, Any], view: dict[str, Any]) -> None:
    """Are these the attributes of one fitted model, as `attributes_of` gives them?"""
    if missing := sorted(_ALWAYS - attributes.keys()):
        raise ValueError(f"lacks {', '.join(missing)}")
    for name, value in attributes.items():
        if name in _NUMBERS:
            _check_number(name, value)
        elif name not in _ARRAYS:
            raise ValueError(f"found attribute {name!r}, which no fitted model has")
    sizes = {"k": attributes["_n_features_out"], "d": attributes["n_features_in_"]}
    for name, (kind, shape) in _ARRAYS.items():
        if name in attributes:
            _check_array(name, attributes[name], kind, shape, sizes)
    if "labels_" in attributes:
        _check_labels(torch.as_tensor(attributes["labels_"]), sizes["k"])
    if view.keys() not in ({"origin"}, _VIEW.keys()):
        raise ValueError(f"found view {sorted(view)}; it has origin, or {', '.join(_VIEW)}")
    for name, value in view.items():
        _check_array(f"view.{name}", value, *_VIEW[name], sizes)


def _check_number(name: str, value: Any) -> None:
    if type(value) is not _NUMBERS[name] or (type(value) is int and value < 1):
        raise ValueError(f"{name}: found {value!r}; it is a {_NUMBERS[name].__name__}")


def _check_array(
    name: str, value: Any, kind: str, shape: tuple[str, ...], sizes: dict[str, int]
) -> None:
    array = value.numpy() if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.ndim != len(shape):
        raise ValueError(f"{name}: found {_words(array)}; it is {_words_of(kind, shape)}")
    wanted = tuple(sizes.get(axis, n) for axis, n in zip(shape, array.shape, strict=True))
    if array.shape != wanted:
        raise ValueError(f"{name}: found the shape {array.shape}; it is {wanted}")
    if "d" in shape and kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name}: found NaN or infinity")


def _check_labels(labels: Tensor, n_clusters: int) -> None:
    if labels.numel() and not (int(labels.min()) >= -1 and int(labels.max()) < n_clusters):
        raise ValueError(f"labels_: found one that is not between -1 and {n_clusters - 1}")


_KINDS = {"f": "floats", "i": "whole numbers", "O": "names"}


def _words_of(kind: str, shape: tuple[str, ...]) -> str:
    return f"{_KINDS[kind]} in {len(shape)} axes"


def _words(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return repr(array)
    return f"an array of {array.dtype} with the shape {array.shape}"
