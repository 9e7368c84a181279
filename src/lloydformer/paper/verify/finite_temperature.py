"""fig:numerical_validation: circuits with gamma = 10^4 and Lloyd's algorithm, and their judgement.

`lloydformer verify` and `lloydformer reproduce numerical-validation` both take the problem, the
runs and the judgement from here, so that they say the same. The mixtures are those of
fig:parameter_sweep as well.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.algorithms import History, Lloyd, run
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.numerics.clusters import squared_distances

GAMMA = 1e4
# Layers of the figure, and of the circuit with gamma in every head, which is far off earlier.
N_LAYERS, FEWER_LAYERS = 10, 5
# Paths of centers look the same if they differ by less than a hundredth of the picture's side.
TO_THE_EYE = 1e-2
# Attention of each point to each point, kept by `run_in_every_head`.
ITSELF = "layers.1.encoder_self.attention"
# Of every cluster, as in the authors' code.
VARIANCE = 0.01


@dataclass(frozen=True)
class MixtureSize:
    """The size of one data set: numbers of clusters, dimensions and points, and the scale."""

    clusters: int
    dimensions: int
    scale: int
    points: int


# n, d and k of the caption, with data as in asec:num-val: other draws than the figure's, which is
# `authors_problem`.
FIGURE = MixtureSize(clusters=5, dimensions=2, scale=1, points=10_000)


def draw_mixture(
    size: MixtureSize, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """Draw the points of a Gaussian mixture, and choose k of them as initial centers.

    There is one Gaussian for each cluster, all with the same number of points. Means are uniform
    in [0, 1]^d and every variance is 0.01; then each column is scaled to [0, scale]. Numbers are
    float32, as the authors'.
    """
    k, d, each = size.clusters, size.dimensions, size.points // size.clusters
    device = generator.device
    means = torch.rand(k, 1, d, generator=generator, device=device)
    noise = torch.randn(k, each, d, generator=generator, device=device)
    points = (means + VARIANCE**0.5 * noise).reshape(k * each, d)
    low, high = points.aminmax(dim=0)
    points = (points - low) / (high - low) * size.scale
    chosen = torch.randperm(len(points), generator=generator, device=device)[:k]
    return points, points[chosen]


def figure_problem(
    seed: int = 0, size: MixtureSize = FIGURE, device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Return the points and the initial centers, random points, in float64."""
    points, centers = draw_mixture(size, torch.Generator().manual_seed(seed))
    return points.double().to(device), centers.double().to(device)


# The seed of fig:numerical_validation in the authors' notebook, for all random numbers.
AUTHORS_SEED = 5487


def authors_problem() -> tuple[Tensor, Tensor]:
    """Return the points of fig:numerical_validation and its initial centers, in float32.

    Made again from what the authors' notebook states: five means, uniform in [0, 1]^2; around each
    2,000 draws with variance 0.01, one by one; each column scaled to [0, 1]; the rows shuffled; and
    the first five of them as centers.
    """
    generator = torch.Generator().manual_seed(AUTHORS_SEED)
    k, d, each = FIGURE.clusters, FIGURE.dimensions, FIGURE.points // FIGURE.clusters
    means = torch.rand(k, 1, d, generator=generator)
    # one by one: of 16 and more normal numbers torch draws others than of a few at a time
    noise = torch.stack([torch.randn(d, generator=generator) for _ in range(k * each)])
    points = (means + VARIANCE**0.5 * noise.reshape(k, each, d)).reshape(k * each, d)
    low, high = points.aminmax(dim=0)
    points = ((points - low) / (high - low))[torch.randperm(len(points), generator=generator)]
    return points, points[:k].clone()


def run_as_authors(points: Tensor, centers: Tensor) -> History:
    """Return the run of the authors' notebook, which is soft k-means in the dtype of the points.

    Self-attention is the identity, the decoder's cross-attention is linear, and gamma stands in the
    encoder's cross-attention.
    """
    history, assignments = [centers], []
    for _ in range(N_LAYERS):
        shares = (-GAMMA * squared_distances(points, history[-1])).softmax(dim=1)  # (n, k)
        assignments.append(shares)
        history.append((shares / shares.sum(dim=0)).mT @ points)
    return History(torch.stack(history).numpy(), torch.stack(assignments).numpy())


def run_lloyd(points: Tensor, centers: Tensor, n_layers: int = N_LAYERS) -> History:
    """Return the history of Lloyd's algorithm."""
    return run(Lloyd(), points.cpu().numpy(), centers.cpu().numpy(), n_layers)


def run_in_encoder_cross(points: Tensor, centers: Tensor) -> Trace:
    """Return the run with gamma where thm:l2-clus eu has it: in the encoder's cross-attention.

    The decoder's cross-attention is linear, and the self-attentions are in the limit.
    """
    circuit = Circuit(recipes.soft(GAMMA), points.shape[1], len(centers))
    return circuit(points, centers, N_LAYERS)


def run_in_every_head(points: Tensor, centers: Tensor) -> Trace:
    """Return the run with gamma in all four attentions; ITSELF is kept.

    Self-attention is then not the identity, so it does not cancel the residual.
    """
    recipe = recipes.lloyd()
    # lloyd() has limiting soft-max in all heads; the text does not say which of them are finite
    for slot, head in recipe.heads.items():
        finite = replace(head, activation=Softmax(GAMMA))
        recipe = replace(recipe, **{slot: finite})  # type: ignore[arg-type]
    circuit = Circuit(recipe, points.shape[1], len(centers))
    return circuit(points, centers, FEWER_LAYERS, names_filter=(ITSELF,))


def median_weight_on_itself(trace: Trace) -> float:
    """Return a point's median weight on itself in self-attention; 1 if that is the identity."""
    return trace[ITSELF].diagonal().median().item()


@dataclass(frozen=True)
class LloydDifference:
    """The difference of a run to Lloyd's algorithm.

    Attributes
    ----------
    centers : float
        The largest difference of a coordinate in any layer, as a part of the picture's side.
    labels : list of int
        The number of labels that differ in each layer.
    of : int
        The number of all labels of a layer.
    """

    centers: float
    labels: list[int]
    of: int

    @property
    def same_to_the_eye(self) -> bool:
        """True if the paths of the centers look the same."""
        return self.centers < TO_THE_EYE

    @property
    def same_final_labels(self) -> bool:
        """True if no label differs in the last layer."""
        return self.labels[-1] == 0

    @property
    def same_labels(self) -> bool:
        """True if no label differs in any layer."""
        return not any(self.labels)


def as_array(values: np.ndarray | Tensor) -> np.ndarray:
    """Return the values of a trace or of a history as an array."""
    return np.asarray(values.cpu() if isinstance(values, Tensor) else values)


def lloyd_difference(lloyd: History, found: History | Trace, side: int = 1) -> LloydDifference:
    """Return the difference of a run to Lloyd's; `side`: of the square that holds the points."""
    centers, labels = as_array(found.centers), as_array(found.labels)
    away = np.abs(centers - lloyd.centers).max() / side
    differ = (labels != lloyd.labels).sum(axis=1).tolist()
    return LloydDifference(float(f"{away:.4g}"), differ, lloyd.labels.shape[1])
