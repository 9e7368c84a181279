"""One iteration of each algorithm in exact arithmetic, from the same floats as a circuit.

Distances and means are computed with whole numbers and fractions, exponentials with fifty digits.
`Exact` shares no code with circuits or algorithms except the noise and the rule for empty clusters.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import mpmath
import numpy as np
import torch

from lloydformer.algorithms.robust import code_distances, largest_shares, members
from lloydformer.numerics.noise import gumbel

mpmath.mp.dps = 50


def whole(*arrays):
    """The arrays times a common power of two, as Python integers, and that power."""
    ratios = [[x.as_integer_ratio() for x in a.ravel().tolist()] for a in arrays]
    unit = max(q for column in ratios for _, q in column)
    shaped = [
        np.array([p * (unit // q) for p, q in column], dtype=object).reshape(a.shape)
        for column, a in zip(ratios, arrays, strict=True)
    ]
    return (*shaped, unit)


@dataclass
class Exact:
    """A recipe's algorithm on float64 arrays that hold the circuit's numbers exactly.

    scores (n, k): minus the squared distances, or dot products, as integers in units of `square`.
    """

    name: str
    points: np.ndarray
    centers: np.ndarray
    parameters: object
    iteration: int = 0

    def __post_init__(self):
        self.x, self.c, unit = whole(self.points, self.centers)
        self.unit, self.square = Fraction(1, unit), Fraction(1, unit**2)
        away = (self.x[:, None, :] - self.c[None, :, :]) ** 2
        self.away = away.sum(axis=2)  # squared distances, (n, k)
        self.scores = self.x @ self.c.T if self.name.startswith("spherical") else -self.away

    def best(self):
        """The mask of the exactly best centers of each point."""
        return self.scores == self.scores.max(axis=1, keepdims=True)

    def gaps(self):
        """By how much each score is below the point's best, as floats."""
        below = self.scores.max(axis=1, keepdims=True) - self.scores
        return np.array([[float(self.square * g) for g in row] for row in below])

    @cached_property
    def shares(self):
        """Soft assignments with fifty digits."""
        gamma = mpmath.mpf(self.parameters.inverse_temperature) * mpmath.mpf(1)
        unit = mpmath.mpf(1) / self.square.denominator
        rows = []
        for row in self.away:
            weights = [mpmath.exp(-gamma * unit * (int(a) - int(min(row)))) for a in row]
            rows.append(_normalised(weights))
        return rows

    def new_centers(self, assignments, margins):
        """The centers that follow from the circuit's assignments, and which of them are sure.

        A center is not sure if it chooses points by a cut, and rounding by `margins` (n, k) may
        move a point across it.
        """
        self.weights = np.zeros((len(self.c), len(self.x)))  # as floats, (k, n)
        found = [self._center(j, assignments, margins[:, j]) for j in range(len(self.c))]
        return np.array([center for center, _ in found]), np.array([sure for _, sure in found])

    def _center(self, j, assignments, margin):
        if self.name.startswith("soft"):
            column = [row[j] for row in self.shares]
            return self._mean(j, _normalised(column)), True
        if self.name in ("trimmed", "medoids"):
            return self._chosen(j, assignments, margin)
        own = self._own(assignments)[j]
        if self.name.startswith("robust"):
            return self._mean(j, self._robust_weights(j, own)), True
        weights = [Fraction(int(o), int(own.sum())) for o in own]
        if self.name.startswith("spherical"):
            return self._direction(j, weights), True
        return self._mean(j, weights), True

    def _own(self, assignments):
        """The points of each cluster, (k, n); of an empty cluster what its circuit takes."""
        if self.name == "lloyd_binary":
            k = assignments.shape[1]
            digits = np.array([[(i ^ j).bit_count() for j in range(k)] for i in range(k)])
            differ = digits[:, assignments.argmax(axis=1)]
            return differ == differ.min(axis=1, keepdims=True)
        by_distance = self.name in ("trimmed", "robust")
        return members(assignments) if by_distance else largest_shares(assignments)

    def _chosen(self, j, assignments, margin):
        """Trimmed and medoids choose points by a cut of their scores."""
        scores = [-Fraction(int(a)) * self.square for a in self.away[:, j]]
        if self.name == "medoids":
            n, k = assignments.shape
            noise = gumbel(
                self.parameters.seed, self.iteration, "decoder_cross", k, torch.arange(n)
            )
            lowered = self.parameters.separation * code_distances(assignments)[j]
            moved = [Fraction(g) - Fraction(float(m))
                     for g, m in zip(noise[j].tolist(), lowered, strict=True)]  # fmt: skip
            scores = [s + m for s, m in zip(scores, moved, strict=True)]
            own, count = np.ones(n, bool), 1
        else:
            own = members(assignments)[j]
            count = ceil(self.parameters.keep * own.sum() - 1e-9)
        ordered = sorted((s for s, o in zip(scores, own, strict=True) if o), reverse=True)
        cut = ordered[count - 1]
        kept = [o and s >= cut for s, o in zip(scores, own, strict=True)]
        sure = all(s == cut or abs(s - cut) > m
                   for s, o, m in zip(scores, own, margin.tolist(), strict=True) if o)  # fmt: skip
        return self._mean(j, [Fraction(int(m), int(sum(kept))) for m in kept]), sure

    def _robust_weights(self, j, own):
        gamma = Fraction(self.parameters.inverse_temperature)
        z = [-gamma * self.square * int(a) for a in self.away[:, j]]
        mine = sorted((s for s, o in zip(z, own, strict=True) if o), reverse=True)
        if self.parameters.activation == "softmax":
            weights = [
                mpmath.exp(_mp(s - mine[0])) if o else 0 for s, o in zip(z, own, strict=True)
            ]
            return _normalised(weights)
        total, threshold = Fraction(0), None
        for r, s in enumerate(mine, start=1):
            total += s
            if s > (total - 1) / r:
                threshold = (total - 1) / r
        return [max(s - threshold, 0) if o else Fraction(0) for s, o in zip(z, own, strict=True)]

    def _mean(self, j, weights):
        self.weights[j] = [float(w) for w in weights]
        fractions = all(isinstance(w, Fraction | int) for w in weights)
        unit = self.unit if fractions else mpmath.mpf(1) / self.unit.denominator
        return [float(_dot(weights, column) * unit) for column in self.x.T]

    def _direction(self, j, weights):
        self.weights[j] = [float(w) for w in weights]
        mean = [_mp(Fraction(_dot(weights, column))) for column in self.x.T]
        length = mpmath.sqrt(sum(m**2 for m in mean))
        return [float(m / length) for m in mean]


def _normalised(weights):
    total = sum(weights)
    return [w / total for w in weights]


def _dot(weights, column):
    """The exact sum of products; most weights are zero, and fractions are slow."""
    return sum(w * int(v) for w, v in zip(weights, column, strict=True) if w)


def _mp(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator
