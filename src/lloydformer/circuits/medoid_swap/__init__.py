"""An exchange of medoids as a circuit: candidates are drawn, and the best exchange is made.

docs/medoids.md derives the stages.
"""

from lloydformer.circuits.medoid_swap.stages import exchange
from lloydformer.circuits.relocating.subspaces import INNER
from lloydformer.circuits.stages import Counts, Staged
from lloydformer.circuits.tokens import plain
from lloydformer.numerics.checks import check_count

__all__ = ["medoids_swap"]


def medoids_swap(n_draws: int = 4, margin: float = 1e-9) -> Staged:
    r"""Return the recipe that exchanges a medoid with a drawn point if this lowers the loss.

    Candidates are drawn without replacement in proportion to their squared distance to their
    medoid. For every candidate and every medoid, the loss with the candidate in place of the medoid
    is computed; the lowest of all is chosen, unless the loss is as low as it was. A layer of this
    recipe needs a seed, and centers that are points.

    Parameters
    ----------
    n_draws : int, default=4
        Number of candidates; at most the number of points. `KMedoids` draws 32.
    margin : float, default=1e-9
        Fraction by which the loss must fall.

    Returns
    -------
    Staged
        The recipe.

    Raises
    ------
    ValueError
        If a number is not in its range.

    See Also
    --------
    medoids : The paper's sampler.
    relocating : Relocations of means.
    lloydformer.KMedoids : The estimator, whose search makes these exchanges among other moves.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> start = torch.tensor([[0.0], [1.0]])  # both in one cluster
    >>> circuit = lf.Circuit(lf.recipes.medoids_swap(n_draws=6), n_features=1, n_clusters=2)
    >>> circuit(points, start, n_layers=2, seed=0).objective.tolist()
    [303.0, 4.0, 4.0]
    """
    if not 0 <= margin < 1:
        raise ValueError(f"margin: found {margin!r}; pass a fraction from 0 to below 1")
    return Staged(
        name="medoids_swap",
        tokens=plain(),
        inner=INNER,
        counts=Counts(spares=1, draws=check_count("n_draws", n_draws), candidates=1),
        sublayers=(exchange(margin),),
        algorithm="k-medoids by exchanges",
        appendix="docs/medoids.md",
    )
