"""Compare a circuit with its algorithm: layer by layer from the same centers, or free-running."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.layer import LayerContext
from lloydformer.circuits.subspaces import POSITION
from lloydformer.circuits.trace import Recorder
from lloydformer.numerics import noise
from lloydformer.verify.cases import Case


@dataclass(frozen=True)
class Deviation:
    """The difference between a circuit and its algorithm.

    centers: the largest difference, in spreads. labels: number of labels that differ although the
    margin between the two best centers exceeds the rounding error. weights: number of the
    decoder's decisions that differ in the same way. problems: number of problems.
    """

    centers: float = 0.0
    labels: int = 0
    weights: int = 0
    problems: int = 1

    def __add__(self, other: "Deviation") -> "Deviation":
        return Deviation(
            max(self.centers, other.centers),
            self.labels + other.labels,
            self.weights + other.weights,
            self.problems + other.problems,
        )

    def within(self, tolerance: float) -> bool:
        """Are the centers within the tolerance and all decisions equal?"""
        return self.centers <= tolerance and self.labels == 0 and self.weights == 0


def layer_by_layer(case: Case, n_layers: int, dtype: torch.dtype = torch.float64) -> Deviation:
    """Compare each layer, started from the algorithm's centers at that iteration."""
    points = case.problem.points
    history = algorithms.run(case.algorithm, points, case.problem.centers, n_layers)
    starts = _rounded(history.centers[:-1], dtype)
    before = np.concatenate([np.zeros_like(history.assignments[:1]), history.assignments[:-1]])
    attention, decoder, after = _one_layer_each(case, starts, before, dtype)
    total = Deviation(problems=0)
    for t in range(n_layers):
        if np.isfinite(history.centers[t : t + 2]).all():
            total += _layer(case, starts[t], t, attention[t], decoder[t], after[t], dtype)
    return Deviation(total.centers, total.labels, total.weights)


def _layer(
    case: Case, start: ndarray, t: int, attention: ndarray, decoder: ndarray, after: ndarray,
    dtype: torch.dtype,
) -> Deviation:  # fmt: skip
    """Compare one layer with one iteration; if rounding decides, use the circuit's choice."""
    points, algorithm = case.problem.points, case.algorithm
    assignments = algorithm.assign(points, start)
    bound = rounding(points, start, dtype)
    sure = margins(case, start) > bound
    differ = (attention.argmax(axis=1) != assignments.argmax(axis=1)) & sure
    if case.recipe.ties is not None:  # a tied point is split evenly
        support = attention[~sure] > 0
        assignments[~sure] = support / support.sum(axis=1, keepdims=True)
    weights = algorithm.weigh(points, start, assignments, t)
    wrong = 0
    if hasattr(algorithm, "decision"):
        scores, cuts = algorithm.decision(points, start, assignments, t)
        near = np.abs(scores - cuts[:, None]) <= 4 * bound
        wrong = int((((weights > 0) != (decoder > 0)) & ~near).sum())
        chosen = np.where(near, decoder > 0, weights > 0)
        weights = chosen / chosen.sum(axis=1, keepdims=True)
    away = np.abs(after - algorithm.place(points, weights)).max() / case.problem.spread
    return Deviation(float(away), int(differ.sum()), wrong)


def free_running(case: Case, n_layers: int, dtype: torch.dtype = torch.float64) -> Deviation | None:
    """Compare free runs of both from the same initial centers.

    Returns None if rounding can change a decision of the algorithm itself: for example, two
    points of a cluster are equally far from their mean, and one of them is trimmed.
    """
    problem = case.problem
    history = algorithms.run(case.algorithm, problem.points, problem.centers, n_layers)
    if not all(_decided(case, history, t, dtype) for t in range(n_layers)):
        return None
    circuit = Circuit(case.recipe, problem.points.shape[1], len(problem.centers))
    trace = circuit(
        torch.tensor(problem.points, dtype=dtype), torch.tensor(problem.centers, dtype=dtype),
        n_layers, seed=case.seed,
    )  # fmt: skip
    away = np.abs(trace.centers.double().numpy() - history.centers).max() / problem.spread
    differ = trace.labels.numpy() != history.labels
    sure = [margins(case, c) > rounding(problem.points, c, dtype) for c in history.centers[:-1]]
    return Deviation(float(away), int((differ & np.stack(sure)).sum()))


def _decided(case: Case, history: algorithms.History, t: int, dtype: torch.dtype) -> bool:
    """Is the best score below the cut lower than the cut by more than the rounding error?"""
    if not hasattr(case.algorithm, "decision"):
        return True
    points, centers = case.problem.points, history.centers[t]
    scores, cuts = case.algorithm.decision(points, centers, history.assignments[t], t)
    below = np.where(scores < cuts[:, None], scores, -np.inf).max(axis=1)
    return bool((cuts - below > 4 * rounding(points, centers, dtype)).all())


def rounding(points: ndarray, centers: ndarray, dtype: torch.dtype) -> float:
    """Return the rounding error of a difference of scores: 16 (d + 3) eps max(|x|^2 + |c|^2)."""
    origin = points.mean(axis=0)
    largest = ((points - origin) ** 2).sum(axis=1).max() + ((centers - origin) ** 2).sum(
        axis=1
    ).max()
    return 16 * (points.shape[1] + 3) * torch.finfo(dtype).eps * float(largest)


def margins(case: Case, centers: ndarray) -> ndarray:
    """Return the difference of each point's two smallest squared distances to centers."""
    scores = np.sort(squared_distances(case.problem.points, centers), axis=1)
    return scores[:, 1] - scores[:, 0] if scores.shape[1] > 1 else np.full(len(scores), np.inf)


def _one_layer_each(
    case: Case, starts: ndarray, before: ndarray, dtype: torch.dtype
) -> tuple[ndarray, ndarray, ndarray]:
    """Run all layers as a batch; return encoder and decoder cross-attention, and centers."""
    n_layers, k, d = starts.shape
    circuit = Circuit(case.recipe, d, k)
    points = torch.tensor(case.problem.points, dtype=dtype).expand(n_layers, -1, -1)
    x, c, origin = circuit.embed(
        points, torch.tensor(starts, dtype=dtype), torch.tensor(before, dtype=dtype)
    )

    def draw(slot: str, scores: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(scores.shape[-1])
        draws = [noise.gumbel(case.seed, t, slot, k, rows) for t in range(n_layers)]
        return torch.stack(draws).to(dtype)

    layer = circuit.layers[0]
    with Recorder(("*.decoder_cross.attention",)).watching([layer]) as recorder:
        _, c = layer(x, c, LayerContext(draw))
    after = circuit.space.read(c, POSITION) + origin
    (decoder,) = recorder.kept.values()
    return (
        recorder.assignments[0].double().numpy(),
        decoder.double().numpy(),
        after.double().numpy(),
    )


def _rounded(centers: ndarray, dtype: torch.dtype) -> ndarray:
    return torch.tensor(centers).to(dtype).double().numpy()
