"""What is learned: the k-means objective, smoothed so that every center has a gradient."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations import Sparsemax

SMOOTHINGS = ("softmax", "sparsemax", "exact")


def expanded_distances(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b n k"]:
    """|x|^2 - 2xc + |c|^2: one product of matrices, for data in [0, 1] that need no more."""
    norms = points.square().sum(dim=-1, keepdim=True) + centers.square().sum(dim=-1).unsqueeze(-2)
    return (norms - 2 * points @ centers.mT).clamp(min=0)


def smoothed_objective(
    points: Float[Tensor, "*b n d"],
    centers: Float[Tensor, "*b k d"],
    temperature: float | Tensor = 0.1,
    smoothing: str = "softmax",
) -> Float[Tensor, "*b"]:
    r"""$\sum_i \sum_j p_{ij} \lVert x_i - c_j \rVert^2$ with $p_i = \sigma(-d_i / \lambda)$.

    That is eq:sm-kmeans for soft-max; sparsemax gives far centers no weight at all, and "exact"
    is $\sum_i \min_j$ (eq:ex-kmeans), whose gradient exists almost everywhere. temperature is the
    paper's $\lambda$, or one for each problem of a batch.
    """
    if smoothing not in SMOOTHINGS:
        raise ValueError(f"smoothing: found {smoothing!r}; pass one of {', '.join(SMOOTHINGS)}")
    squares = expanded_distances(points, centers)
    if smoothing == "exact":
        return squares.amin(dim=-1).sum(dim=-1)
    scores = -squares / temperature
    weights = scores.softmax(dim=-1) if smoothing == "softmax" else Sparsemax()(scores)
    return (weights * squares).sum(dim=(-2, -1))


def relative_objective(
    points: Float[Tensor, "*b n d"],
    centers: Float[Tensor, "*b k d"],
    reference: Float[Tensor, "*b"],
) -> Float[Tensor, "*b"]:
    """The exact objective of each task divided by another's, usually one Lloyd step's."""
    with torch.no_grad():
        return smoothed_objective(points, centers, smoothing="exact") / reference
