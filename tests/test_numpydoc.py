"""Every public name has the numpydoc sections that an editor shows, without faults."""

import functools
import inspect
import types
from typing import Any

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import lloydformer as lf
from lloydformer import estimators
from lloydformer.circuits import activations
from lloydformer.fork_safety import cached_property

MODULES = (
    lf,
    lf.recipes,
    lf.data,
    lf.export,
    lf.interp,
    lf.learning,
    lf.nn,
    estimators,
    activations,
)
METHODS = (types.FunctionType, classmethod, staticmethod, property, cached_property)
ALLOWED = {"ES01"}  # a summary that says all needs no second paragraph


def public(modules: tuple[types.ModuleType, ...] = MODULES) -> dict[str, Any]:
    """Functions, classes and their methods and properties, each once, by their full names."""
    found: dict[str, Any] = {}
    for module in modules:
        for exported in module.__all__:
            value = getattr(module, exported)
            if inspect.isclass(value) and is_ours(value):
                found |= {full_name(value): value, **members(value)}
            elif callable(value) and is_ours(value):
                found[full_name(value)] = function_of(value)
    return found


def members(kind: type[Any]) -> dict[str, Any]:
    """The public methods and properties that the class and base classes of ours define."""
    return {
        f"{full_name(owner)}.{name}": function_of(getattr(owner, name))
        for owner in filter(is_ours, kind.__mro__)
        for name, value in vars(owner).items()
        if not name.startswith("_")
        and isinstance(value, METHODS)
        and not inherits_docstring(owner, name)
    }


def inherits_docstring(owner: type[Any], name: str) -> bool:
    """Is it an override without a docstring? Then help() and editors show that of the base."""
    documented = [bool(vars(c)[name].__doc__) for c in owner.__mro__ if name in vars(c)]
    return not documented[0] and any(documented)


def is_ours(value: Any) -> bool:
    return getattr(value, "__module__", "").split(".")[0] == "lloydformer"


def full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def function_of(value: Any) -> Any:
    """The function itself, without decorators: numpydoc checks what functions return."""
    return inspect.unwrap(getattr(value, "__func__", value))


def faults(value: Any) -> list[str]:
    found = validate(get_doc_object(value))["errors"]
    return [f"{code}: {text}" for code, text in found if code not in ALLOWED]


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstring_has_no_fault(name):
    assert faults(PUBLIC[name]) == []


def test_all_public_names_are_found():
    assert len(PUBLIC) >= 90
    known = [lf.KMeans, lf.KMeans.fit, lf.KMeans.predict, lf.KMeans.partial_fit,
             lf.KMeans.from_pretrained, lf.SoftKMeans.predict_proba, lf.CircuitClusterer,
             lf.LearnedKMeans, lf.Circuit, lf.Trace, lf.Recipe, lf.ProgressBar, lf.fit_batch,
             lf.recipes.lloyd, lf.recipes.table, lf.data.open_dataset, lf.learning.train,
             activations.TopK, estimators.Clusterer]  # fmt: skip
    assert {full_name(value) for value in known} - PUBLIC.keys() == set()
    assert full_name(lf.Recipe) + ".heads" in PUBLIC  # a property
    assert full_name(lf.Trace) + ".labels" in PUBLIC  # a cached property


def test_a_module_without_names_finds_none():
    empty = types.ModuleType("empty")
    empty.__all__ = []
    assert public((empty,)) == {}


def test_a_missing_return_value_is_reported_behind_a_decorator():
    @functools.cache
    def decorated():
        """Return one."""
        return 1

    assert "RT01" in [fault[:4] for fault in faults(function_of(decorated))]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    tol : float, default=1e-4\n", "    tolerance : float, default=1e-4\n", "PR01"),
        ("    n_init : ", "    n_init: ", "PR10"),
        ("    Examples\n    --------\n", "", "EX01"),
        ("    See Also\n    --------\n", "", "SA01"),
    ],
)
def test_a_fault_is_reported(old, new, code):
    source = lf.KMeans.__doc__
    assert source is not None
    assert source.count(old) == 1
    documented = type("KMeans", (lf.KMeans,), {"__doc__": source.replace(old, new)})
    assert code in [fault[:4] for fault in faults(documented)]
