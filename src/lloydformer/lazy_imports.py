"""Names of a package whose modules are imported when a name is first used (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package.

    Modules and packages inside the package are found without being listed.

    Parameters
    ----------
    package : str
        Its `__name__`.
    homes : mapping, optional
        For each public name, the module that defines it.

    Returns
    -------
    tuple of two callables
        `__getattr__` imports the module of a name and keeps the value; `__dir__` lists all names.

    Examples
    --------
    >>> get, names = lazy_names("lloydformer", {"in_units": "lloydformer.numerics.scaling"})
    >>> get("in_units").__name__
    'in_units'
    """
    homes = homes or {}
    values = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in homes:
            return _submodule(package, name)
        values[name] = value = getattr(import_module(homes[name]), name)
        return value

    return get, lambda: sorted({*values, *homes, *values.get("__all__", ())})


def _submodule(package: str, name: str) -> Any:
    """Import a module of the package; AttributeError if it has none of this name."""
    whole = f"{package}.{name}"
    if not name.startswith("_"):
        try:
            return import_module(whole)
        except ModuleNotFoundError as error:
            if error.name != whole:  # a module that the submodule needs
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
