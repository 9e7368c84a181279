"""Compare a circuit with its algorithm: layer by layer from the same centers, or free-running."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.layer import LayerContext
from lloydformer.circuits.subspaces import POSITION
from lloydformer.circuits.trace import Recorder
from lloydformer.numerics import noise
from lloydformer.verify.cases import Case
from lloydformer.verify.margins import rounding, sure_assignments


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
            float(np.maximum(self.centers, other.centers)),  # unlike max, it keeps a NaN
            self.labels + other.labels,
            self.weights + other.weights,
            self.problems + other.problems,
        )

    def within(self, tolerance: float) -> bool:
        """Are the centers within the tolerance and all decisions equal?"""
        return self.centers <= tolerance and self.labels == 0 and self.weights == 0


@dataclass(frozen=True)
class ComparedLayer:
    """One layer of a circuit and one iteration of its algorithm, from the same centers.

    start: these centers. sure: mask of the points whose assignment rounding cannot change.
    assignments: the algorithm's. chosen: the same, but the circuit's where rounding decides;
    weights and expected, the new centers of the algorithm, follow from it. attention, decoder,
    found: the cross-attention of encoder and decoder, and the new centers of the circuit. wrong:
    mask of the decoder's decisions that differ though rounding cannot change them.
    """

    number: int
    start: ndarray
    sure: ndarray
    assignments: ndarray
    chosen: ndarray
    attention: ndarray
    weights: ndarray
    decoder: ndarray
    wrong: ndarray
    expected: ndarray
    found: ndarray

    def deviation(self, spread: float) -> Deviation:
        """Return the difference of this layer, in these spreads."""
        away = float(np.abs(self.found - self.expected).max()) / spread
        differ = self.attention.argmax(axis=1) != self.assignments.argmax(axis=1)
        return Deviation(away, int((differ & self.sure).sum()), int(self.wrong.sum()))


def layer_by_layer(case: Case, n_layers: int, dtype: torch.dtype = torch.float64) -> Deviation:
    """Compare each layer, started from the algorithm's centers at that iteration."""
    layers = compared_layers(case, n_layers, dtype)
    total = sum((a.deviation(case.problem.spread) for a in layers), Deviation(problems=0))
    return Deviation(total.centers, total.labels, total.weights)


def compared_layers(case: Case, n_layers: int, dtype: torch.dtype) -> list[ComparedLayer]:
    """Compare each layer, started from the algorithm's centers at that iteration.

    Layers from the first one on whose new centers the algorithm leaves undefined are left out.
    """
    points = case.problem.points
    history = algorithms.run(case.algorithm, points, case.problem.centers, n_layers)
    finite = np.isfinite(history.centers).all(axis=(1, 2))
    n_layers = n_layers if finite.all() else int(finite.argmin()) - 1
    if n_layers == 0:
        return []
    starts = _rounded(history.centers[:n_layers], dtype)
    before = np.concatenate([np.zeros_like(history.assignments[:1]), history.assignments])
    attention, decoder, found = _one_layer_each(case, starts, before[:n_layers], dtype)
    return [
        _layer(case, t, starts[t], attention[t], decoder[t], found[t], dtype)
        for t in range(n_layers)
    ]


def _layer(
    case: Case, t: int, start: ndarray, attention: ndarray, decoder: ndarray, found: ndarray,
    dtype: torch.dtype,
) -> ComparedLayer:  # fmt: skip
    """Compare one layer with one iteration; if rounding decides, use the circuit's choice."""
    points, algorithm = case.problem.points, case.algorithm
    assignments = algorithm.assign(points, start)
    sure = sure_assignments(algorithm, points, start, dtype)
    chosen = assignments.copy()
    if case.recipe.ties is not None or _splits_evenly(assignments):  # a tied point is split evenly
        support = attention > 0
        follow = ~sure & support.any(axis=1)
        chosen[follow] = support[follow] / support[follow].sum(axis=1, keepdims=True)
    weights = algorithm.weigh(points, start, chosen, t)
    wrong = np.zeros_like(decoder, bool)
    if hasattr(algorithm, "decision"):
        scores, cuts = algorithm.decision(points, start, chosen, t)
        near = np.abs(scores - cuts[:, None]) <= 4 * rounding(points, start, dtype)
        wrong = ((weights > 0) != (decoder > 0)) & ~near
        kept = np.where(near, decoder > 0, weights > 0)
        weights = kept / kept.sum(axis=1, keepdims=True)
    return ComparedLayer(
        t, start, sure, assignments, chosen, attention, weights, decoder, wrong,
        expected=algorithm.place(points, weights), found=found,
    )  # fmt: skip


def _splits_evenly(assignments: ndarray) -> bool:
    """Does every point belong in equal shares to some centers, usually to one?"""
    shares = assignments.max(axis=1, keepdims=True)
    return bool(((assignments == 0) | (assignments == shares)).all())


def free_running(case: Case, n_layers: int, dtype: torch.dtype = torch.float64) -> Deviation | None:
    """Compare free runs of both from the same initial centers.

    Returns None if rounding can change a decision of the algorithm itself: for example, two
    points of a cluster are equally far from their mean, and one of them is trimmed.
    """
    problem = case.problem
    history = algorithms.run(case.algorithm, problem.points, problem.centers, n_layers)
    if not all(is_decided(case, history, t, dtype) for t in range(n_layers)):
        return None
    circuit = Circuit(case.recipe, problem.points.shape[1], len(problem.centers))
    trace = circuit(
        torch.tensor(problem.points, dtype=dtype), torch.tensor(problem.centers, dtype=dtype),
        n_layers, seed=case.seed,
    )  # fmt: skip
    away = np.abs(trace.centers.double().numpy() - history.centers).max() / problem.spread
    differ = trace.labels.numpy() != history.labels
    sure = [
        sure_assignments(case.algorithm, problem.points, start, dtype)
        for start in history.centers[:-1]
    ]
    return Deviation(float(away), int((differ & np.stack(sure)).sum()))


def is_decided(case: Case, history: algorithms.History, t: int, dtype: torch.dtype) -> bool:
    """Is the best score below the cut lower than the cut by more than the rounding error?"""
    if not hasattr(case.algorithm, "decision"):
        return True
    points, centers = case.problem.points, history.centers[t]
    scores, cuts = case.algorithm.decision(points, centers, history.assignments[t], t)
    below = np.where(scores < cuts[:, None], scores, -np.inf).max(axis=1)
    return bool((cuts - below > 4 * rounding(points, centers, dtype)).all())


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
