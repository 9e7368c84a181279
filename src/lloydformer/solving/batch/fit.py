"""`fit_batch`: thousands of small problems in one call."""

from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.numerics.checks import as_rows, check_count, check_finite, check_range
from lloydformer.numerics.scaling import in_units, overflow_error
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import lower
from lloydformer.solving.batch.by_kernels import (
    ByCuda,
    ByKernels,
    has_cpu_kernel,
    has_gpu_kernel,
)
from lloydformer.solving.batch.by_tensors import BatchOutcome, ByTensors
from lloydformer.solving.rules import Rules
from lloydformer.solving.seeding import n_trials

Solver = ByCuda | ByKernels | ByTensors


@dataclass(frozen=True)
class BatchResult:
    """Result of `fit_batch` for b problems; arrays, or tensors if the points were tensors.

    Parameters
    ----------
    centers : ndarray or Tensor of shape (b, k, d)
        Centers of each problem.
    labels : ndarray or Tensor of shape (b, n)
        Cluster of each point. -1 for points that are masked, have weight 0 or are trimmed.
    inertia : ndarray or Tensor of shape (b,)
        Inertia of each problem, as in the estimator of the recipe.
    n_iter : ndarray or Tensor of shape (b,)
        Number of iterations of the best start of each problem.

    See Also
    --------
    fit_batch : Returns it.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.fit_batch([[[0.0], [2.0]]], 1)
    BatchResult(centers=array([[[1.]]]), labels=array([[0, 0]], dtype=int32), ...)
    """

    centers: Any
    labels: Any
    inertia: Any
    n_iter: Any


def fit_batch(
    points: Any,
    n_clusters: int,
    *,
    recipe: Recipe | None = None,
    init: Any = "k-means++",
    mask: Any = None,
    sample_weight: Any = None,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: Any = None,
) -> BatchResult:
    """Cluster each of b problems of n points with d features in one call.

    Each problem stops by the rule of the estimator of the recipe.

    Parameters
    ----------
    points : array-like or Tensor of shape (b, n, d)
        The points of the problems.
    n_clusters : int
        Number of clusters of each problem, k.
    recipe : Recipe or None, default=None
        The algorithm: any recipe that can be lowered. None is `lf.recipes.lloyd()`.
    init : {"k-means++", "random"} or array-like of shape (b, k, d), default="k-means++"
        Initial centers: the name of a method, or the centers themselves.
    mask : array-like of bool of shape (b, n), default=None
        True where there is a point, for problems of different sizes. None: everywhere.
    sample_weight : array-like of shape (b, n), default=None
        Weights of the points, not negative. None: every point has weight 1.
    n_init : int, default=1
        Number of starts. For each problem the result with the smallest inertia is kept. An array
        as `init` is one start.
    max_iter : int, default=300
        Maximum number of iterations of one start.
    tol : float, default=1e-4
        Relative tolerance of the stop rule, as in `KMeans`.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number.

    Returns
    -------
    BatchResult
        Centers, labels, inertia and number of iterations of each problem: tensors on the device of
        the points if these are a tensor, otherwise arrays.

    Raises
    ------
    ValueError
        If an argument has a wrong shape, type or value, if a problem has fewer than `n_clusters`
        points, or if the recipe cannot be lowered.

    See Also
    --------
    KMeans : One problem.
    lloydformer.recipes.table : The recipes of the paper's table.

    Examples
    --------
    >>> import lloydformer as lf
    >>> problems = [[[0.0], [1.0], [8.0], [9.0]], [[0.0], [4.0], [6.0], [2.0]]]
    >>> result = lf.fit_batch(problems, 2, init=[[[0.0], [9.0]], [[0.0], [6.0]]])
    >>> result.centers[:, :, 0]
    array([[0.5, 8.5],
           [1. , 5. ]])
    >>> result.inertia
    array([1., 4.])
    """
    x = as_rows("points", points)
    if x.ndim != 3:
        raise ValueError(f"points: found shape {tuple(x.shape)}; pass a batch (b, n, d)")
    check_count("n_clusters", n_clusters)
    check_count("max_iter", max_iter)
    if not isinstance(tol, Real) or not tol >= 0:
        raise ValueError(f"tol: found {tol!r}; pass a number that is not negative")
    if recipe is not None and not isinstance(recipe, Recipe):
        raise ValueError(f"recipe: found {recipe!r}; pass one such as lf.recipes.trimmed()")
    plan, rng = _lloyd() if recipe is None else lower(recipe), check_random_state(random_state)
    plain = mask is None and sample_weight is None
    by_cuda = plain and has_gpu_kernel(plan, x, n_clusters)
    if not by_cuda:  # its kernel looks at the values itself
        check_finite("points", x)
        if not plan.directions:
            check_range("points", x, x.shape[1])
    weights, unit = _weights(x, mask, sample_weight, n_clusters)
    rules = Rules(int(max_iter), float(tol))
    # Drawn even if no plan draws: the same random_state gives the same starts for all recipes.
    seeds = torch.from_numpy(rng.randint(2**31 - 1, size=len(x)))
    problems: Solver
    if by_cuda:
        problems = ByCuda(plan, x, rules, rng, seeds)
    elif has_cpu_kernel(plan, x):
        problems = ByKernels(plan, x, weights, rules, rng)
    else:
        ones = torch.ones(x.shape[:2], dtype=torch.float64, device=x.device)
        known_weights = ones if weights is None else weights
        problems = ByTensors(plan, x, known_weights, rules, rng, seeds, unit)
    best: BatchOutcome | None = None
    # An array gives the same result each time, so that it is one start whatever n_init is.
    for _ in range(1 if not isinstance(init, str) else check_count("n_init", n_init)):
        outcome = _solve(problems, init, n_clusters)
        best = outcome if best is None else best.choose_better(outcome)
    assert best is not None
    labels, inertia = best.labels, best.inertia
    if unit is not None:
        # For weights as they were given, which may take the inertia beyond float64.
        inertia = inertia * unit.to(inertia.device)
        if not bool(inertia.isfinite().all()):
            raise overflow_error(unit.max().item())
    if best.trimmed is not None:
        labels = torch.where(best.trimmed, -1, labels)
    if weights is not None:
        labels = torch.where(weights > 0, labels, -1)
    values = (best.centers.to(x.dtype), labels.int(), inertia, best.n_iter)
    as_tensors = isinstance(points, Tensor)
    return BatchResult(*(values if as_tensors else (v.cpu().numpy() for v in values)))


@cache
def _lloyd() -> Plan:
    return lower(recipes.lloyd())


def _solve(problems: Solver, init: Any, n_clusters: int) -> BatchOutcome:
    """Solve the problems from one kind of start."""
    b, _, d = problems.x.shape
    if not isinstance(init, str):
        if callable(init):
            raise ValueError('init: found a function; pass "k-means++", "random" or an array')
        given = as_rows("init", init)
        if not isinstance(problems, ByCuda):  # its kernel looks at the values itself
            check_finite("init", given)
        if given.shape != (b, n_clusters, d):
            raise ValueError(f"init: found shape {tuple(given.shape)}; pass {(b, n_clusters, d)}")
        return problems.from_array(given)
    if init == "random":
        return problems.from_random_rows(n_clusters)
    if init == "k-means++":
        draws = problems.rng.uniform(size=(b, n_clusters, n_trials(n_clusters)))
        return problems.from_seeds(torch.from_numpy(draws))
    why = " (k-means|| is for one large problem)" if init == "k-means||" else ""
    raise ValueError(f'init: found {init!r}{why}; pass "k-means++", "random" or an array')


def _weights(
    x: Tensor, mask: Any, sample_weight: Any, n_clusters: int
) -> tuple[Tensor | None, Tensor | None]:
    """Return weights in float64, 0 where a point is masked; None if all points count the same.

    Given weights of each problem are divided by a power of two; these powers, (b,), come second.
    """
    shape, fewest, weights = x.shape[:2], x.shape[1], None
    unit = None
    for name, given in (("mask", mask), ("sample_weight", sample_weight)):
        if given is not None:
            factor = _factor(name, given, tuple(shape), x.device)
            weights = factor if weights is None else weights * factor
    if weights is not None:
        fewest = int((weights > 0).sum(dim=1).min())
    if fewest < n_clusters:
        raise ValueError(
            f"n_clusters: found {n_clusters} with a problem of {fewest} points; use fewer clusters"
        )
    if sample_weight is not None and weights is not None:
        # In units of a power of two, so that sums of weights do not overflow.
        scaled, powers = in_units("sample_weight", weights.cpu().numpy())
        weights, unit = torch.from_numpy(scaled).to(weights), torch.from_numpy(powers)
    return weights, unit


def _factor(name: str, given: Any, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Return a mask or weights in float64; raise `ValueError` if they do not fit the points."""
    factor = torch.as_tensor(given, device=device)
    if name == "mask" and factor.dtype != torch.bool:
        raise ValueError(f"mask: found dtype {factor.dtype}; pass True where a point is there")
    if factor.shape != shape:
        raise ValueError(f"{name}: found shape {tuple(factor.shape)}; pass {shape}, as the points")
    factor = factor.double()
    if not bool(((factor >= 0) & (factor < torch.inf)).all()):
        raise ValueError(
            f"{name}: found a value that is negative or not finite; replace or mask it"
        )
    return factor
