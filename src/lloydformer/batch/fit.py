"""`fit_batch`: thousands of small problems in one call."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from sklearn.utils import check_random_state
from torch import Tensor

from lloydformer.batch.loop import Found, descend
from lloydformer.batch.seeding import kmeans_plusplus, random_rows, take
from lloydformer.batch.steps import Problems
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.inputs import as_points, check_count, check_range
from lloydformer.origin import middle
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import lower

_SCORES = 1 << 16
"""Scores of a group of problems that one thread holds at a time."""


@dataclass(frozen=True)
class BatchResult:
    """Centers (b, k, d), labels (b, n), inertia (b,) and n_iter (b,); -1 labels masked points."""

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
    """Cluster each of b problems of n points with d features, (b, n, d), into k clusters.

    recipe: any that lowers (None is `lloyd()`). init: "k-means++", "random" or an array
    (b, k, d). mask: (b, n), True where a point is there, for problems of different sizes.
    sample_weight: (b, n). Each problem stops by the rule of its estimator, and the best of
    `n_init` starts is kept. Arrays come back as arrays, tensors as tensors on their device.
    """
    x = as_points("points", points)
    if x.ndim != 3:
        raise ValueError(f"points: found shape {tuple(x.shape)}; pass a batch (b, n, d)")
    check_count("n_clusters", n_clusters)
    check_count("max_iter", max_iter)
    check_range("points", x)
    if not isinstance(tol, Real) or not tol >= 0:
        raise ValueError(f"tol: found {tol!r}; pass a number that is not negative")
    if recipe is not None and not isinstance(recipe, Recipe):
        raise ValueError(f"recipe: found {recipe!r}; pass one such as lf.recipes.trimmed()")
    plan = lower(recipe or recipes.lloyd())
    rng = check_random_state(random_state)
    weights = _weights(x, mask, sample_weight, n_clusters)
    origin = torch.zeros_like(x[:, 0]) if plan.directions else _origin(x, weights)
    seeds = torch.from_numpy(rng.randint(2**31 - 1, size=len(x))).to(x.device)
    problems = Problems(_seen(plan, x, origin), weights, seeds)
    tolerance = tol * _variance(problems)
    best: Found | None = None
    for _ in range(1 if not isinstance(init, str) else check_count("n_init", n_init)):
        starts = _starts(init, plan, problems, origin, n_clusters, rng)
        found = _all_groups(plan, problems, starts, tolerance, max_iter)
        best = found if best is None else _better(best, found)
    assert best is not None
    return _returned(best, problems, origin, x, as_tensors=isinstance(points, Tensor))


def _weights(x: Tensor, mask: Any, sample_weight: Any, n_clusters: int) -> Tensor:
    """Weights in float64, 0 where a point is masked."""
    weights = torch.ones(x.shape[:2], dtype=torch.float64, device=x.device)
    for name, given in (("mask", mask), ("sample_weight", sample_weight)):
        if given is not None:
            weights = weights * _factor(name, given, weights)
    if (fewest := int((weights > 0).sum(dim=1).min())) < n_clusters:
        raise ValueError(
            f"n_clusters: found {n_clusters} with a problem of {fewest} points; use fewer clusters"
        )
    return weights


def _factor(name: str, given: Any, weights: Tensor) -> Tensor:
    factor = torch.as_tensor(given, device=weights.device)
    if name == "mask" and factor.dtype != torch.bool:
        raise ValueError(f"mask: found dtype {factor.dtype}; pass True where a point is there")
    if factor.shape != weights.shape:
        raise ValueError(
            f"{name}: found shape {tuple(factor.shape)}; pass {tuple(weights.shape)}, as the points"
        )
    factor = factor.double()
    if not bool(((factor >= 0) & (factor < torch.inf)).all()):
        raise ValueError(f"{name}: found a value that is negative or not finite; mend or mask it")
    return factor


def _origin(x: Tensor, weights: Tensor) -> Tensor:
    """The middle of each problem's points that are there."""
    first = (weights > 0).long().argmax(dim=1)
    there = x.gather(1, first[:, None, None].expand(-1, 1, x.shape[2]))
    return middle(torch.where((weights > 0).unsqueeze(-1), x, there))


def _seen(plan: Plan, x: Tensor, origin: Tensor) -> Tensor:
    points = (x - origin.unsqueeze(1)).double()
    return directions("points", points) if plan.directions else points


def directions(name: str, rows: Tensor) -> Tensor:
    norms = rows.norm(dim=-1, keepdim=True)
    if bool((norms == 0).any()):
        raise ValueError(f"{name}: found a row of zeros, which has no direction; use another")
    return rows / norms


def _variance(problems: Problems) -> Tensor:
    """The mean variance over the columns of each problem."""
    there = (problems.weights > 0).double().unsqueeze(-1)
    count = there.sum(dim=1)
    mean = (problems.points * there).sum(dim=1) / count
    spread = ((problems.points - mean.unsqueeze(1)) * there).square().sum(dim=1) / count
    return spread.mean(dim=-1)


def _starts(
    init: Any, plan: Plan, problems: Problems, origin: Tensor, n_clusters: int, rng: Any
) -> Tensor:
    b, n, d = problems.points.shape
    if not isinstance(init, str):
        if callable(init):
            raise ValueError('init: found a function; pass "k-means++", "random" or an array')
        given = as_points("init", init).to(origin.device).double()
        if given.shape != (b, n_clusters, d):
            raise ValueError(f"init: found shape {tuple(given.shape)}; pass {(b, n_clusters, d)}")
        given = given - origin.double().unsqueeze(1)
        return directions("init", given) if plan.directions else given
    if init == "random":
        uniform = torch.from_numpy(rng.uniform(size=(b, n))).to(origin.device)
        return take(problems, random_rows(problems, n_clusters, uniform))
    if init == "k-means++":
        generator = torch.Generator().manual_seed(int(rng.randint(2**31 - 1)))
        return take(problems, kmeans_plusplus(problems, n_clusters, generator))
    why = " (k-means|| is for one large problem)" if init == "k-means||" else ""
    raise ValueError(f'init: found {init!r}{why}; pass "k-means++", "random" or an array')


def _all_groups(
    plan: Plan, problems: Problems, starts: Tensor, tolerance: Tensor, max_iter: int
) -> Found:
    """Groups of neighbouring problems, each solved by one thread."""
    b, n, _ = problems.points.shape
    size = max(1, _SCORES // (n * starts.shape[1])) if starts.device.type == "cpu" else b
    groups = torch.split(torch.arange(b, device=starts.device), size)

    def solve(chosen: Tensor) -> Found:
        return descend(plan, problems[chosen], starts[chosen], tolerance[chosen], max_iter)

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(before) as pool:
            found = list(pool.map(solve, groups))
    finally:
        torch.set_num_threads(before)
    parts = zip(*(vars(f).values() for f in found), strict=True)
    return Found(*(torch.cat(part) for part in parts))


def _better(one: Found, other: Found) -> Found:
    wins = other.inertia < one.inertia

    def choose(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(wins.view(-1, *[1] * (a.ndim - 1)), b, a)

    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return Found(*(choose(a, b) for a, b in pairs))


def _returned(
    found: Found, problems: Problems, origin: Tensor, x: Tensor, as_tensors: bool
) -> BatchResult:
    centers = (found.centers + origin.double().unsqueeze(1)).to(x.dtype)
    trimmed = found.labels.clamp(min=-1)
    labels = torch.where(problems.weights > 0, trimmed, -1).int()
    values = (centers, labels, found.inertia, found.n_iter)
    return BatchResult(*(values if as_tensors else (v.cpu().numpy() for v in values)))
