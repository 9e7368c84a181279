"""How types and shapes are checked while the tests run.

`--jaxtyping-packages` (pyproject.toml) decorates every function of the package with
`jaxtyping.jaxtyped`. That binds the arguments of each call, checks them twice, and compiles a
checker whenever a local function is defined; tests of circuits took five times as long. `checked`
takes its place and makes the same checks once: types with beartype and, where a signature names
shapes, sizes of one name equal within a call. Of a function with shapes that a test calls again and
again, the first calls are checked and then some; all of them in a run with the tests marked `long`.
"""

import functools
import gc
import inspect
import sys
import typing
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, get_type_hints

import jaxtyping
import pytest
from beartype import BeartypeConf, beartype

Function = Callable[..., Any]
TYPES = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))
SIZES = jaxtyping.jaxtyped("context")
"""A new table of sizes by name, each time that it is entered."""
FIRST, THEN = 4, 16
"""In a test, so many calls of a function with shapes are checked, then one of so many."""
CALLS: Counter[Function] = Counter()
"""Calls in this test."""


def checked(target: Any = None, **settings: Any) -> Any:
    """Decorate a function or dataclass; local functions without shapes are left to mypy."""
    if target is None:
        return checked
    if is_kernel(target):
        return target
    if inspect.isclass(target):
        if hasattr(target, "__dataclass_fields__") and "__init__" in vars(target):
            target.__init__ = checked(target.__init__)
        return target
    written = target.__annotations__
    target.__annotations__ = {name: resolved(hint, target) for name, hint in written.items()}
    try:
        if "jaxtyping." in str(target.__annotations__):
            return with_sizes(target, TYPES(target))
        return target if "<locals>" in target.__qualname__ else TYPES(target)
    finally:
        target.__annotations__ = written


def is_kernel(target: Any) -> bool:
    """Is it a kernel in Triton? Those are compiled from their source; nobody calls them."""
    hints = getattr(target, "__annotations__", {}).values()
    return any(getattr(hint, "__name__", None) == "constexpr" for hint in hints)


def resolved(hint: Any, function: Function) -> Any:
    """The hint with its names in quotes looked up; anything, if one is not defined (yet)."""
    holder = SimpleNamespace(__annotations__={"hint": hint})
    try:
        return get_type_hints(holder, function.__globals__, include_extras=True)["hint"]
    except NameError:
        return Any


def with_sizes(function: Function, typed: Function) -> Function:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        CALLS[function] += 1
        if CALLS[function] > FIRST and CALLS[function] % THEN:
            return function(*arguments, **named)
        with SIZES:
            return typed(*arguments, **named)

    return call


jaxtyping.jaxtyped = checked  # what the import hook decorates with
if sys.version_info < (3, 12):
    # Until Python 3.12 each isinstance of a protocol looks for the protocol's attributes again.
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)
# Collection makes millions of objects that live until the end. A garbage collection that visits
# them all takes half a second; benchmarks, Dask and pytest itself ask for many.
gc.disable()

collect_ignore = []
if find_spec("triton") is None:
    collect_ignore.append("src/lloydformer/engines/cuda/portable")
else:
    import triton_interpreter  # noqa: F401  before anything imports Triton


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_setup() -> None:
    CALLS.clear()


def pytest_configure(config: pytest.Config) -> None:
    global THEN
    if "not long" not in config.getoption("markexpr"):
        THEN = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--chaos", action="store_true", help="run the tests of tests/chaos in full: minutes each"
    )
