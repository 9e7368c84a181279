"""Pairs of inputs that differ in one causal variable, for patching."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.numerics.checks import check_count, require
from lloydformer.numerics.clusters import squared_distances
from lloydformer.numerics.scaling import median

# Half the side of the cube of the middles, over k^(1/d); points are normally distributed around
# them with this deviation, and middles are at least `_APART` from each other, so that no point is
# between two.
_SIDE, _DEVIATION, _APART = 4.0, 0.3, 4.0


@dataclass(frozen=True)
class InputPair:
    """A clean and a corrupted input, and the variable in which they differ.

    Parameters
    ----------
    clean, corrupted : tuple of torch.Tensor
        Points (n, d) and centers (k, d).
    variable : str
        What differs: "label", "mean" or "code".
    place : int
        The point whose label differs, or the cluster whose mean or code does.
    clean_value, corrupted_value : int
        The cluster of the point for "label"; the place of the center for "mean" and "code".

    See Also
    --------
    pairs : Makes pairs for a task.

    Examples
    --------
    >>> import lloydformer as lf
    >>> pair = lf.interp.pairs("label", n_pairs=1)[0]
    >>> pair.variable, pair.clean_value == pair.corrupted_value
    ('label', False)
    """

    clean: tuple[Tensor, Tensor]
    corrupted: tuple[Tensor, Tensor]
    variable: str
    place: int
    clean_value: int
    corrupted_value: int


def pairs(
    task: str,
    n_pairs: int = 10,
    n_points: int = 24,
    n_features: int = 2,
    n_clusters: int = 3,
    seed: int = 0,
) -> list[InputPair]:
    """Return clean and corrupted inputs on which one variable of the first layer changes.

    Clusters are so far apart that no other label changes. Points are in float64.

    Parameters
    ----------
    task : {"label", "mean", "code"}
        - "label": one point moves from the neighbourhood of one center to that of another.
        - "mean": the points of one cluster move together, by less than would change a label.
        - "code": two initial centers are exchanged, so that their names change and no distance.
    n_pairs : int, default=10
        Number of pairs.
    n_points, n_features, n_clusters : int, default=24, 2 and 3
        Sizes; two clusters at least, and two points for each.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    list of InputPair
        The pairs.

    Raises
    ------
    ValueError
        If there is no such task, or the sizes are too small.

    See Also
    --------
    patch_activations : Uses a pair.

    Examples
    --------
    >>> import lloydformer as lf
    >>> [pair.variable for pair in lf.interp.pairs("mean", n_pairs=2)]
    ['mean', 'mean']
    """
    if task not in _CHANGES:
        raise ValueError(f"task: found {task!r}; there are {', '.join(map(repr, _CHANGES))}")
    k, d = check_count("n_clusters", n_clusters, least=2), check_count("n_features", n_features)
    require(n_points >= 2 * k, "n_points", n_points, f"pass {2 * k} or more, two for each cluster")
    generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
    found, count = list[InputPair](), check_count("n_pairs", n_pairs)
    while len(found) < count:
        pair = _CHANGES[task](*_problem(n_points, d, k, generator), generator)
        # circuits subtract the rounded median; tokens of two origins could not be exchanged
        if torch.equal(median(pair.clean[0]), median(pair.corrupted[0])):
            found.append(pair)
    return found


def _problem(n: int, d: int, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return points about middles that are far apart, and centers near the middles."""
    side = _SIDE * k ** (1 / d)  # so that few draws are in vain
    while True:
        middles = (2 * torch.rand(k, d, generator=generator, dtype=torch.float64) - 1) * side
        apart = squared_distances(middles, middles) + torch.eye(k) * side**2 * 4 * d
        if apart.min() >= _APART**2:
            break
    own = torch.arange(n) % k
    noise = torch.randn(n + k, d, generator=generator, dtype=torch.float64).clamp(-3, 3)
    noise = _DEVIATION * noise / d**0.5
    return middles[own] + noise[:n], middles + noise[n:]


def _draw(limit: int, generator: torch.Generator) -> int:
    return int(torch.randint(limit, (), generator=generator))


def _change_label(points: Tensor, centers: Tensor, generator: torch.Generator) -> InputPair:
    k = len(centers)
    place = _draw(len(points), generator)
    old = place % k
    new = (old + 1 + _draw(k - 1, generator)) % k
    moved = points.clone()
    moved[place] += centers[new] - centers[old]
    return InputPair((points, centers), (moved, centers), "label", place, old, new)


def _change_mean(points: Tensor, centers: Tensor, generator: torch.Generator) -> InputPair:
    cluster = _draw(len(centers), generator)
    step = torch.randn(points.shape[1], generator=generator, dtype=torch.float64)
    # at most half of the deviation: still nearest to the same center
    step = _DEVIATION / 2 * step / step.norm()
    own = torch.arange(len(points)) % len(centers) == cluster
    moved = torch.where(own[:, None], points + step, points)
    return InputPair((points, centers), (moved, centers), "mean", cluster, cluster, cluster)


def _change_code(points: Tensor, centers: Tensor, generator: torch.Generator) -> InputPair:
    k = len(centers)
    first = _draw(k, generator)
    second = (first + 1 + _draw(k - 1, generator)) % k
    order = torch.arange(k)
    order[[first, second]] = order[[second, first]]
    return InputPair((points, centers), (points, centers[order]), "code", first, first, second)


# For each task, how the corrupted input is made.
_CHANGES: dict[str, Callable[[Tensor, Tensor, torch.Generator], InputPair]] = {
    "label": _change_label,
    "mean": _change_mean,
    "code": _change_code,
}
