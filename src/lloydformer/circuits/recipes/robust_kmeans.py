"""Robust k-means: with four attentions, and in the appendix's form with five."""

from dataclasses import replace

from lloydformer.circuits.activations import Identity, Ties, TopK
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import LIFTED, lifted_score, lloyd, lloyd_dot
from lloydformer.circuits.recipes.separated_head import separated_head
from lloydformer.circuits.recipes.weighting import Weighting, weighting
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import lifted_with_affinity


def robust(
    inverse_temperature: float = 0.01,
    activation: Weighting | TopK = "sparsemax",
    separation: float | None = None,
    ties: Ties = "first",
) -> Recipe:
    """Return the recipe of robust k-means.

    Algorithm alg:rob-kmeans: the farther a point is from its center, the less it weighs.

    Parameters
    ----------
    inverse_temperature : float, default=0.01
        The paper's gamma. It multiplies the squared distance.
    activation : {"sparsemax", "softmax"} or TopK, default="sparsemax"
        Activation that turns the scores of a cluster's points into weights.
    separation : float or None, default=None
        The paper's delta: scores of points in other clusters are lowered by 2 * separation. None
        chooses it from the data, large enough that those points have no weight.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe.

    Raises
    ------
    ValueError
        If `activation` is not one of those named, or is a `TopK` with another temperature.

    See Also
    --------
    robust_lifted : The same algorithm in the form of the paper's appendix.
    lloydformer.RobustKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0]])
    >>> circuit = lf.Circuit(lf.recipes.robust(0.25), n_features=1, n_clusters=1)
    >>> trace = circuit(points, points[:1], n_layers=1, keep="*.decoder_cross.attention")
    >>> trace["layers.0.decoder_cross.attention"].tolist()
    [[0.625, 0.375, 0.0, 0.0]]
    """
    return replace(
        lloyd(ties),
        name="robust",
        decoder_cross=separated_head(weighting(activation, inverse_temperature), separation),
        algorithm="*Robust k-means",
        appendix="sec:methods:new:robust",
    )


def robust_lifted(
    inverse_temperature: float = 0.01,
    activation: Weighting | TopK = "sparsemax",
    separation: float | None = None,
    ties: Ties = "first",
) -> Recipe:
    r"""Return the recipe of robust k-means in the appendix's form, with five attentions.

    Equation eq rob update. Identity attention writes $\hat Y = DP(C, X) + 2\delta Y$ into the
    affinity of the points, and the decoder reads its scores from there. Two choices differ from
    the text: it has $\delta$ for $2\delta$, and keeps `HALF`, which here is cancelled and written
    again by the bias of the network (docs/errata.md, 10).

    Parameters
    ----------
    inverse_temperature : float, default=0.01
        The paper's gamma. It multiplies the squared distance.
    activation : {"sparsemax", "softmax"} or TopK, default="sparsemax"
        Activation that turns the scores of a cluster's points into weights.
    separation : float or None, default=None
        The paper's delta, see `robust`.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.

    Returns
    -------
    Recipe
        The recipe; its tokens have d + 2k + 2 dimensions.

    See Also
    --------
    robust : The same algorithm with four attentions.

    Examples
    --------
    >>> import lloydformer as lf
    >>> list(lf.recipes.robust_lifted().heads)
    ['encoder_cross', 'encoder_self', 'affinity', 'decoder_cross', 'decoder_self']
    """
    base = lloyd_dot(ties)
    affinity = Head(
        DotProduct(),
        Identity(),
        lifting(POSITION) + separated(ASSIGNMENT, AFFINITY, coefficient=2.0, power=1.0),
        on(*LIFTED, ASSIGNMENT),
        on(AFFINITY),
        separation,
    )
    return replace(
        base,
        name="robust_lifted",
        tokens=lifted_with_affinity(),
        encoder_cross=lifted_score(base.encoder_cross, ASSIGNMENT, AFFINITY),
        encoder_self=replace(
            lifted_score(base.encoder_self, ASSIGNMENT, AFFINITY), value=-on(ASSIGNMENT, AFFINITY)
        ),
        affinity=affinity,
        decoder_cross=Head(
            DotProduct(),
            weighting(activation, inverse_temperature),
            on(AFFINITY),
            on(AFFINITY),
            on(POSITION),
        ),
        decoder_self=replace(base.decoder_self, query=on(AFFINITY), key=on(AFFINITY)),
        algorithm="*Robust k-means",
        appendix="sec:methods:new:robust",
    )
