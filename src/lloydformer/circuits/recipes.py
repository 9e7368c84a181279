"""The recipes: the seven rows of the table tab:comp-alg, and five beyond it.

Each is the base recipe with a part replaced; the difference is the algorithm. `symmetric` has a
module of its own.
"""

from dataclasses import replace
from functools import cache
from typing import Literal

from lloydformer.circuits.activations import (
    Activation,
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    NormMax,
    Softmax,
    Sparsemax,
    Ties,
    TopK,
)
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.projections import Dense, lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.relocating import relocating
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.subspaces import (
    AFFINITY,
    ASSIGNMENT,
    HALF,
    POSITION,
    SQUARED_NORM,
    Subspace,
)
from lloydformer.circuits.symmetric import symmetric
from lloydformer.circuits.tokens import (
    Binary,
    lifted,
    lifted_with_affinity,
    plain,
    positions_only,
)

__all__ = [
    "learned",
    "lloyd",
    "lloyd_binary",
    "lloyd_dot",
    "medoids",
    "relocating",
    "robust",
    "robust_lifted",
    "soft",
    "soft_dot",
    "spherical",
    "symmetric",
    "table",
    "trimmed",
]

Weighting = Literal["sparsemax", "softmax"]
"""How robust k-means weighs the points of a cluster."""

_LIFTED = (POSITION, SQUARED_NORM, HALF)
_KMEANS = "Lloyd's algorithm / Euclidean k-means"


@cache
def lloyd(ties: Ties = "first") -> Recipe:
    r"""Lloyd's algorithm with Euclidean scores (thm:l2-clus-eu, alg:lloyds).

    Encoder self-attention is $\sigma_\infty(DP(X, X)) = I_n$ and carries $-Y$: with the residual
    it wipes the old assignment, and cross-attention writes the new one. The decoder's does the
    same for the old centers (eq:trf-param-vals).
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
        algorithm=_KMEANS,
        appendix="sec:methods:icll",
    )


def lloyd_dot(ties: Ties = "first") -> Recipe:
    r"""Lloyd's algorithm with dot-product scores on lifted tokens (thm:l2-clus ip).

    $\ell(x)^\top \pi \ell(c) = -\lVert x - c \rVert^2$ (lem perm); the decoder's self-attention
    wipes position, squared norm and half, and the network writes the latter two anew.
    """
    base = lloyd(ties)
    return replace(
        base,
        name="lloyd_dot",
        tokens=lifted(),
        encoder_cross=_lift(base.encoder_cross, ASSIGNMENT),
        encoder_self=_lift(base.encoder_self, ASSIGNMENT),
        decoder_self=replace(base.decoder_self, value=-on(*_LIFTED)),
        feedforward=Quadratic(),
        appendix="sec:methods:icll:dp",
    )


@cache
def spherical(norm: Literal["rms", "layer"] = "rms", ties: Ties = "first") -> Recipe:
    """Spherical k-means: dot products of unit vectors and a norm (thm:sp-clus ip).

    "layer" needs points whose coordinates sum to zero (`norms.zero_sum` makes them so); "rms"
    does not (rem:lnorm-rmsnorm).
    """
    if norm not in ("rms", "layer"):
        raise ValueError(f'norm: found {norm!r}; pass "rms" or "layer"')
    base = lloyd(ties)
    return replace(
        base,
        name="spherical",
        encoder_cross=replace(base.encoder_cross, score=DotProduct()),
        encoder_self=replace(base.encoder_self, score=DotProduct()),
        norm=RMSNorm() if norm == "rms" else LayerNorm(),
        algorithm="Lloyd's algorithm / Spherical k-means",
        appendix="sec:methods:spherical",
    )


def soft(inverse_temperature: float = 1.0) -> Recipe:
    """Soft k-means: soft-max in the encoder, linear attention in the decoder (alg:soft-kmeans)."""
    base = lloyd()
    return replace(
        base,
        name="soft",
        encoder_cross=replace(base.encoder_cross, activation=Softmax(inverse_temperature)),
        decoder_cross=replace(base.decoder_cross, activation=Linear()),
        algorithm="*Soft k-means",
    )


def soft_dot(inverse_temperature: float = 1.0) -> Recipe:
    """Soft k-means with dot-product scores on lifted tokens (after thm:l2-clus ip)."""
    base = lloyd_dot()
    return replace(
        base,
        name="soft_dot",
        encoder_cross=replace(base.encoder_cross, activation=Softmax(inverse_temperature)),
        decoder_cross=replace(base.decoder_cross, activation=Linear()),
        algorithm="*Soft k-means",
    )


def trimmed(keep: float = 0.95, separation: float | None = None, ties: Ties = "first") -> Recipe:
    """Trimmed k-means: norm-max in the decoder drops each cluster's farthest (alg:trim-kmeans).

    Of a cluster with m points, those not farther than the ceil(keep * m)-th nearest stay, ties
    included. A separation given by hand must exceed the largest squared distance of a point to
    its own center.
    """
    return replace(
        lloyd(ties),
        name="trimmed",
        decoder_cross=_separated_head(NormMax(keep=keep), separation),
        algorithm="*Trimmed k-means",
        appendix="sec:methods:robust",
    )


def robust(
    inverse_temperature: float = 0.01,
    activation: Weighting | TopK = "sparsemax",
    separation: float | None = None,
    ties: Ties = "first",
) -> Recipe:
    """Robust k-means: a cluster's points weigh less the farther they are (alg:rob-kmeans)."""
    return replace(
        lloyd(ties),
        name="robust",
        decoder_cross=_separated_head(_weighting(activation, inverse_temperature), separation),
        algorithm="*Robust k-means",
        appendix="sec:methods:new:robust",
    )


def robust_lifted(
    inverse_temperature: float = 0.01,
    activation: Weighting | TopK = "sparsemax",
    separation: float | None = None,
    ties: Ties = "first",
) -> Recipe:
    r"""Robust k-means in the appendix's form, with five attentions (eq rob update), repaired.

    Identity attention writes $\hat Y = DP(C, X) + 2\delta Y$ into the points' affinity, and the
    decoder reads its scores from there. `HALF` is wiped as well (docs/errata.md, 10).
    """
    base = lloyd_dot(ties)
    affinity = Head(
        DotProduct(),
        Identity(),
        lifting(POSITION) + separated(ASSIGNMENT, AFFINITY, coefficient=2.0, power=1.0),
        on(*_LIFTED, ASSIGNMENT),
        on(AFFINITY),
        separation,
    )
    return replace(
        base,
        name="robust_lifted",
        tokens=lifted_with_affinity(),
        encoder_cross=_lift(base.encoder_cross, ASSIGNMENT, AFFINITY),
        encoder_self=replace(
            _lift(base.encoder_self, ASSIGNMENT, AFFINITY), value=-on(ASSIGNMENT, AFFINITY)
        ),
        affinity=affinity,
        decoder_cross=Head(
            DotProduct(),
            _weighting(activation, inverse_temperature),
            on(AFFINITY),
            on(AFFINITY),
            on(POSITION),
        ),
        decoder_self=replace(base.decoder_self, query=on(AFFINITY), key=on(AFFINITY)),
        algorithm="*Robust k-means",
        appendix="sec:methods:new:robust",
    )


def medoids(separation: float | None = 100.0, ties: Ties = "first") -> Recipe:
    """Randomised k-medoids: Gumbel attention draws a point for each center (alg:rnd-kmeds).

    A point of another cluster is exp(-2 * separation) times as likely as an own one that is
    equally far; None makes it impossible.
    """
    return replace(
        lloyd(ties),
        name="medoids",
        decoder_cross=_separated_head(Gumbel(), separation),
        algorithm="*Euclidean k-medoids",
        appendix="sec:methods:new:kmeds",
    )


def lloyd_binary() -> Recipe:
    """Lloyd's algorithm in d + ceil(log2 k) dimensions: codes in {-1, +1} in place of one-hot.

    From a later result by the paper's authors. An empty cluster selects the points with the
    most similar codes.
    """
    return replace(lloyd("first"), name="lloyd_binary", tokens=plain(Binary()))


def learned(
    codes: Literal["onehot", "binary"] | None = "onehot",
    bias: bool = True,
    scaled: bool = True,
    activation: Weighting = "softmax",
    dropout: float = 0.01,
) -> Recipe:
    r"""The layer whose weights are learned (sec:results:train): Euclidean scores in all heads.

    codes None leaves the scratch dimensions out: tokens are positions, $d_{emb} = d$. scaled
    divides scores by $\sqrt{d_{emb}}$. Tokens are embedded again before each step.
    """
    tokens = {"onehot": plain(), "binary": plain(Binary()), None: positions_only()}
    if codes not in tokens:
        raise ValueError(f'codes: found {codes!r}; pass "onehot", "binary" or None')
    score = Scaled(Euclidean()) if scaled else Euclidean()
    free = Dense(bias)
    head = Head(score, _weighting(activation, 1.0), free, free, free, dropout=dropout)
    return Recipe(
        name="learned",
        tokens=tokens[codes],
        encoder_cross=head,
        encoder_self=head,
        decoder_cross=head,
        decoder_self=head,
        algorithm="learned",
        appendix="asec:trf-train",
        embeds_again=True,
    )


def table() -> tuple[Recipe, ...]:
    """The seven rows of the paper's table, in its order."""
    return lloyd(), lloyd_dot(), spherical(), soft(), trimmed(), robust(), medoids()


def _lift(head: Head, *others: Subspace) -> Head:
    """The head with its Euclidean score written as a dot product of lifted tokens."""
    return replace(head, score=DotProduct(), query=lifting(POSITION, *others), key=on(*_LIFTED))


def _separated_head(activation: Activation, separation: float | None) -> Head:
    """Decoder cross-attention by distance, with other clusters lowered (sec:methods:robust)."""
    apart = on(POSITION) + separated(ASSIGNMENT)
    return Head(Euclidean(), activation, apart, apart, on(POSITION), separation)


def _weighting(activation: Weighting | TopK, inverse_temperature: float) -> Activation:
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
