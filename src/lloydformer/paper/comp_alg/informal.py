"""The circuit of thm:l2-clus-ip-informal: d rectified quadratic units, for given data.

The units see each center plus a shift, through the code rows of W_1, so that no coordinate is
negative; V_3 and V_4 take off what the shift adds to the squared norm. Written out from the
equations alone: `verify.errata.networks.with_shift` has the same weights in a circuit, as a second
truth.
"""

from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.verify.compare import Deviation
from lloydformer.verify.problems import Problem


def compared(problem: Problem, n_layers: int) -> Deviation:
    """The largest deviation of the centers from Lloyd's algorithm, over free-running layers."""
    lloyd = algorithms.run(algorithms.Lloyd(), problem.points, problem.centers, n_layers)
    expected = lloyd.centers[1:]
    weights = informal_weights(problem)
    tokens = _embedded(problem.points, None, len(problem.centers))
    centers = _embedded(problem.centers, np.eye(len(problem.centers)), len(problem.centers))
    worst, turned = 0.0, 0
    for after, labels in zip(expected, lloyd.labels, strict=True):
        tokens, centers = layer(weights, tokens, centers)
        d = problem.points.shape[1]
        worst = max(worst, float(np.abs(centers[:d].T - after).max()) / problem.spread)
        turned += int((tokens[d + 2 :].argmax(axis=0) != labels).sum())
    return Deviation(worst, labels=turned)


@dataclass(frozen=True)
class InformalWeights:
    """Queries, keys and values of the four attentions, and the two matrices of the network."""

    query: list[ndarray]
    key: list[ndarray]
    value: list[ndarray]
    w1: ndarray
    w2: ndarray


def informal_weights(problem: Problem) -> InformalWeights:
    """The weights for these points; the shift is minus their least coordinate, if negative."""
    d, k = problem.points.shape[1], len(problem.centers)
    shift = max(0.0, -float(problem.points.min()))
    every = np.eye(d + 2 + k)
    position, codes = every * (np.arange(d + 2 + k) < d + 2), every * (np.arange(d + 2 + k) > d + 1)
    swapped = position[[*range(d), d + 1, d, *range(d + 2, d + 2 + k)]]
    mean = every * (np.arange(d + 2 + k) < d)
    mean[d, :d], mean[d, d + 1], mean[d + 1, d + 1] = -2 * shift, 2 * d * shift**2, 1.0
    w1 = np.hstack([np.eye(d), np.zeros((d, 2)), np.full((d, k), shift)])
    return InformalWeights(
        [position, position, codes, codes], [swapped, swapped, codes, codes],
        [codes, -codes, mean, -position], w1, np.outer(np.ones(d), every[d]),
    )  # fmt: skip


def layer(weights: InformalWeights, x: ndarray, c: ndarray) -> tuple[ndarray, ndarray]:
    """One layer of eq:l2-trf-ip-updates."""
    x = x + _attention(weights, 0, x, c) + _attention(weights, 1, x, x)
    c = c + _attention(weights, 2, c, x) + _attention(weights, 3, c, c)
    return x, c + weights.w2.T @ np.square(np.maximum(weights.w1 @ c, 0.0))


def _attention(weights: InformalWeights, head: int, queries: ndarray, keys: ndarray) -> ndarray:
    """Limiting soft-max attention with dot products."""
    scores = (weights.key[head] @ keys).T @ (weights.query[head] @ queries)
    best = scores == scores.max(axis=0)
    attended: ndarray = weights.value[head] @ keys @ (best / best.sum(axis=0))
    return attended


def _embedded(places: ndarray, codes: ndarray | None, k: int) -> ndarray:
    """Tokens as columns: place, squared norm, -1/2, code."""
    n = len(places)
    codes = np.zeros((k, n)) if codes is None else codes
    norms = np.square(places).sum(axis=1)
    return np.vstack([places.T, norms, np.full(n, -0.5), codes])
