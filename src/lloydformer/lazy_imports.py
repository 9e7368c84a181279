"""Names of a package whose modules are imported when a name is first used (PEP 562)."""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from lloydformer.renamed import warn_renamed


def lazy_names(
    package: str,
    homes: Mapping[str, str] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package.

    Modules and packages inside the package are found without being listed.

    Parameters
    ----------
    package : str
        Its `__name__`.
    homes : mapping, optional
        For each public name, the module that defines it.
    renamed : mapping, optional
        For each old name, the new one. Using an old name gives a warning.

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
    homes, renamed = homes or {}, renamed or {}
    values = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name in renamed:
            warn_renamed(package, name, renamed[name])
            name = renamed[name]
            if name in values:
                return values[name]
        if name not in homes:
            return _submodule(package, name)
        with collector_paused():
            values[name] = value = getattr(import_module(homes[name]), name)
        return value

    return get, lambda: sorted({*values, *homes, *values.get("__all__", ())})


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector during imports, whose objects are not garbage.

    Importing torch and scikit-learn creates half a million objects, which the collector would visit
    again and again: 0.25 of 1.6 seconds. Nothing changes if the program has paused it itself.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Objects become old at no cost (unless the program has frozen some itself): else the next
        # collection of young ones would visit them all.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()


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
