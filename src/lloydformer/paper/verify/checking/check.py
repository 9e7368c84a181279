"""Compare a user's recipe with a user's plain algorithm on the project's problems."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import torch

from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.numerics.checks import check_count
from lloydformer.paper.verify.checking.differences import (
    TOLERANCE,
    compare_trial,
    ignore_nan_warnings,
)
from lloydformer.paper.verify.checking.result import CheckResult
from lloydformer.paper.verify.checking.user_algorithm import as_algorithm
from lloydformer.paper.verify.compare import run_circuit
from lloydformer.paper.verify.known import known_algorithm
from lloydformer.paper.verify.problems import Family
from lloydformer.paper.verify.trials import Trial, draw_for_recipe, families_for


def check(
    recipe: Any,
    algorithm: Any = None,
    *,
    n_problems: int = 4,
    n_layers: int = 10,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    families: str | Sequence[str] | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> CheckResult:
    """Compare the circuit of a recipe with a plain algorithm, and show the first difference.

    Each layer is compared with an iteration of the algorithm from the same centers, and the run
    over all layers with that of the algorithm. Where rounding can change a decision (a point that
    is equally near to two centers) either decision is right. Problems follow from the recipe: unit
    vectors if it has a norm, zero-sum ones for layer norm.

    Parameters
    ----------
    recipe : Recipe or Staged
        The recipe, for example a variant of `lloydformer.recipes.lloyd` made by
        `dataclasses.replace`.
    algorithm : callable, object or None, default=None
        A function `step(points, centers)` that returns the new centers as an array of shape
        (k, d); it may have a third parameter, the number of the iteration. Or an object with the
        methods `assign`, `weigh` and `place` of `lloydformer.algorithms.Algorithm`: then
        assignments are compared as well. It may have the methods `decision` (see
        `lloydformer.algorithms.Trimmed`) and `scores(points, centers)`, by which points choose
        centers if not by distance. Recipes that draw noise draw with its attribute `seed`, 0 if
        it has none. None is the plain algorithm that the recipe is named after.
    n_problems : int, default=4
        Number of problems of each family.
    n_layers : int, default=10
        Number of layers and iterations on each problem.
    seed : int, default=0
        Seed of the problems.
    dtype : torch.dtype, default=torch.float64
        Precision of the circuit: `torch.float64`, with centers equal to 1e-9 of the spread of the
        points, or `torch.float32`, with 1e-3 and no run over all layers.
    families : str, sequence of str or None, default=None
        Families of problems, for example `("clustered", "integer")`. None is all that suit the
        recipe; `CheckResult.families` names them.
    callback : callable or None, default=None
        Called as `callback(done, total)` after each problem.

    Returns
    -------
    CheckResult
        What was compared, and the first difference; true if there is none.

    Raises
    ------
    ValueError
        If `recipe` or `algorithm` is of another kind, fails or returns arrays of a wrong shape, or
        if no algorithm is known for the recipe and none is given.

    See Also
    --------
    Circuit : Runs a recipe.
    CheckResult : The result.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> def lloyd(points, centers):
    ...     labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    ...     return np.stack([points[labels == j].mean(axis=0) for j in range(len(centers))])
    >>> result = lf.check(lf.recipes.lloyd(), lloyd, families="clustered", n_problems=2)
    >>> result.agrees
    True
    """
    if isinstance(recipe, list | tuple):
        raise ValueError(f"recipe: found {len(recipe)} recipes; check them one at a time")
    if not isinstance(recipe, AnyRecipe):
        hint = "call it to make a recipe" if callable(recipe) else "pass a recipe"
        raise ValueError(f"recipe: found {recipe!r}; {hint}, for example lf.recipes.lloyd()")
    if recipe.free:
        raise ValueError(
            f"recipe: found {recipe.name!r}, whose matrices are learned; without training they are "
            "random, and equal to no algorithm"
        )
    if dtype not in TOLERANCE:
        raise ValueError(f"dtype: found {dtype!r}; pass torch.float64 or torch.float32")
    if dtype != torch.float64 and not isinstance(recipe, Recipe):
        raise ValueError("dtype: recipes of several stages are compared in torch.float64 only")
    n_problems, seed = check_count("n_problems", n_problems), check_count("seed", seed, least=0)
    # all trials are made first: wrong arguments raise before anything is compared
    chosen = _choose_families(recipe, families)
    n_layers = check_count("n_layers", n_layers)
    given_seed = getattr(algorithm, "seed", None)
    trials = []
    for family in chosen:
        for number in range(n_problems):
            if algorithm is None:  # an algorithm of the package draws other noise for each problem
                noise_seed, plain = number, known_algorithm(recipe, number)
            else:
                noise_seed = int(given_seed) if isinstance(given_seed, Integral) else 0
                plain = algorithm
            guarded = as_algorithm(plain)
            problem = draw_for_recipe(recipe, family, seed, number, dtype)
            drawn = (seed, number)
            trials.append(Trial(recipe, guarded, problem, n_layers, noise_seed, dtype, drawn))
    # before the loop: a part that fails is then an error of `recipe` and not of a problem
    _try_circuit(trials[0])
    outcomes = []
    for trial in trials:
        outcomes.append(compare_trial(trial))
        if callback is not None:
            callback(len(outcomes), len(trials))
    # otherwise an algorithm that returns only NaN would agree with every recipe
    if all(o.undefined == o.trial.n_layers for o in outcomes):
        raise ValueError("algorithm: its new centers are not numbers on any of the problems")
    return CheckResult(recipe, tuple(outcomes), algorithm is None)


def _choose_families(recipe: AnyRecipe, families: str | Sequence[str] | None) -> list[Family]:
    """Return the wanted families in their usual order; raise ValueError if one does not suit."""
    known = families_for(recipe)
    if isinstance(families, str):
        wanted = [families]
    else:
        wanted = list(known if families is None else families)
    if not wanted or not set(wanted) <= set(known):
        raise ValueError(f"families: found {families!r}; {recipe.name!r} has {', '.join(known)}")
    return [family for family in known if family in wanted]


def _try_circuit(trial: Trial) -> None:
    """Run one layer; what goes wrong in a user's part is an error of the argument `recipe`."""
    try:
        with ignore_nan_warnings():
            run_circuit(trial.recipe, trial.problem, 1, seed=trial.seed, dtype=trial.dtype)
    except Exception as error:
        points, centers = trial.problem.points, trial.problem.centers
        raise ValueError(
            f"recipe: its circuit raised {type(error).__name__}: {error}, for points of shape "
            f"{points.shape} and centers of shape {centers.shape}"
        ) from error
