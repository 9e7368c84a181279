"""Lloyd's algorithm: by distances, by dot products of lifted tokens, and with binary codes."""

from dataclasses import replace
from functools import cache

import torch
from numpy import ndarray
from torch import Tensor

from lloydformer.circuits.activations import LimitingSoftmax, Ties
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Average, Block, Projection, lifting, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM, Subspace
from lloydformer.circuits.tokens import Binary, lifted, plain

# The subspaces of a lifted position (def:lifted).
LIFTED = (POSITION, SQUARED_NORM, HALF)


@cache
def lloyd(ties: Ties = "first") -> Recipe:
    r"""Return the recipe of Lloyd's algorithm with Euclidean scores.

    Theorem thm:l2-clus-eu, algorithm alg:lloyds. Encoder self-attention is
    $\sigma_\infty(DP(X, X)) = I_n$ with value $-Y$: added to the residual it cancels the old
    assignment, and cross-attention writes the new one. The decoder does the same with the old
    centers (eq:trf-param-vals).

    Parameters
    ----------
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers: to the first of them, or
        split evenly over all of them, as in the paper.

    Returns
    -------
    Recipe
        The base recipe, from which most others are made by replacing a part.

    See Also
    --------
    lloyd_dot : The same algorithm with dot-product scores.
    lloyd_binary : The same algorithm with fewer dimensions.

    Examples
    --------
    >>> import lloydformer as lf
    >>> print(lf.recipes.lloyd().equation())
    X ← X + A₂[∞](X, C; I[x], I[x], I[y]) + A₂[∞](X, X; I[x], I[x], −I[y])
    C ← C + A⟨⟩[∞](C, X; I[y], I[y], I[x]) + A⟨⟩[∞](C, C; I[y], I[y], −I[x])
    """
    return Recipe(
        name="lloyd",
        tokens=plain(),
        encoder_cross=Head(
            Euclidean(), LimitingSoftmax(ties), on(POSITION), on(POSITION), on(ASSIGNMENT)
        ),
        encoder_self=Head(
            Euclidean(), LimitingSoftmax(), on(POSITION), on(POSITION), -on(ASSIGNMENT)
        ),
        decoder_cross=Head(
            DotProduct(), LimitingSoftmax(), on(ASSIGNMENT), on(ASSIGNMENT), on(POSITION)
        ),
        decoder_self=Head(
            DotProduct(), LimitingSoftmax(), on(ASSIGNMENT), on(ASSIGNMENT), -on(POSITION)
        ),
        algorithm="Lloyd's algorithm / Euclidean k-means",
        appendix="sec:methods:icll",
    )


def lloyd_dot(ties: Ties = "first") -> Recipe:
    r"""Return the recipe of Lloyd's algorithm with dot-product scores on lifted tokens.

    Theorem thm:l2-clus ip. $\ell(x)^\top \pi \ell(c) = -\lVert x - c \rVert^2$ (lem perm). The
    decoder's self-attention cancels position, squared norm and half; the feed-forward network
    writes the last two again.

    Parameters
    ----------
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe; its tokens have d + k + 2 dimensions.

    See Also
    --------
    lloyd : The same algorithm with Euclidean scores.
    soft_dot : Soft k-means with dot-product scores.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.Circuit(lf.recipes.lloyd_dot(), n_features=2, n_clusters=3).space.dim
    7
    """
    base = lloyd(ties)
    return replace(
        base,
        name="lloyd_dot",
        tokens=lifted(),
        encoder_cross=lifted_score(base.encoder_cross, ASSIGNMENT),
        encoder_self=lifted_score(base.encoder_self, ASSIGNMENT),
        decoder_self=replace(base.decoder_self, value=-on(*LIFTED)),
        feedforward=Quadratic(),
        appendix="sec:methods:icll:dp",
        stated=None,
    )


def lloyd_rectified(points: Tensor | ndarray, ties: Ties = "first") -> Recipe:
    r"""Return the recipe of Lloyd's algorithm with d rectified quadratic units, for these points.

    Theorem thm:l2-clus-ip-informal and equation eq:l2-trf-ip-updates to the letter: dot products,
    d units $[z]_+^2$, no bias. The units see each center plus a shift b, through the code rows of
    $W_1$, so that no coordinate is negative: $\sum_i (c_i + b)^2$. $V_3$ takes off what exceeds
    $\lVert c \rVert^2$, which is $2b \sum_i c_i + d b^2$. So the weights depend on the points, as
    the theorem allows ("Given as input a set of points X [...] there exists"); `lloyd_dot` has
    weights for all points.

    Parameters
    ----------
    points : torch.Tensor or numpy.ndarray of shape (n, d)
        The points that a circuit of the recipe will cluster; other points within their range are
        right as well.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe; its tokens have d + k + 2 dimensions.

    Raises
    ------
    ValueError
        If `points` is not a matrix of finite numbers.

    See Also
    --------
    lloyd_dot : The appendix's network, with squares that are not rectified.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[-3.0, 4.0], [-2.0, 4.0], [5.0, 0.0]], dtype=torch.float64)
    >>> recipe = lf.recipes.lloyd_rectified(points)
    >>> trace = lf.Circuit(recipe, n_features=2, n_clusters=2)(points, points[1:], n_layers=2)
    >>> trace.centers[-1].tolist()
    [[-2.5, 4.0], [5.0, 0.0]]
    """
    rows = torch.as_tensor(points, dtype=torch.float64)
    if rows.ndim != 2 or not rows.numel() or not torch.isfinite(rows).all():
        raise ValueError(
            f"points: found an array of shape {tuple(rows.shape)}, or numbers that are not finite; "
            "pass the n x d matrix of the points"
        )
    # a circuit subtracts the middle of the points, so no coordinate is below minus their range
    shift, d = float((rows.amax(dim=0) - rows.amin(dim=0)).max()), rows.shape[1]
    less = Projection(
        (
            # the mean times d is the sum
            Average(POSITION, SQUARED_NORM, coefficient=-2 * shift * d),
            # HALF is -1/2
            Block(HALF, SQUARED_NORM, coefficient=2 * d * shift**2),
        )
    )
    base = lloyd_dot(ties)
    return replace(
        base,
        name="lloyd_rectified",
        decoder_cross=replace(base.decoder_cross, value=on(POSITION, HALF) + less),
        feedforward=Quadratic("rectified", shift),
        appendix="sec:results:dp-ffn",
        stated=None,
    )


def lloyd_binary() -> Recipe:
    """Return the recipe of Lloyd's algorithm in d + ceil(log2 k) dimensions.

    Codes in {-1, +1} replace the one-hot codes; from a later result by the paper's authors.
    Points are always assigned to the first of equally near centers. An empty cluster selects
    the points with the most similar codes.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    lloyd : The same algorithm with one-hot codes.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.Circuit(lf.recipes.lloyd_binary(), n_features=32, n_clusters=1000).space.dim
    42
    """
    return replace(
        lloyd("first"),
        name="lloyd_binary",
        tokens=plain(Binary()),
        appendix="",  # it is not in the paper
        stated=None,
    )


def lifted_score(head: Head, *others: Subspace) -> Head:
    """Return the head with its Euclidean score written as a dot product of lifted tokens."""
    return replace(head, score=DotProduct(), query=lifting(POSITION, *others), key=on(*LIFTED))
