"""Estimators in a folder, as JSON and safetensors: `save_pretrained` and `from_pretrained`.

In order: the base class of estimators; values as JSON, with arrays apart; the attributes of a
fitted estimator, and their checks when a folder is read.
"""

import inspect
import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator
from torch import Tensor

from lloydformer.circuits.activations import TopK
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.data.array_api import get_namespace, to_tensor
from lloydformer.data.categories import Encoding
from lloydformer.data.column_statistics import Scaling
from lloydformer.data.curves import Curves
from lloydformer.data.storage.model_folder import CONFIG, Arrays, Config, read_folder, write_folder
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.estimators.devices import parse_device
from lloydformer.estimators.source import View, count_centers
from lloydformer.renamed import RenamedParameters, old_names, to_new_names

# Types of the fitted attributes that are single values.
_NUMBERS: dict[str, type[Any]] = {
    "inertia_": float,
    "n_iter_": int,
    "n_features_in_": int,
    "lowered_": bool,
    "_n_features_out": int,
    "_n_init": int,
    "n_steps_": int,
    "inverse_temperature_": float,
    "converged_": bool,
    "lower_bound_": float,
    "gap_": float,
    "gamma_": float,
    "_encoding": str,
}

# Kind of number and shape of the fitted attributes that are arrays; k clusters, d features. None:
# the shape depends on parameters, and the estimator checks it (`Saved._check_loaded`).
_ARRAYS: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "cluster_centers_": ("f", ("k", "d")),
    "labels_": ("i", ("any",)),
    "outliers_": ("i", ("any",)),
    "medoid_indices_": ("i", ("k",)),
    "_counts": ("f", ("k",)),
    "objective_history_": ("f", ("any",)),
    "best_objective_history_": ("f", ("any",)),
    "feature_names_in_": ("O", ("d",)),
    "sizes_": ("i", ("k",)),
    "prices_": ("f", ("k",)),
    "weights_": ("f", ("k",)),
    "means_": ("f", ("k", "d")),
    **dict.fromkeys(("covariances_", "precisions_", "precisions_cholesky_"), ("f", None)),
    "lower_bounds_": ("f", ("any",)),
}
_KINDS = {"f": "floats", "i": "whole numbers", "O": "names"}
_VIEW = dict.fromkeys(("origin", "shift", "scale"), ("f", ("d",)))
# Logarithms and ranks of columns, if the scaling has them: attributes of `Curves`.
_CURVES = {
    "units": ("f", ("d",)),
    "counts": ("i", ("d",)),
    "values": ("f", ("any",)),
    "shares": ("f", ("any",)),
}
# Packages whose versions are noted in a model folder, for people; reading does not depend on them.
_PACKAGES = ("lloydformer", "torch", "numpy", "scikit-learn")

# After a fit on a cluster these are dask arrays, which stay with the collection they belong to.
LAZY = ("labels_", "outliers_")

# Not part of a model: the output format, the routing of weights, the unit of the tolerance. The
# view is saved apart.
_OF_A_SESSION = {"_sklearn_output_config", "_metadata_request", "_view", "_typical_tolerance"}


class DocLinked(BaseEstimator):
    """Link the HTML representation to the source file, whose docstring documents the class.

    scikit-learn shows the documentation of parameters in a notebook only where there is a link.
    """

    _doc_link_module: ClassVar[str] = "lloydformer"
    _doc_link_template: ClassVar[str] = "{source}"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"source": Path(inspect.getfile(type(self))).as_uri()}


S = TypeVar("S", bound="Saved")


class Saved(RenamedParameters, DocLinked):
    """Base class of estimators that can be saved in a folder, without pickle.

    See Also
    --------
    Clusterer : Base class of the clustering estimators.

    Examples
    --------
    >>> import lloydformer as lf
    >>> hasattr(lf.KMeans, "save_pretrained"), hasattr(lf.KMeans, "from_pretrained")
    (True, True)
    """

    # Attributes of every fitted model, also after `partial_fit` alone.
    _required: ClassVar[frozenset[str]] = frozenset(
        {"cluster_centers_", "inertia_", "n_features_in_", "_n_features_out"}
    )

    def _check_loaded(self) -> None:
        """Raise `ValueError` for attributes of a folder that contradict the parameters."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle and copies, without labels that are not computed yet."""
        return drop_lazy_labels(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of earlier versions, which are read if nothing else has changed.
        super().__setstate__(to_new_names("", state, *old_names(type(self)), warns=False))

    def save_pretrained(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the estimator, fitted or not, to a folder.

        The folder gets config.json and a safetensors file. Neither contains code.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder. It is created if it does not exist. Files in it that do not belong to a
            model are left alone.
        force : bool, default=False
            If True, replace a model that is in the folder. It is replaced as a whole: a reader sees
            the old model or the new one.

        Raises
        ------
        ValueError
            If there is a model in the folder and `force` is False, or if a parameter cannot be
            saved: a callable as `init`, a `RandomState` as `random_state`, or a recipe with parts
            that are not from lloydformer.

        See Also
        --------
        Saved.from_pretrained : Read the estimator again.

        Notes
        -----
        `callback`, `checkpoint`, the output format chosen with `set_output` and metadata requests
        are not saved, nor `labels_` that are a lazy dask array: compute and keep them, or call
        `predict`.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> model = lf.KMeans(2, init=[[0.0], [8.0]]).fit([[0.0], [8.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save_pretrained(folder)
        ...     again = lf.KMeans.from_pretrained(folder)
        >>> again.predict([[1.0], [7.0]])
        array([0, 1], dtype=int32)
        """
        self._validate_params()
        _check_consistent(self)
        tensors: Arrays = {}
        versions = dict.fromkeys(_PACKAGES, "unknown")  # run from a source tree, not installed
        for name in _PACKAGES:
            with suppress(PackageNotFoundError):
                versions[name] = version(name)
        config: Config = {
            "class": type(self).__name__,
            "versions": versions,
            "parameters": {},
            "attributes": {},
            "view": {},
        }
        for name, value in self.get_params(deep=False).items():
            if name in ("callback", "checkpoint"):  # of a process, not of a model
                value = None
            is_code = callable(value) and not isinstance(value, TopK)
            if is_code or isinstance(value, np.random.RandomState):
                raise ValueError(
                    f"{name}: found {value!r}, which cannot be saved; call set_params({name}=...) "
                    "before"
                )
            config["parameters"][name] = serialise_value(name, value, tensors)
        for name, value in fitted_attributes(self).items():
            config["attributes"][name] = serialise_value(name, value, tensors)
        if hasattr(self, "cluster_centers_"):
            scaling = self._view.scaling
            scales = {} if scaling is None else {"shift": scaling.shift, "scale": scaling.scale}
            curves = {} if scaling is None or scaling.curves is None else vars(scaling.curves)
            for name, value in {"origin": self._view.origin, **scales, **curves}.items():
                config["view"][name] = serialise_value(f"view.{name}", value, tensors)
        write_folder(Path(folder), config, tensors, force=force)

    @classmethod
    def from_pretrained(cls: type[S], folder: str | os.PathLike[str]) -> S:
        """Read an estimator that `save_pretrained` has written.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder that holds the model.

        Returns
        -------
        Saved
            The estimator. It predicts to the last bit as the saved one. Tensors are on the CPU.

        Raises
        ------
        ValueError
            If the folder holds no model, a damaged one, or an estimator of another class.
            `Clusterer` reads every class.

        See Also
        --------
        Saved.save_pretrained : Write an estimator.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.TrimmedKMeans(3, keep=0.9).save_pretrained(folder)
        ...     lf.Clusterer.from_pretrained(folder)
        TrimmedKMeans(keep=0.9, n_clusters=3)
        """
        config, tensors = read_folder(Path(folder))
        try:
            name: Any = config.get("class")
            # Classes are found among the subclasses of `Saved`, so their modules must be imported:
            # that of the name, or all of them for the error that lists them.
            package = sys.modules["lloydformer"]  # imports its names when they are used
            for public in (name,) if name in package.__all__ else package.__all__:
                getattr(package, public)
            kinds = (*_subclasses(Saved), cls)
            known = {kind.__name__: kind for kind in kinds if kind._get_param_names()}
            if not isinstance(name, str) or name not in known:
                raise ValueError(f"found class {name!r}; there are {', '.join(sorted(known))}")
            if not issubclass(known[name], cls):
                raise ValueError(
                    f"holds a {name}, not a {cls.__name__}; use {name}.from_pretrained, or "
                    "Clusterer.from_pretrained for any"
                )
            return _build_model(known[name], config, tensors)
        except ValueError as error:
            words = " ".join(str(error).split())  # on one line, for the command line
            raise ValueError(f"{Path(folder) / CONFIG}: {words}") from None


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield the subclasses of a class, and theirs."""
    for one in kind.__subclasses__():
        yield from (one, *_subclasses(one))


def _build_model(kind: type[S], config: Config, tensors: Arrays) -> S:
    """Return the estimator of a folder; raises `ValueError` unless everything in it is valid."""
    sections: dict[str, Config] = {}
    for name in ("parameters", "attributes", "view"):
        section = config.get(name)
        if not isinstance(section, dict):
            raise ValueError(f"found {name} {section!r}; it is an object")
        sections[name] = {
            entry: deserialise_value(entry, value, tensors) for entry, value in section.items()
        }
    if tensors:  # `deserialise_value` takes out those that it has used
        raise ValueError(f"does not name {', '.join(sorted(tensors))} of its tensors")
    parameters, attributes = sections["parameters"], sections["attributes"]
    parameters = to_new_names("parameters", parameters, *old_names(kind), warns=False)
    if unknown := sorted(parameters.keys() - set(kind._get_param_names())):
        raise ValueError(f"found parameters {unknown}, which {kind.__name__} does not have")
    # A parameter that is newer than the folder has its default; models of 0.1 lack some.
    model = kind(**parameters)
    model._validate_params()
    if attributes:
        view = sections["view"]
        check_attributes(attributes, view, kind._required)
        curves = Curves(**{name: view[name] for name in _CURVES}) if "units" in view else None
        scaling = Scaling(view["shift"], view["scale"], curves) if "scale" in view else None
        model.__dict__.update(attributes, _view=View(view["origin"], scaling))
    _check_consistent(model)
    if attributes:
        model._check_loaded()
    return model


def _check_consistent(model: Any) -> None:
    """Raise `ValueError` for parameters that contradict the fitted centers, or name no device."""
    if model.device is not None:
        parse_device(model.device)
    centers = getattr(model, "cluster_centers_", None)
    if centers is not None and centers.shape[0] != count_centers(model):
        name = "n_clusters" if hasattr(model, "n_clusters") else "n_components"
        raise ValueError(
            f"{name}: found {count_centers(model)}, but cluster_centers_ has "
            f"{centers.shape[0]} rows; fit the model again"
        )


def serialise_value(name: str, value: Any, tensors: Arrays) -> Any:
    """Return a value as JSON; arrays and tensors go to `tensors` under its name."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):  # JSON has neither NaN nor infinity
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, dict):  # options by name, which are numbers or words
        found = {key: serialise_value(f"{name}.{key}", one, tensors) for key, one in value.items()}
        return {"options": found}
    if isinstance(value, Recipe | TopK):
        try:
            return {"recipe": serialise(value)}
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if isinstance(value, Tensor) or get_namespace(value) is not None:
        # Read back as a tensor on the CPU: the machine that reads it may have no GPU.
        tensors[name] = to_tensor(value).detach().cpu().numpy()
        return {"tensor": name}
    # In an array whole numbers would become floats, which are fractions in `size_max`.
    if isinstance(value, list | tuple) and {type(each) for each in value} == {int, float}:
        return {"numbers": list(value)}
    array = value.toarray() if sparse.issparse(value) else np.asarray(value)
    if name == "feature_names_in_":
        return {"names": array.tolist()}
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: found {value!r}, which cannot be saved; pass numbers")
    tensors[name] = array.astype(array.dtype.newbyteorder("="))  # safetensors has one byte order
    return {"array": name}


def deserialise_value(name: str, entry: Any, tensors: Arrays) -> Any:
    """Return the value of what `serialise_value` wrote; its array is taken out of `tensors`."""
    if not isinstance(entry, dict):
        return entry
    if len(entry) != 1:
        raise ValueError(f"{name}: found {entry!r}, which is not a value")
    ((kind, value),) = entry.items()
    if kind in ("array", "tensor") and isinstance(value, str) and value in tensors:
        array = tensors.pop(value)
        return array if kind == "array" else torch.from_numpy(array)
    if kind == "float" and value in ("inf", "-inf", "nan"):
        return float(value)
    if kind == "names" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return np.array(value, dtype=object)
    if kind == "options" and isinstance(value, dict):
        return {key: deserialise_value(f"{name}.{key}", one, tensors) for key, one in value.items()}
    if kind == "recipe":
        return deserialise(value)
    if kind == "numbers" and isinstance(value, list) and {*map(type, value)} <= {int, float}:
        return value
    raise ValueError(f"{name}: found {entry!r}, which is not a value or is not in the tensors")


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return everything that fitting has set; nothing if the model is not fitted."""
    if not hasattr(model, "cluster_centers_"):
        return {}
    others = {*model.get_params(deep=False), *_OF_A_SESSION}
    found = {n: v for n, v in drop_lazy_labels(vars(model)).items() if n not in others}
    # Refused now: reading refuses what it does not know, and the model would be lost.
    if unknown := [n for n in found if n not in _NUMBERS and n not in _ARRAYS]:
        raise ValueError(
            f"{', '.join(unknown)}: not an attribute of a fitted {type(model).__name__}, and "
            "cannot be saved; delete it first"
        )
    return found


def drop_lazy_labels(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes without labels that are not computed: their graph may hold all data."""
    lazy = [n for n in LAZY if n in state and is_collection(state[n])]
    return {name: value for name, value in state.items() if name not in lazy}


def check_attributes(
    attributes: dict[str, Any], view: dict[str, Any], required: frozenset[str]
) -> None:
    """Raise `ValueError` unless these are the attributes of one fitted model."""
    if missing := sorted(required - attributes.keys()):
        raise ValueError(f"lacks {', '.join(missing)}")
    for name, value in attributes.items():
        if name in _NUMBERS:
            # `type`, as JSON's true is an int to `isinstance`
            # a mixture with max_iter=0 has its start
            least = 0 if name == "n_iter_" and "lower_bound_" in required else 1
            if type(value) is not _NUMBERS[name] or (type(value) is int and value < least):
                raise ValueError(f"{name}: found {value!r}; it is a {_NUMBERS[name].__name__}")
        elif name not in _ARRAYS:
            raise ValueError(f"found attribute {name!r}, which no fitted model has")
    k, d = attributes.get("_n_features_out"), attributes["n_features_in_"]
    names = d
    if "_encoding" in attributes:  # a table has other columns than its points
        d = Encoding.from_json(attributes["_encoding"]).width
    if k is None:  # a mixture, which does not transform rows
        _check_array("weights_", attributes["weights_"], "f", ("any",), {})
        k = len(attributes["weights_"])
    for name, (kind, shape) in _ARRAYS.items():
        if name in attributes:
            width = names if name == "feature_names_in_" else d
            _check_array(name, attributes[name], kind, shape, {"k": k, "d": width})
    if "labels_" in attributes:
        labels = torch.as_tensor(attributes["labels_"])  # -1 are outliers
        if labels.numel() and not (int(labels.min()) >= -1 and int(labels.max()) < k):
            raise ValueError(f"labels_: found one that is not between -1 and {k - 1}")
    known = {**_VIEW, **_CURVES}
    if view.keys() not in ({"origin"}, _VIEW.keys(), known.keys()):
        raise ValueError(f"found view {sorted(view)}; it has origin, or {', '.join(_VIEW)}")
    for name, value in view.items():
        _check_array(f"view.{name}", value, *known[name], {"d": d})


def _check_array(
    name: str, value: Any, kind: str, shape: tuple[str, ...] | None, sizes: dict[str, int]
) -> None:
    """Raise `ValueError` unless this is an array of this kind and shape, with finite centers."""
    array = value.numpy() if isinstance(value, Tensor) else value
    if shape is None:
        shape = ("d",) * getattr(array, "ndim", 0)
        sizes = {}
    if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.ndim != len(shape):
        found = repr(array)
        if isinstance(array, np.ndarray):
            found = f"an array of {array.dtype} with the shape {array.shape}"
        raise ValueError(f"{name}: found {found}; it is {_KINDS[kind]} in {len(shape)} axes")
    wanted = tuple(sizes.get(axis, n) for axis, n in zip(shape, array.shape, strict=True))
    if array.shape != wanted:
        raise ValueError(f"{name}: found the shape {array.shape}; it is {wanted}")
    if "d" in shape and kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name}: found NaN or infinity")
