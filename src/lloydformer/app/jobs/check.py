"""`lloydformer check`: find recipe and algorithm by name, and compare them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lloydformer.circuits import recipes
from lloydformer.circuits.serialise import deserialise
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.jobs.named_objects import load_object
from lloydformer.storage.bounded_read import read_json
from lloydformer.verify.checking.check import check
from lloydformer.verify.checking.drawn_problems import families_for
from lloydformer.verify.checking.result import CheckResult

DTYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass(frozen=True)
class CheckJob:
    """What to compare, and on which problems; see `lloydformer.check`."""

    recipe: AnyRecipe
    algorithm: Any
    n_problems: int
    n_layers: int
    seed: int
    dtype: str
    families: Sequence[str] | None

    @property
    def total(self) -> int:
        """The number of problems."""
        return self.n_problems * len(self.families or families_for(self.recipe))

    def run(self, callback: Callable[[int, int], None]) -> CheckResult:
        """Compare; `callback(done, total)` is called after each problem."""
        if self.dtype not in DTYPES:
            raise ValueError(f"--dtype: found {self.dtype!r}; pass float64 or float32")
        return check(
            self.recipe, self.algorithm, n_problems=self.n_problems, n_layers=self.n_layers,
            seed=self.seed, dtype=DTYPES[self.dtype], families=self.families, callback=callback,
        )  # fmt: skip


def load_recipe(text: str) -> AnyRecipe:
    """Return a recipe of the package by name, of a JSON file, or of Python code."""
    if text in recipes.MAKERS:
        return recipes.MAKERS[text]()
    if text.endswith(".json"):
        found = _from_json(text)
    elif ":" in text:
        found = _made("RECIPE", load_object("RECIPE", text))
    else:
        raise ValueError(
            f"RECIPE: found {text!r}; pass one of {', '.join(recipes.MAKERS)}, a .json file of a "
            "recipe, file.py:name or package.module:name"
        )
    if not isinstance(found, AnyRecipe):
        raise ValueError(f"RECIPE: {text} is {found!r}, and not a recipe")
    return found


def load_algorithm(text: str) -> object:
    """Return a step function or an algorithm of Python code; classes are called."""
    found = load_object("--algorithm", text)
    return _made("--algorithm", found) if _makes_something(found) else found


def _from_json(text: str) -> object:
    """Return the part that a JSON file describes."""
    try:
        return deserialise(read_json(Path(text)))
    except FileNotFoundError:
        raise ValueError(f"RECIPE: there is no file {text!r}") from None
    except ValueError as error:  # not JSON, or not a part
        raise ValueError(f"RECIPE: {text}: {str(error).removeprefix(f'{text}: ')}") from None


def _makes_something(found: object) -> bool:
    """Is it a class, or a function without parameters?"""
    if inspect.isclass(found):
        return True
    return inspect.isfunction(found) and not inspect.signature(found).parameters


def _made(argument: str, found: object) -> object:
    """Return what a class or function makes without arguments; anything else unchanged."""
    if isinstance(found, AnyRecipe) or not callable(found):
        return found
    try:
        return found()
    except Exception as error:
        name = getattr(found, "__name__", repr(found))
        raise ValueError(
            f"{argument}: {name}() raised {type(error).__name__}: {error}; "
            "it must make its result without arguments"
        ) from error
