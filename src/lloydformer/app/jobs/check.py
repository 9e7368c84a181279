"""`lloydformer check`: find the recipe and the algorithm by name."""

import inspect
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from traceback import extract_tb
from typing import Any

from lloydformer.circuits import recipes
from lloydformer.circuits.serialise import deserialise
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.data.storage.bounded_read import read_json


def load_recipe(text: str) -> AnyRecipe:
    """Return a recipe of the package by name, of a JSON file, or of Python code."""
    if text in recipes.MAKERS:
        return recipes.MAKERS[text]()
    if text.endswith(".json"):
        try:
            loaded = deserialise(read_json(Path(text)))
        except FileNotFoundError:
            raise ValueError(f"RECIPE: there is no file {text!r}") from None
        except ValueError as error:  # not JSON, or not a part
            raise ValueError(f"RECIPE: {text}: {str(error).removeprefix(f'{text}: ')}") from None
    elif ":" in text:
        loaded = load_object("RECIPE", text)
        if not isinstance(loaded, AnyRecipe) and callable(loaded):
            loaded = _call("RECIPE", loaded)
    else:
        raise ValueError(
            f"RECIPE: found {text!r}; pass one of {', '.join(recipes.MAKERS)}, a .json file of a "
            "recipe, file.py:name or package.module:name"
        )
    if not isinstance(loaded, AnyRecipe):
        raise ValueError(f"RECIPE: {text} is {loaded!r}, and not a recipe")
    return loaded


def load_algorithm(text: str) -> object:
    """Return a step function or an algorithm of Python code.

    Classes, and functions without parameters, are called: a step has two parameters.
    """
    loaded: Any = load_object("--algorithm", text)
    takes_nothing = inspect.isfunction(loaded) and not inspect.signature(loaded).parameters
    if inspect.isclass(loaded) or takes_nothing:
        return _call("--algorithm", loaded)
    return loaded


def _call(argument: str, make: Callable[[], object]) -> object:
    """Call a class or function of the user without arguments."""
    try:
        return make()
    except Exception as error:  # code of the user may raise anything
        name = getattr(make, "__name__", repr(make))
        raise ValueError(
            f"{argument}: {name}() raised {type(error).__name__}: {error}; "
            "it must return its result without arguments"
        ) from error


def load_object(argument: str, text: str) -> object:
    """Return an object of the user's code: `file.py:name` or `package.module:name`.

    Raises ValueError, which begins with `argument`, if there is none.
    """
    where, _, name = text.rpartition(":")
    if not where or not name.isidentifier():
        raise ValueError(f"{argument}: found {text!r}; pass file.py:name or package.module:name")
    is_file, path = where.endswith(".py"), Path(where).resolve()
    if is_file and not path.is_file():
        raise ValueError(f"{argument}: there is no file {where!r}")
    # Modules beside the file, or in the current folder, are found first.
    folder = str(path.parent if is_file else Path.cwd())
    sys.path.insert(0, folder)
    try:
        if is_file:
            spec = spec_from_file_location(f"_checked_{path.stem}", path)
            assert spec is not None, "a name that ends in .py has a loader"
            assert spec.loader is not None
            module = module_from_spec(spec)
            sys.modules[spec.name] = module  # dataclasses look for their module there
            spec.loader.exec_module(module)
        else:
            module = resolve_name(where)
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(path)]
        if is_file and isinstance(error, SyntaxError):  # its traceback ends in the importer
            lines = [error.lineno]
        line = f" in line {lines[-1]}" if lines else ""
        raise ValueError(
            f"{argument}: {where} raised {type(error).__name__}{line}: {error}"
        ) from error
    finally:
        sys.path.remove(folder)
    if not hasattr(module, name):
        names = [n for n in dir(module) if not n.startswith("_")]
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{argument}: {where} has no {name!r}{hint}")
    loaded: object = getattr(module, name)
    return loaded
