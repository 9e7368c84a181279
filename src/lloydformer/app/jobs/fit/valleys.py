"""Valleys: evidence that rows are rarer between two centers than around them.

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
    / (2 \lVert c_i - c_j \rVert^2)$. Near the line, M rows are between the centers, and at
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
    nearest = to_centers.argmin(axis=1)
    nearest_distance = to_centers[np.arange(len(rows)), nearest]
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
        # A row x moved along the line to its middle, x - t (c_j - c_i), is as near to i as to j; by
        # so much farther is it from another center l: d_l^2 - d_i^2 + t (d_il^2 - d_jl^2 + d_ij^2).
        change = between[i] - between[j] + length
        # Most rows are out by the center that is nearest to them as they are.
        farther = nearest_distance - to_centers[:, i] + t * change[nearest]
        use = np.flatnonzero((np.abs(t) < 0.5 + _AROUND) & (farther >= -1e-9 * length))
        own, t = to_centers[use], t[use]
        near = (own - own[:, [i]] + t[:, None] * change >= -1e-9 * length).all(axis=1)
        t = t[near]
        middle = np.count_nonzero(np.abs(t) < _BETWEEN)
        sides = min(np.count_nonzero(np.abs(t + side) < _AROUND) for side in (0.5, -0.5))
        evidence[i, j] = evidence[j, i] = middle * of_middle + sides * of_sides
    return evidence


def likely_pairs(evidence: Float[np.ndarray, "k k"]) -> list[tuple[int, int]]:
    """Return the pairs with the largest positive evidence that join centers without a circle.

    At most k - 1 pairs, by the algorithm of Kruskal (1956): the forest with the largest sum.
    """
    k = len(evidence)
    group = np.arange(k)  # of each center, the centers that it is joined with
    pairs = list[tuple[int, int]]()
    rows, columns = np.nonzero(np.triu(evidence > 0, 1))  # nan is not above 0
    for place in np.argsort(-evidence[rows, columns], kind="stable"):
        i, j = int(rows[place]), int(columns[place])
        if group[i] != group[j]:
            group[group == group[j]] = group[i]
            pairs.append((i, j))
    return pairs


def _squared_distances(
    rows: Float[np.ndarray, "m d"], centers: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "m k"]:
    squares = (rows**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.maximum(squares - 2 * rows @ centers.T, 0.0)
