"""Soft k-means: by distances, and by dot products of lifted tokens."""

from dataclasses import replace

from lloydformer.circuits.activations import Linear, Softmax
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd, lloyd_dot


def soft(inverse_temperature: float = 1.0) -> Recipe:
    """Return the recipe of soft k-means.

    Algorithm alg:soft-kmeans: soft-max in the encoder, linear attention in the decoder.

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The paper's gamma. It multiplies the squared distance.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    soft_dot : The same algorithm with dot-product scores.
    lloydformer.SoftKMeans : The estimator.

    Examples
    --------
    >>> import math, torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> circuit = lf.Circuit(lf.recipes.soft(math.log(2)), n_features=1, n_clusters=2)
    >>> trace = circuit(points, points, n_layers=1)  # distances 0 and 1 weigh 1 and 1/2
    >>> [[round(share, 4) for share in point] for point in trace.assignments[0].tolist()]
    [[0.6667, 0.3333], [0.3333, 0.6667]]
    """
    return _soften(lloyd(), "soft", inverse_temperature)


def soft_dot(inverse_temperature: float = 1.0) -> Recipe:
    """Return the recipe of soft k-means with dot-product scores on lifted tokens.

    Stated after theorem thm:l2-clus ip.

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The paper's gamma. It multiplies the squared distance.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    soft : The same algorithm with Euclidean scores.
    lloyd_dot : Lloyd's algorithm with dot-product scores.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.recipes.soft_dot().row()["Enc-CA"]
    '⟨,⟩-SMA'
    """
    return _soften(lloyd_dot(), "soft_dot", inverse_temperature)


def _soften(base: Recipe, name: str, inverse_temperature: float) -> Recipe:
    return replace(
        base,
        name=name,
        encoder_cross=replace(base.encoder_cross, activation=Softmax(inverse_temperature)),
        decoder_cross=replace(base.decoder_cross, activation=Linear()),
        algorithm="*Soft k-means",
        stated=None,  # the appendix of the base holds for this construction as well
    )
