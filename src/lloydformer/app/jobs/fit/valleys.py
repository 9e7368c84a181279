"""Valleys: are rows fewer between two centers than around them?

Two clusters are two because there is a valley between them: along the line from one center to the
other the density falls and rises again. If one group without gaps is cut in two, it does not. This
module measures that for each pair of centers, on rows that the centers were not fitted to, so that
a fit to noise does not look like clusters.
"""

import numpy as np
from jaxtyping import Float

# Bands along the line from one center (0) to the other (1): rows between the centers are those at
# most `_BETWEEN` from the middle, rows around a center are those at most `_AROUND` from it. Of five
# pairs of widths these have the best power on planted clusters (benchmarks/choose_k.py, `tune`);
# the choice matters little.
_BETWEEN, _AROUND = 0.15, 0.25
# Depth of the valley that the likelihood ratio expects: density in the middle as a share of that
# around the center with fewer rows. Smaller values miss clusters that overlap.
_DEPTH = 0.7


def pair_evidence(
    rows: Float[np.ndarray, "m d"], centers: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "k k"]:
    r"""Return for each pair of centers the log likelihood ratio of a valley to none.

    Position of a row x on the line from $c_i$ to $c_j$:
    $t = \tfrac12 + (\lVert x - c_i \rVert^2 - \lVert x - c_j \rVert^2)
    / (2 \lVert c_i - c_j \rVert^2)$. Of the rows near the line, M are between the centers, and at
    least F around each of them. Without a valley, as for any unimodal density, a row between the
    centers is at least as likely as one around the sparser center, for the widths of the bands;
    M is then binomial of M + F with that share, and with a smaller share if there is a valley.

    Rows are near the line if the middle of the line, moved to them sideways, has no third center
    nearer: then the cut through the rows is equally wide at each t, and the cells of other centers
    do not narrow it where there is no valley (the common edge of two cells of a honeycomb is
    shorter than the cells are wide). Pairs with another center between them are nan, as is the
    diagonal.
    """
    k = len(centers)
    evidence = np.full((k, k), np.nan)
    between = _squared_distances(centers, centers)  # (k, k)
    to_centers = _squared_distances(rows, centers)  # (m, k)
    no_valley = _BETWEEN / (_BETWEEN + _AROUND)
    valley = _DEPTH * _BETWEEN / (_DEPTH * _BETWEEN + _AROUND)
    of_middle, of_sides = np.log(valley / no_valley), np.log((1 - valley) / (1 - no_valley))
    for i, j in zip(*np.triu_indices(k, 1), strict=True):
        length = between[i, j]
        if length <= 1e-12 * between.max():  # one place, of which all rows are in the middle
            evidence[i, j] = evidence[j, i] = of_middle * len(rows)
            continue
        # Squared distances from the middle of the line: to a center l, (d_il^2 + d_jl^2) / 2 less
        # a quarter of the length.
        if ((between[i] + between[j]) / 2 < length / 2 * (1 - 1e-9)).any():
            continue
        t = (to_centers[:, i] - to_centers[:, j]) / (2 * length)  # 0 in the middle
        use = np.abs(t) < 0.5 + _AROUND
        t, own = t[use], to_centers[use]
        # Rows moved along the line to its middle: x - t (c_j - c_i), and their squared distances
        # to all centers; those to i and j are equal.
        along = (own[:, i] - own[:, j])[:, None] - (between[i] - between[j])
        moved = own - t[:, None] * along + (t * t * length)[:, None]
        near = (moved[:, [i]] <= moved + 1e-9 * length).all(axis=1)
        t = t[near]
        middle = np.count_nonzero(np.abs(t) < _BETWEEN)
        sides = min(np.count_nonzero(np.abs(t + side) < _AROUND) for side in (0.5, -0.5))
        evidence[i, j] = evidence[j, i] = middle * of_middle + sides * of_sides
    return evidence


def shortest_tree(centers: Float[np.ndarray, "k d"]) -> list[tuple[int, int]]:
    """Return the k - 1 pairs of centers with the least sum of distances that join all of them.

    By the algorithm of Prim (1957). No third center is between the two of a pair.
    """
    between = _squared_distances(centers, centers)
    nearest, distance = np.zeros(len(centers), dtype=int), between[0].copy()
    distance[0] = np.inf  # center 0 is in the tree; of others, the distance to the tree
    pairs = list[tuple[int, int]]()
    for _ in range(len(centers) - 1):
        new = int(distance.argmin())
        pairs.append((int(nearest[new]), new))
        in_tree = np.isinf(distance)
        closer = ~in_tree & (between[new] < distance)
        nearest[closer], distance[closer] = new, between[new][closer]
        distance[new] = np.inf
    return pairs


def _squared_distances(
    rows: Float[np.ndarray, "m d"], centers: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "m k"]:
    squares = (rows**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.maximum(squares - 2 * rows @ centers.T, 0.0)
