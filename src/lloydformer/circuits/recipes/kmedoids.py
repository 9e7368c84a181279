"""Randomised k-medoids."""

from dataclasses import replace

from lloydformer.circuits.activations import Gumbel, Ties
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd
from lloydformer.circuits.recipes.separated_head import separated_head


def medoids(separation: float | None = 100.0, ties: Ties = "first") -> Recipe:
    """Return the recipe of randomised k-medoids.

    Algorithm alg:rnd-kmeds: Gumbel attention draws a point for each center. A circuit of this
    recipe needs a seed.

    Parameters
    ----------
    separation : float or None, default=100.0
        The paper's delta. A point of another cluster is exp(-2 * separation) times as likely to
        be drawn as a point of the own cluster at the same distance. None chooses it from the data
        so that points of other clusters are never drawn.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    lloydformer.circuits.activations.Gumbel : The activation that draws.
    lloydformer.KMedoids : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [9.0], [10.0]])
    >>> circuit = lf.Circuit(lf.recipes.medoids(), n_features=1, n_clusters=2)
    >>> trace = circuit(points, points[[0, 3]], n_layers=5, seed=0)
    >>> bool(torch.isin(trace.centers[-1], points).all())
    True
    """
    return replace(
        lloyd(ties),
        name="medoids",
        decoder_cross=separated_head(Gumbel(), separation),
        algorithm="*Euclidean k-medoids",
        appendix="sec:methods:new:kmeds",
    )
