"""fig:numerical_validation: circuits with gamma = 10^4 and Lloyd's algorithm, and their judgement.

`lloydformer verify` and `lloydformer reproduce numerical-validation` both take the problem, the
runs and the judgement from here, so that they say the same.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lloydformer.algorithms import History, Lloyd, run
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.verify.mixture import MixtureSize, mixture

GAMMA = 1e4
N_LAYERS, FEWER_LAYERS = 10, 5
"""Layers of the figure, and of the circuit with gamma in every head, which is far off earlier."""
FIGURE = MixtureSize(clusters=5, dimensions=2, scale=1, points=10_000)
"""n, d and k of the caption. The text does not give the data: these are those of asec:num-val."""
TO_THE_EYE = 1e-2
"""Paths of centers look the same if they differ by less than a hundredth of the picture's side."""
ITSELF = "layers.1.encoder_self.attention"
"""Attention of each point to each point, kept by `run_in_every_head`."""


@dataclass(frozen=True)
class LloydDifference:
    """How far a run is from Lloyd's algorithm.

    centers: the largest difference of a coordinate in any layer, as a part of the picture's side.
    labels: the number of labels that differ in each layer, of the number `of`.
    """

    centers: float
    labels: list[int]
    of: int

    @property
    def same_to_the_eye(self) -> bool:
        """Whether the paths of the centers look the same."""
        return self.centers < TO_THE_EYE

    @property
    def same_final_labels(self) -> bool:
        return self.labels[-1] == 0

    @property
    def same_labels(self) -> bool:
        """Whether no label differs in any layer."""
        return not any(self.labels)


def figure_problem(
    seed: int = 0, size: MixtureSize = FIGURE, device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    """The points and the initial centers, random points, in float64."""
    points, centers = mixture(size, torch.Generator().manual_seed(seed))
    return points.double().to(device), centers.double().to(device)


def run_lloyd(points: Tensor, centers: Tensor, n_layers: int = N_LAYERS) -> History:
    """Lloyd's algorithm."""
    return run(Lloyd(), points.cpu().numpy(), centers.cpu().numpy(), n_layers)


def run_in_encoder_cross(points: Tensor, centers: Tensor) -> Trace:
    """Gamma where thm:l2-clus eu has it: in the encoder's cross-attention.

    The decoder's cross-attention is linear, and the self-attentions are in the limit.
    """
    return _run(recipes.soft(GAMMA), points, centers, N_LAYERS)


def run_in_every_head(points: Tensor, centers: Tensor) -> Trace:
    """Gamma in all four attentions; ITSELF is kept.

    Self-attention is then not the identity, so it does not cancel the residual.
    """
    recipe = recipes.lloyd()
    for slot, head in recipe.heads.items():
        finite = replace(head, activation=Softmax(GAMMA))
        recipe = replace(recipe, **{slot: finite})  # type: ignore[arg-type]
    return _run(recipe, points, centers, FEWER_LAYERS, keep=(ITSELF,))


def median_weight_on_itself(trace: Trace) -> float:
    """Of a point in the encoder's self-attention; 1 if that is the identity."""
    return trace[ITSELF].diagonal().median().item()


def lloyd_difference(lloyd: History, found: History | Trace, side: int = 1) -> LloydDifference:
    """The difference of a run to Lloyd's; `side`: of the square that holds the points."""
    centers, labels = np.asarray(_array(found.centers)), np.asarray(_array(found.labels))
    away = np.abs(centers - lloyd.centers).max() / side
    differ = (labels != lloyd.labels).sum(axis=1).tolist()
    return LloydDifference(float(f"{away:.4g}"), differ, lloyd.labels.shape[1])


def _array(values: np.ndarray | Tensor) -> np.ndarray:
    return values.cpu().numpy() if isinstance(values, Tensor) else values


def _run(
    recipe: Recipe, points: Tensor, centers: Tensor, n_layers: int, keep: tuple[str, ...] = ()
) -> Trace:
    made = Circuit(recipe, points.shape[1], len(centers))
    return made(points, centers, n_layers, keep=keep)
