"""The paper's worked example: nine points, three centers (eq:clus-assign-ex-pre-lsa and after).

The text gives the scores alone. Points and centers with these scores exist in three dimensions, and
`located` finds them.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import ortho_group
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.verify.finding import Finding, Statement, equality

SCORES = torch.tensor(
    [
        [-0.1, -0.2, -0.7, -0.2, -0.8, -0.3, -0.8, -0.2, -0.1],
        [-0.5, -0.1, -0.1, -0.4, -0.7, -0.2, -0.9, -0.3, -0.2],
        [-0.7, -0.3, -0.2, -0.6, -0.1, -0.3, -0.1, -0.7, -0.7],
    ],
    dtype=torch.float64,
)
"""A of eq:clus-assign-ex-pre-lsa, as the paper prints it: a row for each center."""

MEMBERS = ((0, 3, 7, 8), (1, 2, 5), (4, 6))
"""The points of each cluster, counted from 0 (the text after eq:clus-assign-ex-post-lsa)."""

CENTERS = torch.tensor(
    [[0.0, 0.0, 0.0], [0.7, 0.0, 0.0], [0.52, 0.66, 0.0]], dtype=torch.float64
)  # fmt: skip
"""Three centers at whose distances from each other all nine points exist."""

N_PLACES = 20
"""Number of rotated and shifted copies of the example."""


def located() -> tuple[Float[Tensor, "n 3"], Float[Tensor, "k 3"]]:
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


def _placed(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return the example turned and shifted in a space of 3 to 11 dimensions."""
    d = int(rng.integers(3, 12))
    turn = torch.tensor(ortho_group.rvs(d, random_state=rng))[:3]
    shift = torch.tensor(rng.normal(size=d))
    points, centers = (rows @ turn + shift for rows in located())
    return points, centers


def _layer(points: Tensor, centers: Tensor) -> Trace:
    circuit = Circuit(recipes.lloyd(ties="average"), points.shape[1], len(centers))
    return circuit(points, centers, n_layers=1, keep="*")


def _worst(rng: np.random.Generator, off: Callable[[Trace, Tensor], float]) -> list[float]:
    """Return the deviation in every place; `off` takes the trace and the points."""
    places = [_placed(rng) for _ in range(N_PLACES)]
    return [off(_layer(points, centers), points) for points, centers in places]


def _away(found: Tensor, expected: Tensor) -> float:
    return (found - expected).abs().max().item()


def example_scores(rng: np.random.Generator) -> Finding:
    """The encoder's cross-attention has the scores A."""
    found = _worst(
        rng, lambda trace, _: _away(trace["layers.0.encoder_cross.scores"].mT, SCORES)
    )  # fmt: skip
    return equality("eq:clus-assign-ex-pre-lsa", "nine points in space have the scores A", found,
                    "the text gives no points; those here have three dimensions")  # fmt: skip


def example_assignment(rng: np.random.Generator) -> Finding:
    """Limiting soft-max of A is the assignment, {1, 4, 8, 9}, {2, 3, 6}, {5, 7}."""
    found = _worst(
        rng, lambda trace, _: _away(trace["layers.0.encoder_cross.attention"].mT, shares())
    )
    return equality(
        "eq:clus-assign-ex-post-lsa", "limiting soft-max of A assigns the points", found
    )


def example_weights(rng: np.random.Generator) -> Finding:
    """The decoder's scores are B, the transpose, and its attention divides by the counts."""

    def off(trace: Trace, points: Tensor) -> float:
        scores = trace["layers.0.decoder_cross.scores"].mT
        attention = trace["layers.0.decoder_cross.attention"].mT
        return max(_away(scores, shares().mT), _away(attention, weights()))

    return equality("eq:clus-center-lsa", "limiting soft-max of B has 1/4, 1/3 and 1/2",
                    _worst(rng, off))  # fmt: skip


def example_centers(rng: np.random.Generator) -> Finding:
    """X sigma(B) holds the means of the three clusters."""

    def off(trace: Trace, points: Tensor) -> float:
        means = torch.stack([points[list(rows)].mean(dim=0) for rows in MEMBERS])
        return _away(trace.centers[-1], means)

    return equality("eq:clus-center-comp", "X times it has the means of the clusters",
                    _worst(rng, off))  # fmt: skip


WORKED_EXAMPLE: tuple[Statement, ...] = (
    example_scores, example_assignment, example_weights, example_centers,
)  # fmt: skip
