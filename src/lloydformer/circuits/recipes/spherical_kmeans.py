"""Spherical k-means."""

from dataclasses import replace
from functools import cache
from typing import Literal

from lloydformer.circuits.activations import Ties
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd
from lloydformer.circuits.scores import DotProduct


@cache
def spherical(norm: Literal["rms", "layer"] = "rms", ties: Ties = "first") -> Recipe:
    """Return the recipe of spherical k-means: dot products of unit vectors, and a norm.

    Theorem thm:sp-clus ip. Points must be unit vectors. The initial centers need not be: a point
    chooses by the dot product, and centers are unit vectors after the first layer.

    Parameters
    ----------
    norm : {"rms", "layer"}, default="rms"
        Normalisation of the new centers. "layer" needs points whose coordinates sum to zero, see
        `lloydformer.circuits.norms.zero_sum`; "rms" does not (rem:lnorm-rmsnorm).
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe.

    Raises
    ------
    ValueError
        If `norm` is neither "rms" nor "layer".

    See Also
    --------
    lloyd : Euclidean k-means.
    lloydformer.SphericalKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, -1.0]])
    >>> circuit = lf.Circuit(lf.recipes.spherical(), n_features=2, n_clusters=2)
    >>> circuit(points, points[[0, 2]], n_layers=1).labels.tolist()
    [[0, 0, 1]]
    """
    if norm not in ("rms", "layer"):
        raise ValueError(f'norm: found {norm!r}; pass "rms" or "layer"')
    base = lloyd(ties)
    return replace(
        base,
        name="spherical",
        encoder_cross=replace(base.encoder_cross, score=DotProduct()),
        encoder_self=replace(base.encoder_self, score=DotProduct()),
        norm=RMSNorm() if norm == "rms" else LayerNorm(),
        algorithm="Lloyd's algorithm / Spherical k-means",
        appendix="sec:methods:spherical",
    )
