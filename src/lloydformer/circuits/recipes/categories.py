"""K-modes and k-prototypes: Lloyd's algorithm on one-hot codes, and a block-wise argmax."""

from dataclasses import replace
from functools import cache

from lloydformer.circuits.norms import BlockArgmax
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import lloyd


@cache
def prototypes(sizes: tuple[int, ...] = (2, 2), n_numbers: int = 0) -> Recipe:
    r"""Return the recipe of k-prototypes; without numbers it is k-modes.

    A point is `n_numbers` numbers, and then a one-hot code for each category. Two codes that differ
    are 2 apart in squared distance, so numbers scaled by $\sqrt{2 / \gamma}$ make a category that
    differs count $\gamma$. The norm replaces each block of a center, the shares of the categories
    in its cluster, by the code of the largest one: the mode. It takes the place of the norm of
    `spherical`.

    Parameters
    ----------
    sizes : tuple of int, default=(2, 2)
        The number of values of each category.
    n_numbers : int, default=0
        The number of columns of numbers, which come first.

    Returns
    -------
    Recipe
        The recipe; circuits of it have ``n_numbers + sum(sizes)`` features.

    Raises
    ------
    ValueError
        If a size or `n_numbers` is not a whole number that is large enough.

    See Also
    --------
    spherical : The recipe with another norm.
    lloydformer.KPrototypes : The estimator, which encodes tables.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> codes = torch.tensor([[1.0, 0, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    >>> circuit = lf.Circuit(lf.recipes.prototypes((2, 2)), n_features=4, n_clusters=2)
    >>> circuit(codes, codes[[0, 3]], n_layers=2).centers[-1].tolist()
    [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    """
    return replace(
        lloyd(),
        name="prototypes",
        norm=BlockArgmax(int(n_numbers), tuple(sizes)),
        algorithm="k-modes / k-prototypes",
        appendix="docs/categories.md",
    )
