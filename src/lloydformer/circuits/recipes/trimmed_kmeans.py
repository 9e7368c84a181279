"""Trimmed k-means."""

from dataclasses import replace

from lloydformer.circuits.activations import NormMax, Ties
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd
from lloydformer.circuits.recipes.separated_head import separated_head


def trimmed(keep: float = 0.95, separation: float | None = None, ties: Ties = "first") -> Recipe:
    """Return the recipe of trimmed k-means.

    Algorithm alg:trim-kmeans: norm-max in the decoder drops the farthest points of each cluster.

    Parameters
    ----------
    keep : float, default=0.95
        Fraction of each cluster that is kept. Of a cluster with m points, those not farther than
        the ceil(keep * m)-th nearest stay, ties included.
    separation : float or None, default=None
        The paper's delta: scores of points in other clusters are lowered by 2 * separation. It
        must exceed the largest squared distance of a point to its own center. None chooses it
        from the data.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    robust : Weights that decrease with the distance.
    lloydformer.TrimmedKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0]])
    >>> circuit = lf.Circuit(lf.recipes.trimmed(keep=0.75), n_features=1, n_clusters=1)
    >>> trace = circuit(points, points[:1], n_layers=1, keep="*.decoder_cross.attention")
    >>> (trace["layers.0.decoder_cross.attention"] > 0).tolist()  # the point at 10 is dropped
    [[True, True, True, False]]
    """
    return replace(
        lloyd(ties),
        name="trimmed",
        decoder_cross=separated_head(NormMax(keep=keep), separation),
        algorithm="*Trimmed k-means",
        appendix="sec:methods:robust",
    )
