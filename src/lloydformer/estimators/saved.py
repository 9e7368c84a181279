"""Estimators in a folder, as JSON and safetensors: `save_pretrained` and `from_pretrained`."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from lloydformer.estimators.devices import device_of
from lloydformer.estimators.doc_link import DocLinked
from lloydformer.estimators.fitted import (
    attributes_of,
    check_fitted,
    view_arrays,
    view_of,
    without_lazy,
)
from lloydformer.estimators.values import parameter_written, value_read, value_written
from lloydformer.storage.model_folder import CONFIG, Arrays, Config, read_folder, write_folder

S = TypeVar("S", bound="Saved")


class Saved(DocLinked):
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

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: without labels that a dask collection has not computed yet."""
        return without_lazy(super().__getstate__())

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
        config = {
            "class": type(self).__name__,
            "versions": _versions(),
            "parameters": {
                name: parameter_written(name, value, tensors)
                for name, value in self.get_params(deep=False).items()
            },
            "attributes": {
                name: value_written(name, value, tensors)
                for name, value in attributes_of(self).items()
            },
            "view": {
                name: value_written(f"view.{name}", value, tensors)
                for name, value in view_arrays(self).items()
            },
        }
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
        >>> from lloydformer.estimators import Clusterer
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.TrimmedKMeans(3, keep=0.9).save_pretrained(folder)
        ...     Clusterer.from_pretrained(folder)
        TrimmedKMeans(keep=0.9, n_clusters=3)
        """
        config, tensors = read_folder(Path(folder))
        try:
            kind = _kind(cls, config.get("class"))
            return _restored(kind, config, tensors)
        except ValueError as error:
            words = " ".join(str(error).split())
            raise ValueError(f"{Path(folder) / CONFIG}: {words}") from None


def _kind(cls: type[S], name: Any) -> type[S]:
    """The class of this name, if it is `cls` or one of its kind."""
    _import_public(name)
    known = {kind.__name__: kind for kind in (*_below(Saved), cls) if kind._get_param_names()}
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"found class {name!r}; there are {', '.join(sorted(known))}")
    if not issubclass(known[name], cls):
        raise ValueError(
            f"holds a {name}, not a {cls.__name__}; use {name}.from_pretrained, or "
            "Clusterer.from_pretrained for any"
        )
    return known[name]


def _import_public(name: Any) -> None:
    """Import the public estimator of this name; all of them, for an error that lists them."""
    package = sys.modules["lloydformer"]  # imports its names when they are used
    for public in (name,) if name in package.__all__ else package.__all__:
        getattr(package, public)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield from (one, *_below(one))


def _restored(kind: type[S], config: Config, tensors: Arrays) -> S:
    """The estimator, with everything in it checked."""
    parameters, attributes, view = (
        _section_read(config, name, tensors) for name in ("parameters", "attributes", "view")
    )
    if tensors:
        raise ValueError(f"does not name {', '.join(sorted(tensors))} of its tensors")
    known = kind._get_param_names()
    if unknown := sorted(parameters.keys() - set(known)):
        raise ValueError(f"found parameters {unknown}, which {kind.__name__} does not have")
    model = kind(**parameters)
    model._validate_params()
    if attributes:
        check_fitted(attributes, view)
        model.__dict__.update(attributes, _view=view_of(view))
    _check_consistent(model)
    return model


def _check_consistent(model: Any) -> None:
    """Raise `ValueError` for parameters that contradict the fitted centers, or name no device."""
    if model.device is not None:
        device_of(model.device)
    centers = getattr(model, "cluster_centers_", None)
    if centers is not None and centers.shape[0] != model.n_clusters:
        raise ValueError(
            f"n_clusters: found {model.n_clusters}, but cluster_centers_ has "
            f"{centers.shape[0]} rows; fit the model again"
        )


def _section_read(config: Config, name: str, tensors: Arrays) -> Config:
    section = config.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"found {name} {section!r}; it is an object")
    return {entry: value_read(entry, found, tensors) for entry, found in section.items()}


def _versions() -> dict[str, str]:
    """With what it was written; for people, not for reading it."""
    return {name: _version(name) for name in ("lloydformer", "torch", "numpy", "scikit-learn")}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
