"""Slips of notation: what the lines around them show to be meant, and what is printed."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Linear
from lloydformer.circuits.projections import lifting
from lloydformer.circuits.subspaces import HALF, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.distances import squared_distances
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, draw, small_problems


def e_14_formulas(rng: np.random.Generator) -> Finding:
    """X sigma_lin(Y^T), not X sigma_lin(Y)^T; sigma_inf is not sigma_lin at 0; no negation."""
    printed, repaired, farthest = [], [], []
    for p in small_problems(rng, 20):
        points, centers = _tensors(p)
        away = squared_distances(points, centers)
        shares = (-5 * away).softmax(dim=1).mT  # Y, (k, n)
        new = algorithms.run(algorithms.Soft(5.0), p.points, p.centers, 1).centers[-1]
        wrong, right = Linear()(shares.mT).mT @ points, Linear()(shares) @ points
        printed.append(float(np.abs(wrong.numpy() - new).max() / p.spread))
        repaired.append(float(np.abs(right.numpy() - new).max() / p.spread))
        farthest.append(_negated(points, centers) == away.argmax(dim=1).tolist())
    zero = torch.zeros(1, 4)
    return erratum(
        14, "notation", "linear attention in thm:l2-clus eu is X sigma_lin(Y^T)",
        printed, repaired,
        note=f"of the zero vector sigma_inf is {LimitingSoftmax()(zero)[0, 0]:g} each, sigma_lin "
        f"{Linear()(zero)[0, 0]:g}; a negation of pi selects the farthest center in "
        f"{sum(farthest)} of {len(farthest)} problems",
    )  # fmt: skip


def _tensors(problem: Problem) -> tuple[Tensor, Tensor]:
    return torch.tensor(problem.points), torch.tensor(problem.centers)


def _negated(points: Tensor, centers: Tensor) -> list[int]:
    """Return the centers that points select with the negation of pi."""
    tokens = Tokens((POSITION, SQUARED_NORM, HALF))
    turned = (-lifting(POSITION)).matrix(tokens.space(points.shape[1], 1))
    queries = tokens.encoder(points, points.new_zeros(len(points), 1)) @ turned
    return (queries @ tokens.decoder(centers).mT).argmax(dim=1).tolist()


def e_20_slips(rng: np.random.Generator) -> Finding:
    """Y(C, A) for Y(C, X) needs d = k, and is then wrong; another slip has no effect."""
    square = [draw(rng, "uniform", n=(20, 120), d=(s, s), k=(s, s))
              for s in rng.integers(2, 7, size=20).tolist()]  # fmt: skip
    problems = small_problems(rng, 20)
    return erratum(
        20, "notation", "lem block lloyd writes Y(C, A) for Y(C, X)",
        [_next_centers(p, by_scores=True) for p in square],
        [_next_centers(p, by_scores=False) for p in square],
        "the paper's text fails {count} where d = k, by up to {worst} of the spread; else it is "
        "undefined",
        f"with Q and K swapped the centers are off by {max(map(_swapped, problems)):.0e}",
    )  # fmt: skip


def _next_centers(problem: Problem, by_scores: bool) -> float:
    """Return how far X sigma(Y(C, .)^T) is from Lloyd's next centers, in spreads."""
    points, centers = _tensors(problem)
    limit = LimitingSoftmax()
    columns = (
        -squared_distances(points, centers) if by_scores else points
    )  # A or X, (n, k) or (n, d)
    shares = limit(-squared_distances(columns, centers))
    moved = limit(shares.mT) @ points
    new = algorithms.run(algorithms.Lloyd("average"), *_arrays(problem), 1).centers[-1]
    return float(np.abs(moved.numpy() - new).max()) / problem.spread


def _arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    return problem.points, problem.centers


def _swapped(problem: Problem) -> float:
    """Return the deviation of centers if queries are the identity and keys are pi."""
    recipe = recipes.lloyd_dot()
    slots = ("encoder_cross", "encoder_self")
    heads = {slot: getattr(recipe, slot) for slot in slots}
    turned = {slot: replace(h, query=h.key, key=h.query) for slot, h in heads.items()}
    return deviation_from(
        circuit_for(replace(recipe, **turned), problem), algorithms.Lloyd(), problem
    )


NOTATION: tuple[Statement, ...] = (e_14_formulas, e_20_slips)
