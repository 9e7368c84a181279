"""Lowering: from a recipe to the plan that computes the same, or the reason why not.

The proofs of the paper are followed head by head. Self-attention and residual must cancel; what
is left is to assign the points (encoder cross-attention), to summarise them for each center
(decoder cross-attention), and the norm.
"""

from dataclasses import dataclass, replace

from lloydformer.circuits.activations import (
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    NormMax,
    Softmax,
    Sparsemax,
    TopK,
)
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Projection, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, POSITION, SQUARED_NORM, Subspace
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import Means
from lloydformer.plans.medoids import Medoids
from lloydformer.plans.robust import Robust
from lloydformer.plans.soft import Soft
from lloydformer.plans.trimmed import Trimmed

_NEVER = 1e9
"""A separation beyond which no point of another cluster is drawn."""


class LoweringError(ValueError):
    """Names the head that stands in the way."""

    def __init__(self, slot: str, reason: str) -> None:
        super().__init__(f"{slot} stands in the way of lowering: {reason}; run the literal circuit")


@dataclass(frozen=True)
class Lowering:
    """The plan, and the steps that lead to it."""

    plan: Plan
    steps: tuple[str, ...]


def lower(recipe: Recipe) -> Plan:
    """The plan that computes what the recipe's circuit does, in folds over blocks of points."""
    return derive(recipe).plan


def derive(recipe: Recipe) -> Lowering:
    """The same, step by step."""
    _self_attention(recipe, "encoder_self", POSITION, _written(recipe.encoder_cross, recipe))
    _self_attention(recipe, "decoder_self", _names(recipe), _written(recipe.decoder_cross, recipe))
    assigning, gamma = _assign(recipe)
    summarising, plan = _summarise(recipe, gamma)
    return Lowering(
        plan,
        (
            "encoder_self: a point's best score is with itself, so attention is the identity; its "
            "value is minus the assignment, and the residual's assignment cancels: Y ← 0.",
            assigning,
            "decoder_self: a center's best score is with itself; with the residual its old "
            "position cancels: C ← 0.",
            summarising,
            *_rest(recipe),
            f"What is left is {plan}.",
        ),
    )


def _names(recipe: Recipe) -> Subspace:
    """The subspace in which a center finds itself."""
    return AFFINITY if AFFINITY in recipe.decoder_self.query.subspaces else ASSIGNMENT


def _written(cross: Head, recipe: Recipe) -> frozenset[Subspace]:
    """What cross-attention writes anew, with what a network or a later head writes after it."""
    written = set(cross.value.subspaces)
    if cross is recipe.encoder_cross and recipe.affinity:
        written |= recipe.affinity.value.subspaces
    if cross is recipe.decoder_cross and recipe.feedforward:
        written |= recipe.feedforward.subspaces
    return frozenset(written)


def _self_attention(
    recipe: Recipe, slot: str, finds: Subspace, written: frozenset[Subspace]
) -> None:
    head: Head = getattr(recipe, slot)
    if not isinstance(head.activation, LimitingSoftmax):
        raise LoweringError(slot, "its attention is the identity only in the limit of soft-max")
    if finds not in head.query.subspaces or finds not in head.key.subspaces:
        raise LoweringError(slot, f"tokens do not find themselves without {finds.name}")
    if not _is(head.value, dict.fromkeys(written, -1.0)):
        raise LoweringError(slot, f"its value {head.value} does not cancel what is written anew")


def _is(projection: Projection, factors: dict[Subspace, float]) -> bool:
    """Is it this multiple of the identity on these subspaces, and zero elsewhere?"""
    plain = all(b.source == b.target and not b.power for b in projection.blocks)
    return plain and {b.source: b.coefficient for b in projection.blocks} == factors


def _assign(recipe: Recipe) -> tuple[str, float | None]:
    """How points are assigned: to the nearest center (None), or softly with this gamma."""
    head = recipe.encoder_cross
    if head.separated or not _is(head.value, {ASSIGNMENT: 1.0}):
        raise LoweringError("encoder_cross", "it does not write an assignment by position alone")
    by = _measure(recipe, head)
    match head.activation:
        case LimitingSoftmax(ties="first"):
            return f"encoder_cross: each point goes to the center with the best {by}.", None
        case LimitingSoftmax():
            raise LoweringError("encoder_cross", 'tied points are shared; use ties="first"')
        case Softmax(inverse_temperature) if recipe.norm is None:
            return (
                f"encoder_cross: each point is shared by soft-max of {inverse_temperature:g} "
                f"times the {by}."
            ), float(inverse_temperature)
    raise LoweringError("encoder_cross", f"no fold is known for {type(head.activation).__name__}")


def _measure(recipe: Recipe, head: Head) -> str:
    """Positions must be compared as they are: by distance, lifted distance, or on the sphere."""
    if isinstance(head.score, Euclidean) and head.query == head.key == on(POSITION):
        return "minus squared distance"
    if isinstance(head.score, DotProduct) and SQUARED_NORM in head.key.subspaces:
        return "dot product of lifted tokens, which is minus the squared distance"
    if (
        isinstance(head.score, DotProduct)
        and recipe.norm
        and head.query == head.key == on(POSITION)
    ):
        return "dot product of unit vectors"
    raise LoweringError("encoder_cross", "its score is not a distance of positions")


def _summarise(recipe: Recipe, gamma: float | None) -> tuple[str, Plan]:
    head = recipe.decoder_cross
    if not _is(head.value, {POSITION: 1.0}):
        raise LoweringError("decoder_cross", f"its value {head.value} is not the points' position")
    apart = head.separated or _affinity(recipe)
    if recipe.norm and apart:
        raise LoweringError("decoder_cross", "no fold is known for a norm with weighted points")
    match head.activation, gamma:
        case LimitingSoftmax(), None if not apart:
            return "decoder_cross: a center weighs its own points equally.", Means(
                directions=recipe.norm is not None
            )
        case Linear(), None if not apart:
            return "decoder_cross: a center weighs its own points equally.", Means(
                directions=recipe.norm is not None
            )
        case Linear(), float() if not apart:
            return "decoder_cross: a center weighs points by their shares.", Soft(gamma)
        case NormMax(keep=keep), None if apart and keep is not None:
            return (
                f"decoder_cross: the separation leaves a center its own points, and norm-max the "
                f"nearest {keep:g} of them, equally."
            ), Trimmed(float(keep))
        case (Sparsemax() | Softmax() | TopK()) as weighting, None if apart:
            return (
                "decoder_cross: the separation leaves a center its own points, weighted by "
                f"{weighting.symbol}."
            ), _robust(weighting)
        case Gumbel(temperature=0.0), None if apart:
            separation = _NEVER if head.separation is None else head.separation
            return (
                "decoder_cross: a center draws one point, others' less likely by "
                f"exp(-2 * {separation:g})."
            ), Medoids(separation)
    raise LoweringError(
        "decoder_cross", f"no fold is known for {head.cell} after this encoder_cross"
    )


def _affinity(recipe: Recipe) -> bool:
    """Does a head write scores, with other clusters lowered, for the decoder to read?"""
    if recipe.affinity is None:
        return False
    head, reads = recipe.affinity, recipe.decoder_cross.key.subspaces
    writes = _is(head.value, {AFFINITY: 1.0}) and isinstance(head.activation, Identity)
    if not (writes and head.separated and reads == {AFFINITY}):
        raise LoweringError("affinity", "it does not write separated scores for decoder_cross")
    return True


def _robust(weighting: Sparsemax | Softmax | TopK) -> Robust:
    plan = Robust(weighting.inverse_temperature, "softmax")
    if isinstance(weighting, Sparsemax):
        return replace(plan, activation="sparsemax")
    return replace(plan, m=weighting.m) if isinstance(weighting, TopK) else plan


def _rest(recipe: Recipe) -> list[str]:
    norm = f"norm: {recipe.norm.symbol} divides each center by its length." if recipe.norm else ""
    network = (
        "feedforward: it renews the squared norm, which a plan computes when it needs it."
        if recipe.feedforward
        else ""
    )
    return [step for step in (norm, network) if step]
