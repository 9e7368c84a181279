"""The recipes: the seven rows of the table tab:comp-alg, and eight beyond it.

Most are the base recipe `lloyd()` with a part replaced; the difference is the algorithm. Begin
with `kmeans`. The tuples below are the only lists of recipes; other lists are derived from them.
`softened` and `straight_through` make the queries and keys of any recipe trainable;
`with_dot_products` and `on_sphere` are the variations that the table marks with a star.
`lloyd_rectified` makes a recipe for given data.
"""

from collections.abc import Callable

from lloydformer.circuits.gradients import softened, straight_through
from lloydformer.circuits.missing import missing
from lloydformer.circuits.mixture import mixture
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.categories import prototypes
from lloydformer.circuits.recipes.constrained_kmeans import constrained
from lloydformer.circuits.recipes.free_weights import learned
from lloydformer.circuits.recipes.kmeans import (
    lloyd,
    lloyd_binary,
    lloyd_dot,
    lloyd_rectified,
)
from lloydformer.circuits.recipes.robust_kmeans import medoids, robust, robust_lifted, trimmed
from lloydformer.circuits.recipes.soft_kmeans import soft, soft_dot
from lloydformer.circuits.recipes.spherical_kmeans import spherical
from lloydformer.circuits.recipes.variants import on_sphere, with_dot_products
from lloydformer.circuits.recombining import recombining
from lloydformer.circuits.relocating import medoids_swap, relocating
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.symmetric import symmetric

__all__ = [
    "constrained",
    "learned",
    "lloyd",
    "lloyd_binary",
    "lloyd_dot",
    "lloyd_rectified",
    "medoids",
    "medoids_swap",
    "missing",
    "mixture",
    "on_sphere",
    "prototypes",
    "recombining",
    "relocating",
    "robust",
    "robust_lifted",
    "soft",
    "soft_dot",
    "softened",
    "spherical",
    "straight_through",
    "symmetric",
    "table",
    "trimmed",
    "with_dot_products",
]

# Makers of the rows of the table tab:comp-alg, in its order.
IN_TABLE: tuple[Callable[..., Recipe], ...]
IN_TABLE = (lloyd, lloyd_dot, spherical, soft, trimmed, robust, medoids)

# Makers of recipes that are constructed too, but are not in the paper's table.
BEYOND_TABLE: tuple[Callable[..., AnyRecipe], ...]
BEYOND_TABLE = (soft_dot, robust_lifted, lloyd_binary, relocating, medoids_swap)

# Makers of recipes whose numbers or weights come from training.
TRAINED: tuple[Callable[..., Recipe], ...] = (symmetric, learned)

# Makers of all recipes, by the name of the recipe.
MAKERS: dict[str, Callable[..., AnyRecipe]] = {
    make.__name__: make for make in (*IN_TABLE, *BEYOND_TABLE, *TRAINED)
}


# Makers of recipes for two solutions side by side, 2k centers; commands leave these out.
OF_PAIRS: tuple[Callable[..., AnyRecipe], ...] = (recombining,)

# Makers of recipes whose components have more parameters than a center. The explorer and
# `lloydformer.check`, which pass on centers alone, do not have them.
MIXTURES: tuple[Callable[..., Recipe], ...] = (mixture,)

# Makers of recipes whose assignment depends on all points together, because the sizes of clusters
# have bounds. The explorer computes the attention of each point by itself and does not have them.
BOUNDED: tuple[Callable[..., Recipe], ...] = (constrained,)

# Makers of recipes for rows of tables: with missing values, and with categories. The explorer and
# `lloydformer.check`, whose points are complete numbers, do not have them.
OF_TABLES: tuple[Callable[..., Recipe], ...] = (missing, prototypes)

# All of them by name, for lists of recipes.
NAMED: dict[str, Callable[..., AnyRecipe]]
NAMED = {**MAKERS, **{make.__name__: make for make in (*MIXTURES, *BOUNDED, *OF_TABLES)}}

# Makers of recipes for given points; commands leave these out.
OF_POINTS: tuple[Callable[..., AnyRecipe], ...] = (lloyd_rectified,)

# Functions that take a recipe and return another one.
CHANGES: tuple[Callable[..., AnyRecipe], ...] = (
    softened,
    straight_through,
    with_dot_products,
    on_sphere,
)


def table() -> tuple[Recipe, ...]:
    """Return the recipes of the paper's table tab:comp-alg, in its order.

    Returns
    -------
    tuple of Recipe
        Seven recipes with their default parameters.

    See Also
    --------
    lloydformer.Recipe.row : The row of one recipe.

    Examples
    --------
    >>> import lloydformer as lf
    >>> [recipe.name for recipe in lf.recipes.table()]
    ['lloyd', 'lloyd_dot', 'spherical', 'soft', 'trimmed', 'robust', 'medoids']
    """
    return tuple(make() for make in IN_TABLE)
