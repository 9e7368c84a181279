"""Relocation as a circuit: clusters split, centers are removed, the better proposal is kept.

docs/relocating-circuit.md derives the sub-layers.
"""

from lloydformer.circuits.relocating.sublayers import grow, keep, prune, settle
from lloydformer.circuits.relocating.subspaces import GAIN, INNER, OBJECTIVE, UTILITY
from lloydformer.circuits.stages import Counts, Staged
from lloydformer.circuits.tokens import plain
from lloydformer.numerics.checks import check_count

__all__ = ["GAIN", "OBJECTIVE", "UTILITY", "relocating"]


def relocating(
    n_moved: int = 5,
    n_draws: int = 3,
    n_candidates: int = 64,
    sharpness: float = 2.0,
    margin: float = 1e-6,
) -> Staged:
    r"""Return the recipe that relocates some centers if this lowers the objective.

    A layer of this recipe stands between layers of `lloyd()` in a schedule, and needs a seed. It
    splits clusters, does a step of Lloyd's algorithm, removes as many centers one after the
    other, and does another step. The center removed is the one whose removal gives the lowest
    objective after a step of Lloyd's algorithm. The layer counts as 3 + n_moved layers in the
    numbering of the noise.

    Parameters
    ----------
    n_moved : int, default=5
        Number of clusters that are split, and of centers that are removed.
    n_draws : int, default=3
        Number of random splits of each cluster; the best one is used.
    n_candidates : int, default=64
        Number of centers that may be removed: those with the least utility.
    sharpness : float, default=2.0
        Clusters to split are drawn with probability proportional to their error to this power.
    margin : float, default=1e-6
        Fraction by which the objective must fall for the new centers to be kept.

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
    lloyd : The layers that come between relocations.
    lloydformer.RelocatingKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    >>> start = torch.tensor([[0.0], [1.0], [15.5]])  # a local minimum of k-means
    >>> circuit = lf.Circuit(lf.recipes.relocating(n_moved=1), n_features=1, n_clusters=3)
    >>> trace = circuit(points, start, n_layers=1, seed=0)
    >>> trace.objective.tolist()
    [101.0, 1.5]
    """
    counts = Counts(
        spares=check_count("n_moved", n_moved),
        draws=check_count("n_draws", n_draws),
        candidates=check_count("n_candidates", n_candidates),
    )
    if not 0 <= margin < 1:
        raise ValueError(f"margin: found {margin!r}; pass a fraction from 0 to below 1")
    return Staged(
        name="relocating",
        tokens=plain(),
        inner=INNER,
        counts=counts,
        sublayers=(grow(sharpness), settle(), prune(), keep(margin)),
        algorithm="Relocating k-means",
        appendix="docs/relocating-circuit.md",
    )
