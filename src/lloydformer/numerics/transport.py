"""Bounds on the sizes of clusters, and the cheapest assignment within them.

For given costs of n rows in k clusters it is a transport problem with k small sinks. The solver
here is exact and in NumPy, for circuits and for engines without kernels;
`engines/native/kernels/transport.hpp` has the same method for millions of rows.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

# Numbers of rows, or fractions of all rows: none, one for all clusters, or one for each.
Sizes = tuple[int | float, ...]

# A fraction of n rows that is this close to a whole number, relative to n, is that number: 0.29 *
# 100 is 28.999999999999996.
_WHOLE = 1e-12


def read_sizes(argument: str, given: Any) -> Sizes:
    """Return bounds as a tuple; raise `ValueError` for anything but numbers and fractions."""
    if given is None:
        return ()
    repair = "pass a whole number of rows, a fraction from 0 to 1, or one of these for each cluster"
    if isinstance(given, str) or not isinstance(given, Real | Iterable):
        raise ValueError(f"{argument}: found {given!r}; {repair}")
    sizes = (given,) if isinstance(given, Real) else tuple(given)
    if not sizes:
        raise ValueError(f"{argument}: found no number; {repair}")
    read: list[int | float] = []
    for size in sizes:
        value: Any = size.item() if isinstance(size, np.generic) or hasattr(size, "item") else size
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if is_count and value < 2**63:
            read.append(int(value))
        elif isinstance(value, float) and 0 <= value <= 1:
            read.append(value)
        elif isinstance(value, float) and value.is_integer() and 1 < value < 2**53:
            read.append(int(value))  # of an array that also has fractions
        else:
            raise ValueError(f"{argument}: found {value!r}; {repair}")
    return tuple(read)


def resolve_sizes(
    size_min: Sizes, size_max: Sizes, n_rows: int, n_clusters: int
) -> tuple[Int[ndarray, " k"], Int[ndarray, " k"]]:
    """Return the smallest and the largest number of rows of each cluster.

    A fraction of the rows is rounded down in a lower bound and up in an upper one, so that 1/k for
    both means sizes that differ by at most one.

    Raises
    ------
    ValueError
        If no assignment of the rows fits: it names the numbers that contradict each other.
    """

    def count(sizes: Sizes, default: int, up: bool, name: str) -> Int[ndarray, " k"]:
        if len(sizes) not in (0, 1, n_clusters):
            raise ValueError(
                f"{name}: found {len(sizes)} numbers for {n_clusters} clusters; pass one number, "
                "or one for each cluster"
            )
        counts = []
        for size in sizes or (default,):
            if isinstance(size, float):
                exact = size * n_rows
                near = abs(exact - round(exact)) <= _WHOLE * n_rows
                size = round(exact) if near else math.ceil(exact) if up else math.floor(exact)
            counts.append(min(size, 2**62 // max(1, n_clusters)))
        return np.array(counts * (n_clusters // len(counts)), dtype=np.int64)

    lower, upper = count(size_min, 0, False, "size_min"), count(size_max, n_rows, True, "size_max")
    if (above := np.flatnonzero(lower > upper)).size:
        j = above[0]
        raise ValueError(
            f"size_min: found {lower[j]} rows for cluster {j}, whose size_max is {upper[j]}; "
            "pass bounds with size_min <= size_max"
        )
    if (total := int(lower.sum())) > n_rows:
        raise ValueError(
            f"size_min: found bounds that need {total} rows, but there are {n_rows}; pass at most "
            f"{n_rows // n_clusters} for each of {n_clusters} clusters"
        )
    if (total := int(upper.sum())) < n_rows:
        raise ValueError(
            f"size_max: found bounds with room for {total} rows, but there are {n_rows}; pass at "
            f"least {-(-n_rows // n_clusters)} for each of {n_clusters} clusters"
        )
    return lower, np.minimum(upper, n_rows)


def dual_bound(
    costs: Float[ndarray, "n k"],
    lower: Int[ndarray, " k"],
    upper: Int[ndarray, " k"],
    prices: Float[ndarray, " k"],
) -> float:
    r"""Return a lower bound of the cost of every assignment within the bounds, for any prices p.

    $\sum_i \min_j (c_{ij} + p_j) - \sum_j (u_j \max(p_j, 0) + l_j \min(p_j, 0))$
    """
    places = np.where(prices > 0, upper, lower)
    return float((costs + prices).min(axis=1).sum() - prices @ places)


def assign_within(
    costs: Float[ndarray, "n k"],
    lower: Int[ndarray, " k"],
    upper: Int[ndarray, " k"],
    prices: Float[ndarray, " k"] | None = None,
) -> tuple[Int[ndarray, " n"], Float[ndarray, " k"]]:
    """Return the labels with the smallest sum of costs within the bounds, and prices that prove it.

    Successive shortest paths in a graph whose nodes are the clusters and the ground. The arc a -> b
    costs what the cheapest row of a pays for moving to b; a path moves one row along each of its
    arcs, from a cluster with too many rows to one with room. Arcs to and from the ground change how
    many places of a cluster are used. A row is always in a cluster with its smallest cost plus
    price. `prices`: those to begin with, of a similar problem.
    """
    n, k = costs.shape
    price = np.zeros(k + 1)  # the ground is the last node
    if prices is not None:
        price[:k] = prices
    labels = (costs + price[:k]).argmin(axis=1)
    sizes = np.bincount(labels, minlength=k)
    # At positive prices every place is used, at negative ones as few as allowed.
    used = np.where(price[:k] > 0, upper, lower)
    used = np.where(price[:k] == 0, np.clip(sizes, lower, upper), used)
    excess = np.append(sizes - used, used.sum() - n)
    arcs, movers = np.full((k + 1, k + 1), np.inf), np.zeros((k, k), dtype=np.int64)

    def find_cheapest_moves(a: int) -> None:
        rows = np.flatnonzero(labels == a)
        arcs[a, :k] = np.inf
        if rows.size:
            more = costs[rows] - costs[rows, a, None]
            first = more.argmin(axis=0)
            arcs[a, :k], movers[a] = more[first, np.arange(k)], rows[first]
            arcs[a, a] = np.inf

    for a in range(k):
        find_cheapest_moves(a)
    while (excess > 0).any():
        source = int(excess.argmax())
        arcs[:k, k] = np.where(used < upper, 0.0, np.inf)
        arcs[k, :k] = np.where(used > lower, 0.0, np.inf)
        away, through = np.full(k + 1, np.inf), np.full(k + 1, -1)
        away[source], left, target = 0.0, np.ones(k + 1, dtype=bool), -1
        for _ in range(k + 1):  # Dijkstra's algorithm, until a node with room is reached
            node = int(np.where(left, away, np.inf).argmin())
            if excess[node] < 0:
                target = node
                break
            left[node] = False
            reached = away[node] + np.maximum(arcs[node] + price - price[node], 0.0)
            nearer = left & (reached < away)
            away[nearer], through[nearer] = reached[nearer], node
        if target < 0 or not math.isfinite(away[target]):
            raise ValueError("size_min, size_max: no assignment of the rows fits these bounds")
        price += np.maximum(away[target] - away, 0.0) * ~left
        path = [target]
        while path[-1] != source:
            path.append(int(through[path[-1]]))
        for to, a in pairwise(path):
            if a == k:
                used[to] -= 1
            elif to == k:
                used[a] += 1
            else:
                labels[movers[a, to]] = to
        for node in path:
            if node < k:
                find_cheapest_moves(node)
        excess[source] -= 1
        excess[target] += 1
    return labels, price[:k] - price[k]
