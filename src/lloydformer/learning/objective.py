"""The training loss: the k-means objective, smoothed so that every center has a gradient."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations import Sparsemax
from lloydformer.numerics.checks import require

SMOOTHINGS = ("softmax", "sparsemax", "exact")


def expanded_distances(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b n k"]:
    """Return squared distances as |x|^2 - 2xc + |c|^2: one product of matrices.

    Less exact than differences, since the terms cancel where a center is close to a point;
    accurate enough for data in [0, 1].
    """
    norms = points.square().sum(dim=-1, keepdim=True) + centers.square().sum(dim=-1).unsqueeze(-2)
    return (norms - 2 * points @ centers.mT).clamp(min=0)  # rounding may go below 0


def smoothed_objective(
    points: Float[Tensor, "*b n d"],
    centers: Float[Tensor, "*b k d"],
    temperature: float | Tensor = 0.1,
    smoothing: str = "softmax",
) -> Float[Tensor, "*b"]:
    r"""Compute the smoothed k-means objective, the loss of training.

    $\sum_i \sum_j p_{ij} \lVert x_i - c_j \rVert^2$ with $p_i = \sigma(-d_i / \lambda)$, where
    $d_i$ are the squared distances of point i (eq:sm-kmeans).

    Parameters
    ----------
    points : Tensor of shape (\*b, n, d)
        Points, with any batch axes.
    centers : Tensor of shape (\*b, k, d)
        Centers.
    temperature : float or Tensor, default=0.1
        The paper's lambda; a tensor that broadcasts to (\*b, n, k) gives one for each problem.
    smoothing : {"softmax", "sparsemax", "exact"}, default="softmax"
        The activation that gives the weights p. Sparsemax gives far centers no weight. "exact" is
        the k-means objective itself, the sum of the squared distances to the nearest center
        (eq:ex-kmeans), whose gradient exists almost everywhere.

    Returns
    -------
    Tensor of shape (\*b)
        The objective of each problem.

    Raises
    ------
    ValueError
        If `smoothing` is not known.

    See Also
    --------
    Settings : Chooses the smoothing of training.
    Run : Chooses the temperature of a run.

    Examples
    --------
    >>> import torch
    >>> import lloydformer as lf
    >>> points, centers = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [3.0]])
    >>> lf.learning.smoothed_objective(points, centers, smoothing="exact").item()
    1.0
    >>> round(lf.learning.smoothed_objective(points, centers, temperature=1.0).item(), 3)
    1.143
    """
    known = smoothing in SMOOTHINGS
    require(known, "smoothing", smoothing, f"pass one of {', '.join(SMOOTHINGS)}")
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
    """Return the exact objective of each task divided by a reference, usually Lloyd's."""
    with torch.no_grad():
        return smoothed_objective(points, centers, smoothing="exact") / reference
