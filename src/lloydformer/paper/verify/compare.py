"""Compare a circuit with its algorithm: layer by layer from the same centers, or free-running."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.layer import LayerContext
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.subspaces import POSITION
from lloydformer.circuits.trace import Recorder, Trace
from lloydformer.numerics import noise
from lloydformer.paper.verify.problems import Problem
from lloydformer.paper.verify.rounding import (
    are_exact,
    center_variation,
    distance_rounding,
    sure_assignments,
)
from lloydformer.paper.verify.trials import Trial

# Score and cut are both rounded, in the circuit and in the algorithm: four errors.
_ROUNDED_TERMS = 4
# In spreads: a point that is kept or left out moves a center by far more, an error of a few units
# of the last place by far less.
_LARGEST_VARIATION = 1e-6


@dataclass(frozen=True)
class Deviation:
    """The difference between a circuit and its algorithm.

    Attributes
    ----------
    centers : float
        The largest difference, in spreads.
    labels : int
        Number of labels that differ although the margin between the two best centers exceeds the
        rounding error.
    weights : int
        Number of the decoder's decisions that differ in the same way.
    problems : int
        Number of problems.
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
        """Return whether the centers are within the tolerance and all decisions equal."""
        return self.centers <= tolerance and self.labels == 0 and self.weights == 0


@dataclass(frozen=True)
class ComparedLayer:
    """One layer of a circuit and one iteration of its algorithm, from the same centers.

    Attributes
    ----------
    number : int
        The layer, counted from 0.
    start : ndarray
        The centers before it.
    sure : ndarray
        Mask of the points whose assignment rounding cannot change.
    assignments : ndarray
        Those of the algorithm.
    chosen : ndarray
        The same, but the circuit's where rounding decides; `weights` and `expected` follow from it.
    attention, decoder, found : ndarray
        The cross-attention of encoder and decoder, and the new centers, of the circuit.
    weights, expected : ndarray
        The weights of the points and the new centers, of the algorithm.
    wrong : ndarray
        Mask of the decoder's decisions that differ though rounding cannot change them.
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


def circuit_for(recipe: AnyRecipe, problem: Problem) -> Circuit:
    """Return a circuit of the recipe for the sizes of the problem."""
    return Circuit(recipe, problem.points.shape[1], len(problem.centers))


def run_circuit(
    recipe: AnyRecipe,
    problem: Problem,
    n_layers: int,
    seed: int | None = None,
    names_filter: str | Sequence[str] = (),
    dtype: torch.dtype = torch.float64,
) -> Trace:
    """Return the trace of a circuit of the recipe on the problem."""
    circuit = circuit_for(recipe, problem)
    return circuit(*problem.tensors(dtype), n_layers, names_filter=names_filter, seed=seed)


def deviation_from(
    circuit: Circuit,
    algorithm: algorithms.Algorithm,
    problem: Problem,
    n_layers: int = 10,
    seed: int | None = None,
) -> float:
    """Return the largest difference of the circuit's centers from the algorithm's, in spreads."""
    trace = circuit(*problem.tensors(), n_layers, seed=seed)
    return largest_difference(trace.centers.numpy(), algorithm, problem)


def deviations_from(
    recipe: Recipe, algorithm: algorithms.Algorithm, problems: Sequence[Problem], n_layers: int = 10
) -> list[float]:
    """Return `deviation_from` of the recipe's circuit for each problem."""
    return [deviation_from(circuit_for(recipe, p), algorithm, p, n_layers) for p in problems]


def largest_difference(
    centers: ndarray, algorithm: algorithms.Algorithm, problem: Problem
) -> float:
    """Return the largest difference of these centers from the algorithm's, in spreads."""
    history = algorithms.run(algorithm, problem.points, problem.centers, len(centers) - 1)
    return float(np.abs(centers - history.centers).max()) / problem.spread


def run_without_checks(circuit: Circuit, problem: Problem, n_layers: int = 10) -> ndarray:
    """Return the centers before each layer and after the last, without centering or checks."""
    points, centers = problem.tensors()
    assignments = points.new_zeros(len(points), len(centers))
    x, c = circuit.tokens.encoder(points, assignments), circuit.tokens.decoder(centers)
    history = [problem.centers]
    for _ in range(n_layers):
        x, c = circuit.layers[0](x, c, LayerContext())
        history.append(circuit.space.read(c, POSITION).numpy())
    return np.stack(history)


def free_running(trial: Trial) -> Deviation | None:
    """Compare free runs of both from the same initial centers.

    Returns None if they differ where rounding can change which points a center keeps: for example,
    two points of a cluster are equally far from their mean, and one of them is trimmed. Use it for
    continuous data, without ties.
    """
    problem, n_layers = trial.problem, trial.n_layers
    history = algorithms.run(trial.algorithm, problem.points, problem.centers, n_layers)
    trace = run_circuit(trial.recipe, problem, n_layers, trial.seed, dtype=trial.dtype)
    away = np.abs(trace.centers.double().numpy() - history.centers).max() / problem.spread
    differ = trace.labels.numpy() != history.labels
    sure = [
        sure_assignments(trial.algorithm, problem.points, start, trial.dtype)
        for start in history.centers[:-1]
    ]
    found = Deviation(float(away), int((differ & np.stack(sure)).sum()))
    # A run that a rounding error turns once is another run from there on. That is looked for only
    # where there is a difference: it takes time.
    if found.within(_LARGEST_VARIATION) or all(
        is_clear(trial, history, t) for t in range(n_layers)
    ):
        return found
    return None


def is_clear(trial: Trial, history: algorithms.History, t: int) -> bool:
    """Return whether rounding cannot change which points the centers of iteration t keep.

    Other algorithms than those that keep some points and leave others out change continuously, but
    for points between two centers, which continuous data do not have.
    """
    if not hasattr(trial.algorithm, "decision"):
        return True
    points, start = trial.problem.points, history.centers[t]
    sure = sure_assignments(trial.algorithm, points, start, trial.dtype)
    # Two centers can be one point, also in continuous data: medoids are drawn independently.
    if not sure.all() or not has_clear_cuts(trial, history, t):
        return False
    # Two points of a cluster are equally far from their mean: the algorithm keeps both, rounding
    # one of them. Their scores are on the cut, not below it.
    return variation_of_layer(trial, t, start, history.assignments[t], sure) <= _LARGEST_VARIATION


def variation_of_layer(
    trial: Trial, t: int, centers: ndarray, assignments: ndarray, sure: ndarray
) -> float:
    """Return how much rounding may change the new centers, in spreads.

    Assignments that are not sure are given. Nothing changes if all scores are exact: ties are then
    ties in every computation.
    """
    points, algorithm = trial.problem.points, trial.algorithm
    if isinstance(trial.recipe, Recipe) and are_exact(algorithm, points, centers, trial.dtype):
        return 0.0

    def update(points: ndarray, centers: ndarray) -> ndarray:
        shares = np.where(sure[:, None], algorithm.assign(points, centers), assignments)
        return algorithm.place(points, algorithm.weigh(points, centers, shares, t))

    return center_variation(update, trial.problem, centers, trial.dtype)


def has_clear_cuts(trial: Trial, history: algorithms.History, t: int) -> bool:
    """Return whether rounding cannot lift a score over its cut in iteration t."""
    if not hasattr(trial.algorithm, "decision"):
        return True
    points, centers = trial.problem.points, history.centers[t]
    scores, cuts = trial.algorithm.decision(points, centers, history.assignments[t], t)
    below = np.where(scores < cuts[:, None], scores, -np.inf).max(axis=1)
    error = _ROUNDED_TERMS * distance_rounding(points, centers, trial.dtype)
    return bool((cuts - below > error).all())


def layer_by_layer(trial: Trial) -> Deviation:
    """Return the difference of all layers, each started from the algorithm's centers."""
    spread = trial.problem.spread
    total = sum((one.deviation(spread) for one in compare_layers(trial)), Deviation(problems=0))
    return replace(total, problems=min(total.problems, 1))  # 0 if no layer could be compared


def compare_layers(trial: Trial) -> list[ComparedLayer]:
    """Compare each layer, started from the algorithm's centers at that iteration.

    Layers from the first one on whose new centers the algorithm leaves undefined are left out.
    """
    if not isinstance(trial.recipe, Recipe):
        raise TypeError("a recipe of several stages has no single layer; use free_running")
    n_layers, problem = trial.n_layers, trial.problem
    history = algorithms.run(trial.algorithm, problem.points, problem.centers, n_layers)
    finite = np.isfinite(history.centers).all(axis=(1, 2))
    n_layers = n_layers if finite.all() else int(finite.argmin()) - 1
    if n_layers <= 0:
        return []
    # numbers of the circuit's dtype: the algorithm starts from the same rounded centers
    starts = torch.tensor(history.centers[:n_layers]).to(trial.dtype).double().numpy()
    # a layer also takes off the assignment of the one before; that before the first is zero
    before = np.concatenate([np.zeros_like(history.assignments[:1]), history.assignments])
    # all layers as one batch, in place of a run for each
    attention, decoder, found = run_layers(trial, starts, before[:n_layers])
    return [
        compare_layer(trial, t, starts[t], attention[t], decoder[t], found[t])
        for t in range(n_layers)
    ]


def run_layers(trial: Trial, starts: ndarray, before: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Run all layers as a batch; return encoder and decoder cross-attention, and centers."""
    dtype, (n_layers, k, _) = trial.dtype, starts.shape
    circuit = circuit_for(trial.recipe, trial.problem)
    points = torch.tensor(trial.problem.points, dtype=dtype).expand(n_layers, -1, -1)
    x, c, origin = circuit.embed(
        points, torch.tensor(starts, dtype=dtype), torch.tensor(before, dtype=dtype)
    )

    def draw(slot: str, scores: Tensor) -> Tensor:
        """Return the noise that layer t of a run would draw, for entry t of the batch."""
        rows = torch.arange(scores.shape[-1])
        draws = [noise.gumbel(trial.seed, t, slot, k, rows) for t in range(n_layers)]
        return torch.stack(draws).to(dtype)

    layer = circuit.layers[0]
    with Recorder(("*.decoder_cross.attention",)).watch([layer]) as recorder:
        _, c = layer(x, c, LayerContext(draw))
    (weights,) = recorder.kept.values()
    return (
        recorder.assignments[0].double().numpy(),
        weights.double().numpy(),
        (circuit.space.read(c, POSITION) + origin).double().numpy(),
    )


def compare_layer(
    trial: Trial, t: int, start: ndarray, attention: ndarray, decoder: ndarray, found: ndarray
) -> ComparedLayer:
    """Compare one layer with one iteration; if rounding decides, use the circuit's choice."""
    assert isinstance(trial.recipe, Recipe)  # `compare_layers` refuses others
    points, algorithm, dtype = trial.problem.points, trial.algorithm, trial.dtype
    assignments = algorithm.assign(points, start)
    sure = sure_assignments(algorithm, points, start, dtype)
    chosen = assignments.copy()
    largest = assignments.max(axis=1, keepdims=True)
    splits_evenly = bool(((assignments == 0) | (assignments == largest)).all())
    if trial.recipe.ties is not None or splits_evenly:
        # A point that rounding decides belongs to the circuit's centers, in equal shares.
        support = attention > 0
        follow = ~sure & support.any(axis=1)
        chosen[follow] = support[follow] / support[follow].sum(axis=1, keepdims=True)
    weights = algorithm.weigh(points, start, chosen, t)
    wrong = np.zeros_like(decoder, bool)
    if hasattr(algorithm, "decision"):
        scores, cuts = algorithm.decision(points, start, chosen, t)
        # scores near the cut: the circuit may keep these points or not
        error = _ROUNDED_TERMS * distance_rounding(points, start, dtype)
        near = np.abs(scores - cuts[:, None]) <= error
        wrong = ((weights > 0) != (decoder > 0)) & ~near
        kept = np.where(near, decoder > 0, weights > 0)
        weights = kept / kept.sum(axis=1, keepdims=True)
    return ComparedLayer(
        number=t,
        start=start,
        sure=sure,
        assignments=assignments,
        chosen=chosen,
        attention=attention,
        weights=weights,
        decoder=decoder,
        wrong=wrong,
        expected=algorithm.place(points, weights),
        found=found,
    )
