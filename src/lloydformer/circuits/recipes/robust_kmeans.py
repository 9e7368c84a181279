"""Trimmed and robust k-means, and k-medoids: a cluster's points are weighed by distance."""

from dataclasses import replace
from typing import Literal

from lloydformer.circuits.activations import (
    Activation,
    Gumbel,
    Identity,
    NormMax,
    Softmax,
    Sparsemax,
    Ties,
    TopK,
)
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.kmeans import LIFTED, lifted_score, lloyd, lloyd_dot
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import lifted_with_affinity

# Names of activations that weigh keys by their scores.
Weighting = Literal["sparsemax", "softmax"]


def choose_activation(activation: Weighting | TopK, inverse_temperature: float) -> Activation:
    """Return the named activation, or the given `TopK`, with this inverse temperature."""
    if isinstance(activation, TopK):
        if activation.inverse_temperature not in (1.0, inverse_temperature):
            raise ValueError(
                f"activation: found {activation!r}; give its temperature as inverse_temperature="
            )
        return replace(activation, inverse_temperature=inverse_temperature)
    kinds: dict[str, type[Sparsemax | Softmax]] = {"sparsemax": Sparsemax, "softmax": Softmax}
    if not isinstance(activation, str) or activation not in kinds:
        raise ValueError(
            f'activation: found {activation!r}; pass "sparsemax", "softmax" or TopK(m)'
        )
    return kinds[activation](inverse_temperature)


def separated_head(activation: Activation, separation: float | None) -> Head:
    """Return decoder cross-attention by distance, for the points of a cluster.

    The scores of other clusters' points are lowered by 2 * separation (sec:methods:robust).
    """
    # query and key are [c_j, sqrt(delta) e_j] and [x, sqrt(delta) y], so the score is
    # -|x - c_j|^2 - |sqrt(delta) (y - e_j)|^2, and |sqrt(delta) (e_i - e_j)|^2 = 2 delta if i != j
    with_code = on(POSITION) + separated(ASSIGNMENT)
    return Head(
        score=Euclidean(),
        activation=activation,
        query=with_code,
        key=with_code,
        value=on(POSITION),
        separation=separation,
    )


def trimmed(
    keep: float = 0.95,
    separation: float | None = None,
    ties: Ties = "first",
    inverse_temperature: float | None = None,
) -> Recipe:
    """Return the recipe of trimmed k-means.

    Algorithm alg:trim-kmeans: norm-max in the decoder drops the farthest points of each cluster.
    With `keep` it has an inverse temperature for each cluster, chosen from the data, so that each
    keeps the same share. With `inverse_temperature` it has a single one, as eq:nmax is printed,
    and every cluster keeps its own share (docs/errata.md, 9).

    Parameters
    ----------
    keep : float, default=0.95
        Fraction of each cluster that is kept, the paper's tau (its table tab:rob-res has 0.95 and
        0.99). The ceil(keep * m) nearest points of a cluster of m points stay, and points tied
        with the last of them.
    separation : float or None, default=None
        The paper's delta: scores of points in other clusters are lowered by 2 * separation. The
        separation itself must exceed the largest squared distance r of a point to its own center,
        since scores within it of a cluster's best count as the cluster's own; with
        ties="average" it must exceed 2 k^2 r. None chooses it from the data.
    ties : {"first", "average"}, default="first"
        Assignment of a point that is equally near to several centers, see `lloyd`.
    inverse_temperature : float or None, default=None
        The paper's gamma, one for all clusters, in place of `keep`. The smaller it is, the more
        points a cluster keeps: all whose scores are less than about 1 / (gamma m) below the mean
        of the m points that stay. The recipe is then called "trimmed_by_gamma".

    Returns
    -------
    Recipe
        The recipe.

    Raises
    ------
    ValueError
        If both `keep` and `inverse_temperature` are given, or one is out of range.

    See Also
    --------
    robust : Weights that decrease with the distance.
    lloydformer.TrimmedKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0]])
    >>> circuit = lf.Circuit(lf.recipes.trimmed(keep=0.75), n_features=1, n_clusters=1)
    >>> trace = circuit(points, points[:1], n_layers=1, names_filter="*.decoder_cross.attention")
    >>> (trace["layers.0.decoder_cross.attention"] > 0).tolist()  # the point at 10 is dropped
    [[True, True, True, False]]
    """
    by_gamma = inverse_temperature is not None
    if by_gamma and keep != 0.95:
        raise ValueError(
            f"keep, inverse_temperature: found {keep!r} and {inverse_temperature!r}; pass one"
        )
    activation = NormMax(inverse_temperature) if by_gamma else NormMax(keep=keep)
    return replace(
        lloyd(ties),
        name="trimmed_by_gamma" if by_gamma else "trimmed",
        decoder_cross=separated_head(activation, separation),
        algorithm="*Trimmed k-means",
        appendix="sec:methods:robust",
    )


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
        The paper's gamma, which multiplies the squared distance. The default is one of the two
        values in the paper's table tab:rob-res; the other is 0.001.
    activation : {"sparsemax", "softmax"} or TopK, default="sparsemax"
        Activation that turns the scores of a cluster's points into weights.
    separation : float or None, default=None
        The paper's delta: scores of points in other clusters are lowered by 2 * separation. With
        sparse-max and ties="first" they have no weight if 2 * separation is at least 1/gamma plus
        the squared distance of every cluster's nearest point to its center. None chooses it from
        the data, near its lower bound.
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
    >>> trace = circuit(points, points[:1], n_layers=1, names_filter="*.decoder_cross.attention")
    >>> trace["layers.0.decoder_cross.attention"].tolist()
    [[0.625, 0.375, 0.0, 0.0]]
    """
    return replace(
        lloyd(ties),
        name="robust",
        decoder_cross=separated_head(
            choose_activation(activation, inverse_temperature), separation
        ),
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
        The paper's gamma, which multiplies the squared distance. The default is one of the two
        values in the paper's table tab:rob-res; the other is 0.001.
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
    # A point's query and the key of center j, with the codes y of the point and e_j of the center:
    #     query . key = l(x)^T pi l(c_j) + 2 delta y . e_j = -|x - c_j|^2 + 2 delta y_j.
    # The center's own affinity is e_j, so the value writes this number to column j of the point.
    # The query's block on AFFINITY has no effect, because the key is 0 there; it is the paper's
    # 2k x 2k block delta I.
    affinity = Head(
        score=DotProduct(),
        activation=Identity(),
        query=lifting(POSITION) + separated(ASSIGNMENT, AFFINITY, coefficient=2.0, power=1.0),
        key=on(*LIFTED, ASSIGNMENT),
        value=on(AFFINITY),
        separation=separation,
    )
    return replace(
        base,
        name="robust_lifted",
        tokens=lifted_with_affinity(),
        # blocks of these queries on ASSIGNMENT and AFFINITY have no effect: the keys are 0 there
        encoder_cross=lifted_score(base.encoder_cross, ASSIGNMENT, AFFINITY),
        encoder_self=replace(
            lifted_score(base.encoder_self, ASSIGNMENT, AFFINITY), value=-on(ASSIGNMENT, AFFINITY)
        ),
        affinity=affinity,
        # e_j in the query of center j selects column j of the points' affinities
        decoder_cross=Head(
            score=DotProduct(),
            activation=choose_activation(activation, inverse_temperature),
            query=on(AFFINITY),
            key=on(AFFINITY),
            value=on(POSITION),
        ),
        decoder_self=replace(base.decoder_self, query=on(AFFINITY), key=on(AFFINITY)),
        algorithm="*Robust k-means",
        appendix="sec:methods:new:robust",
    )


def medoids(separation: float | None = 100.0, ties: Ties = "first") -> Recipe:
    """Return the recipe of randomised k-medoids.

    Algorithm alg:rnd-kmeds: Gumbel attention draws a point for each center. A circuit of this
    recipe needs a seed.

    Parameters
    ----------
    separation : float or None, default=100.0
        The paper's delta. A point of another cluster is exp(-2 * separation) times as likely to
        be drawn as a point of the own cluster at the same distance, 1e-87 times with the default.
        The default is one of the seven values in the paper's table tab:med-res. None chooses it
        from the data so that points of other clusters are never drawn.
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
