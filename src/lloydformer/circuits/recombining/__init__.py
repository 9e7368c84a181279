"""Recombination as a circuit: two solutions are merged to a child, and the best two are kept.

docs/recombining-circuit.md derives the sub-layers.
"""

from lloydformer.circuits.recombining.sublayers import bear, enter, merge, step, unite
from lloydformer.circuits.recombining.subspaces import COST, INNER, MASS
from lloydformer.circuits.relocating.sublayers import grow, keep, prune, settle
from lloydformer.circuits.stages import PairedCounts, Staged
from lloydformer.circuits.tokens import plain
from lloydformer.numerics.checks import check_count

__all__ = ["COST", "MASS", "recombining"]

_OF_CHILD = {"centers": "child", "assigned": "placed"}
"""Sets of tokens of a relocation, and what they are called in that of a child."""


def recombining(
    n_moved: int = 5, n_draws: int = 3, n_steps: int = 2, margin: float = 1e-6, same: float = 1e-6
) -> Staged:
    r"""Return the recipe that makes a child of two solutions, and keeps the two best of the three.

    The circuit has 2k centers, those of two solutions side by side: make it with
    ``n_clusters=2 * k``, and pass the centers of both. A layer merges the cheapest pair of the
    centers (Ward's cost) k times, relocates the child once, and does steps of Lloyd's algorithm.
    If the child is better than one of the solutions, it takes the place of the worse. After a
    layer the first k centers are the better solution, whose objective never rises. A layer needs
    a seed.

    Parameters
    ----------
    n_moved : int, default=5
        Number of clusters that the relocation of the child splits; at most k.
    n_draws : int, default=3
        Number of random splits of each of them; the best one is used.
    n_steps : int, default=2
        Number of steps of Lloyd's algorithm after the relocation.
    margin : float, default=1e-6
        Fraction by which the objective must fall for the relocation to be kept.
    same : float, default=1e-6
        A child whose objective differs by no more than this fraction from that of a solution
        counts as the same, and is not taken.

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
    relocating : Relocations of one solution.
    lloydformer.RelocatingKMeans : The estimator; from effort "medium" on it recombines a pool.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0], [30.0], [31.0]])
    >>> one = torch.tensor([[0.0], [1.0], [10.5], [25.5]])  # each is wrong at one end
    >>> other = torch.tensor([[5.5], [20.5], [30.0], [31.0]])
    >>> circuit = lf.Circuit(lf.recipes.recombining(n_moved=1), n_features=1, n_clusters=8)
    >>> trace = circuit(points, torch.cat([one, other]), n_layers=1, seed=0)
    >>> trace.centers[1, :4].flatten().tolist()
    [0.5, 10.5, 20.5, 30.5]
    """
    counts = PairedCounts(
        spares=check_count("n_moved", n_moved),
        draws=check_count("n_draws", n_draws),
        candidates=64,
    )
    steps = range(1, check_count("n_steps", n_steps, least=0) + 1)
    for name, value in (("margin", margin), ("same", same)):
        if not 0 <= value < 1:
            raise ValueError(f"{name}: found {value!r}; pass a fraction from 0 to below 1")
    relocation = [part.renamed(_OF_CHILD) for part in (grow(2.0), settle(), prune(), keep(margin))]
    return Staged(
        name="recombining",
        tokens=plain(),
        inner=INNER,
        counts=counts,
        sublayers=(unite(), merge(), bear(), *relocation, *map(step, steps), enter(same)),
        algorithm="Recombining k-means",
        appendix="docs/recombining-circuit.md",
    )
