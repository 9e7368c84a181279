"""K-means with bounds on the sizes of its clusters: Sinkhorn attention in the encoder."""

from dataclasses import replace
from typing import Any

from lloydformer.circuits.activations import LimitingSinkhorn, Linear, Sinkhorn
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd
from lloydformer.numerics.transport import read_sizes


def constrained(
    size_min: Any = None,
    size_max: Any = None,
    inverse_temperature: float | None = None,
    n_rounds: int = 100,
) -> Recipe:
    r"""Return the recipe of k-means with bounds on the number of points of each cluster.

    One part of `lloyd()` is replaced, the activation of the encoder's cross-attention: Sinkhorn
    attention normalises the rows of $\exp(-\gamma \lVert x_i - c_j \rVert^2)$ to 1 and its columns
    to the sizes, by turns. In the limit of large $\gamma$ it is a transport problem, in which each
    point has one cluster.

    Parameters
    ----------
    size_min, size_max : int, float or sequence of them, default=None
        Bounds of the sizes: numbers of points (int), or fractions of all points (float; rounded
        down in `size_min`, up in `size_max`). One for all clusters or one for each; None: no bound.
    inverse_temperature : float or None, default=None
        The inverse temperature $\gamma$, which multiplies the squared distance. None: the limit.
    n_rounds : int, default=100
        Rounds of Sinkhorn's iteration; not used in the limit, which is exact.

    Returns
    -------
    Recipe
        The recipe. With a temperature the centers are means weighted by shares, as in `soft`.

    Raises
    ------
    ValueError
        If a bound is neither a number of points nor a fraction.

    See Also
    --------
    soft : Without bounds, at a finite temperature.
    lloydformer.ConstrainedKMeans : The estimator; it uses the limit.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [9.0]], dtype=torch.float64)
    >>> circuit = lf.Circuit(lf.recipes.constrained(2, 2), n_features=1, n_clusters=2)
    >>> circuit(points, points[[0, 3]], n_layers=1).labels.tolist()
    [[0, 0, 1, 1]]
    """
    base, sizes = lloyd(), (read_sizes("size_min", size_min), read_sizes("size_max", size_max))
    encoder, decoder = base.encoder_cross, base.decoder_cross
    if inverse_temperature is None:
        encoder = replace(encoder, activation=LimitingSinkhorn(*sizes))
    else:
        activation = Sinkhorn(inverse_temperature, *sizes, n_rounds=n_rounds)
        encoder, decoder = (
            replace(encoder, activation=activation),
            replace(decoder, activation=Linear()),
        )
    return replace(
        base,
        name="constrained",
        encoder_cross=encoder,
        decoder_cross=decoder,
        algorithm="k-means with bounded sizes",
        appendix="docs/cluster-sizes.md",
    )
