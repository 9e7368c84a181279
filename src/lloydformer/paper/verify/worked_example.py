"""The paper's worked example: nine points, three centers (eq:clus-assign-ex-pre-lsa and after).

The text gives the scores alone. Points and centers with these scores exist in three dimensions, and
`locate_points` finds them.
"""

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import ortho_group
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.paper.verify.finding import equality

# A of eq:clus-assign-ex-pre-lsa, as the paper prints it: a row for each center.
SCORES = torch.tensor(
    [
        [-0.1, -0.2, -0.7, -0.2, -0.8, -0.3, -0.8, -0.2, -0.1],
        [-0.5, -0.1, -0.1, -0.4, -0.7, -0.2, -0.9, -0.3, -0.2],
        [-0.7, -0.3, -0.2, -0.6, -0.1, -0.3, -0.1, -0.7, -0.7],
    ],
    dtype=torch.float64,
)

# The points of each cluster, counted from 0 (the text after eq:clus-assign-ex-post-lsa).
MEMBERS = ((0, 3, 7, 8), (1, 2, 5), (4, 6))

# Three centers at whose distances from each other all nine points exist, found by hand.
CENTERS = torch.tensor([[0, 0, 0], [0.7, 0, 0], [0.52, 0.66, 0]], dtype=torch.float64)

# Number of rotated and shifted copies of the example.
N_PLACES = 20


def locate_points() -> tuple[Float[Tensor, "n 3"], Float[Tensor, "k 3"]]:
    """Return points and centers whose negative squared distances are the scores.

    |x - c|^2 - |x|^2 = |c|^2 - 2 <x, c> is linear in x, which gives x in the plane of the centers.
    The height above that plane makes up the rest of |x|^2.
    """
    squares = -SCORES
    flat = CENTERS[1:, :2]
    sides = flat.square().sum(dim=1, keepdim=True) + squares[0] - squares[1:]  # 2 <x, c>
    plane = torch.linalg.solve(2 * flat, sides).mT
    height = (squares[0] - plane.square().sum(dim=1)).sqrt()
    return torch.cat([plane, height[:, None]], dim=1), CENTERS


def shares() -> Float[Tensor, "k n"]:
    """Return sigma(A) of eq:clus-assign-ex-post-lsa: 1 where a point belongs to a cluster."""
    shares = torch.zeros_like(SCORES)
    for cluster, rows in enumerate(MEMBERS):
        shares[cluster, list(rows)] = 1.0
    return shares


def weights() -> Float[Tensor, "n k"]:
    """Return sigma(B) of eq:clus-center-lsa: 1/4, 1/3 and 1/2 in the rows of the members."""
    return shares().mT / torch.tensor([len(rows) for rows in MEMBERS], dtype=torch.float64)


def _run_layer(rng: np.random.Generator) -> tuple[Trace, Tensor]:
    """Run a layer on the example, turned and shifted in a space of 3 to 11 dimensions.

    Returns the trace and the points.
    """
    d = int(rng.integers(3, 12))
    # the circuit must not depend on the place: any rotation into d dimensions, and any shift
    turn = torch.tensor(ortho_group.rvs(d, random_state=rng))[:3]
    shift = torch.tensor(rng.normal(size=d))
    points, centers = (rows @ turn + shift for rows in locate_points())
    circuit = Circuit(recipes.lloyd(ties="average"), d, len(centers))
    return circuit(points, centers, n_layers=1, names_filter="*"), points


def _difference(found: Tensor, expected: Tensor) -> float:
    return (found - expected).abs().max().item()


@equality(
    "eq:clus-assign-ex-pre-lsa",
    "nine points in space have the scores A",
    N_PLACES,
    "the text gives no points; those here have three dimensions",
)
def example_scores(rng: np.random.Generator) -> float:
    """The encoder's cross-attention has the scores A."""
    trace, _ = _run_layer(rng)
    return _difference(trace["layers.0.encoder_cross.scores"].mT, SCORES)


@equality("eq:clus-assign-ex-post-lsa", "limiting soft-max of A assigns the points", N_PLACES)
def example_assignment(rng: np.random.Generator) -> float:
    """Limiting soft-max of A is the assignment, {1, 4, 8, 9}, {2, 3, 6}, {5, 7}."""
    trace, _ = _run_layer(rng)
    return _difference(trace["layers.0.encoder_cross.attention"].mT, shares())


@equality("eq:clus-center-lsa", "limiting soft-max of B has 1/4, 1/3 and 1/2", N_PLACES)
def example_weights(rng: np.random.Generator) -> float:
    """The decoder's scores are B, the transpose, and its attention divides by the counts."""
    trace, _ = _run_layer(rng)
    scores = trace["layers.0.decoder_cross.scores"].mT
    attention = trace["layers.0.decoder_cross.attention"].mT
    return max(_difference(scores, shares().mT), _difference(attention, weights()))


@equality("eq:clus-center-comp", "X times it has the means of the clusters", N_PLACES)
def example_centers(rng: np.random.Generator) -> float:
    """X sigma(B) holds the means of the three clusters."""
    trace, points = _run_layer(rng)
    means = torch.stack([points[list(rows)].mean(dim=0) for rows in MEMBERS])
    return _difference(trace.centers[-1], means)


WORKED_EXAMPLE = (example_scores, example_assignment, example_weights, example_centers)
