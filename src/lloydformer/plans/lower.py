"""Lowering: from a recipe to the plan that computes the same, or an error that says why not.

It follows the proofs of the paper, head by head. Self-attention and residual must cancel. Then an
iteration assigns the points to centers (encoder cross-attention), computes each new center from its
points (decoder cross-attention), and applies the norm.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lloydformer.circuits.activations import (
    Gumbel,
    Identity,
    LimitingSinkhorn,
    LimitingSoftmax,
    Linear,
    NormMax,
    Sinkhorn,
    Softmax,
    Sparsemax,
    TopK,
)
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.gradients import forward_only
from lloydformer.circuits.heads import Head
from lloydformer.circuits.missing import MaskedTokens, missing
from lloydformer.circuits.mixture import MixtureTokens, NaturalParameters, mixture
from lloydformer.circuits.norms import BlockArgmax, LayerNorm, RMSNorm
from lloydformer.circuits.projections import Block, Dense, Projection, lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.variants import RAISED
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.circuits.subspaces import (
    AFFINITY,
    ASSIGNMENT,
    HALF,
    POSITION,
    SQUARED_NORM,
    Subspace,
)
from lloydformer.plans.constrained import ConstrainedPlan, SinkhornPlan
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.medoids import MedoidsPlan
from lloydformer.plans.missing import plan_for_missing
from lloydformer.plans.mixture import MixturePlan
from lloydformer.plans.prototypes import PrototypesPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.soft import SoftPlan
from lloydformer.plans.trimmed import TrimmedPlan

_LIFTED = (POSITION, SQUARED_NORM, HALF)
# The encoder's attention that writes -|x - c|^2 + 2 delta y (eq rob update).
_AFFINITY = Head(
    DotProduct(),
    Identity(),
    lifting(POSITION) + separated(ASSIGNMENT, AFFINITY, coefficient=2.0, power=1.0),
    on(*_LIFTED, ASSIGNMENT),
    on(AFFINITY),
)


class LoweringError(ValueError):
    """A recipe that cannot be lowered.

    Parameters
    ----------
    slot : str
        The part of the recipe that prevents it, for instance "encoder_cross".
    reason : str
        Why this part cannot be lowered.
    """

    def __init__(self, slot: str, reason: str) -> None:
        super().__init__(f"{slot} prevents lowering: {reason}; run the literal circuit")


@dataclass(frozen=True)
class Lowering:
    """A plan and its derivation.

    Attributes
    ----------
    plan : Plan
        The plan that computes what the recipe does.
    steps : tuple of str
        The steps of the proof, one sentence each.
    """

    plan: Plan
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Meaning:
    """The computation of encoder and decoder cross-attention together, in words and as a plan.

    Attributes
    ----------
    assigning : str
        How encoder cross-attention assigns points to centers: a sentence for `Lowering.steps`.
    summarising : str
        How decoder cross-attention computes a center from its points: a sentence as well.
    plan : Plan
        The plan that computes both.
    """

    assigning: str
    summarising: str
    plan: Plan


# A function that recognises the cross-attention of one algorithm; it returns None for all others.
Rule = Callable[[Recipe], Meaning | None]

# Rules of registered algorithms, tried before those of the paper; see docs/new-algorithm.md.
RULES: list[Rule] = []


def differs_in_cross_attention_only(recipe: Recipe, known: Recipe) -> bool:
    """True if the recipe is `known`, except for the activations of its two cross-attentions.

    A rule that has checked this only needs to check the two activations.
    """

    def compared_parts(one: Recipe) -> tuple[object, ...]:
        placeholder = LimitingSoftmax()  # the same in both recipes, so that it does not count
        heads = {
            name: replace(head, activation=placeholder) if "cross" in name else head
            for name, head in one.heads.items()
        }
        encoder = (one.encoder_norm, one.encoder_feedforward)
        return one.tokens, heads, one.norm, one.feedforward, encoder

    return compared_parts(recipe) == compared_parts(known)


def lower(recipe: AnyRecipe) -> Plan:
    """Return the plan that computes what the recipe's circuit does, in folds over blocks."""
    return derive(recipe).plan


def derive(recipe: AnyRecipe) -> Lowering:
    """Lower a recipe, and state the steps of the proof.

    Raises
    ------
    LoweringError
        If a head is not one that the proofs of the paper know.
    """
    if isinstance(recipe, Staged):
        raise LoweringError(
            recipe.name,
            "it chooses between several proposed sets of centers, and a plan has one; use "
            "RelocatingKMeans",
        )
    recipe = forward_only(recipe)
    if isinstance(recipe.tokens, MixtureTokens):
        return _derive_mixture(recipe)
    if isinstance(recipe.tokens, MaskedTokens):
        return _derive_missing(recipe)
    # The order of the proof of thm:l2-clus-eu. Both self-attentions must cancel first: only then
    # does the layer compute what its two cross-attentions compute.
    _check_constructed(recipe)
    # Called for its error: a point finds itself only by a score that is a distance of positions.
    _describe_score(recipe, "encoder_self")
    _check_cancels(recipe, "encoder_self", _find_written_subspaces(recipe.encoder_cross, recipe))
    _check_names(recipe)
    _check_cancels(recipe, "decoder_self", _find_written_subspaces(recipe.decoder_cross, recipe))
    meaning = _find_meaning(recipe)
    return Lowering(
        meaning.plan,
        (
            "encoder_self: a point's best score is with itself, so attention is the identity; its "
            "value is minus the assignment, and the residual's assignment cancels: Y ← 0.",
            meaning.assigning,
            "decoder_self: a center's best score is with itself; with the residual its old "
            "position cancels: C ← 0.",
            meaning.summarising,
            *_explain_rest(recipe),
            f"What is left is {meaning.plan}.",
        ),
    )


def _derive_mixture(recipe: Recipe) -> Lowering:
    """Lower EM of a mixture: the proof is about exactly these heads and this network."""
    assert isinstance(recipe.tokens, MixtureTokens)
    kind = recipe.tokens.kind
    known = mixture(kind.covariance, kind.family, kind.weights, recipe.tokens.regularisation)
    for slot in ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross", "feedforward"):
        if getattr(recipe, slot) != getattr(known, slot):
            raise LoweringError(slot, f"it is not that of EM, {getattr(known, slot)}")
    for slot in ("affinity", "norm", "numbers"):
        if getattr(recipe, slot) is not None:
            raise LoweringError(slot, "EM of a mixture has none")
    assert isinstance(recipe.feedforward, NaturalParameters)
    wiped = (
        "decoder_self: a component's best score is with itself; with the residual its old "
        "statistic and parameters cancel."
    )
    assigning = (
        "encoder_cross: the product of a point's statistic and a component's natural parameters is "
        "log(weight * density), so soft-max gives the responsibilities: the E-step."
    )
    average = (
        "decoder_cross: linear attention averages the statistic by responsibilities, and uniform "
        "attention averages these: sums over the points, the M-step."
    )
    network = (
        "feedforward: it computes natural parameters from mean statistics, without the points."
    )
    plan: Plan = MixturePlan(kind, recipe.feedforward.regularisation)
    if kind.is_limit:
        plan, assigning = (
            MeansPlan(),
            (
                "encoder_cross: the product is minus the squared distance, plus a number that all "
                "share; each point goes to the nearest mean."
            ),
        )
    elif kind.is_fixed and kind.weights == "equal":
        # minus half the squared distance over the variance, plus a number that all share
        assert not isinstance(kind.covariance, str)
        plan = SoftPlan(1 / (2 * kind.covariance))
    steps = (
        "encoder_self: a point's best score is with itself, so attention is the identity; its "
        "value is minus the assignment, and the residual's assignment cancels: Y ← 0.",
        *(assigning, wiped, average, network, f"What is left is {plan}."),
    )
    return Lowering(plan, steps)


def _derive_missing(recipe: Recipe) -> Lowering:
    """Lower k-means with missing values: the proof is about exactly these heads and network."""
    assert isinstance(recipe.tokens, MaskedTokens)
    policy = recipe.tokens.policy
    known = missing(policy)
    for slot in ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross", "feedforward"):
        if getattr(recipe, slot) != getattr(known, slot):
            raise LoweringError(slot, f"it is not that of `missing`, {getattr(known, slot)}")
    for slot in ("affinity", "norm", "numbers", "encoder_norm", "encoder_feedforward"):
        if getattr(recipe, slot) is not None:
            raise LoweringError(slot, "k-means with missing values has none")
    plan = plan_for_missing(MeansPlan(), policy)
    moved = (
        "it adds (s - n c) / n to a coordinate c, which gives s / n: the mean of observed values."
        if policy == "ignore"
        else "it adds s - n c to a coordinate c: the mean of the points with missing values from c."
    )
    steps = (
        "encoder_self: a point's best score is with a point of the same values and mask, whose "
        "assignment is the same; its value is minus that, and the residual cancels: Y ← 0.",
        "encoder_cross: the product of (x, m) and (2c, -c∘c) is minus the squared distance over "
        "the observed values, plus a number of the point alone; the best center is the nearest.",
        "decoder_self: a center's best score is with itself; with the residual its means and "
        "squares cancel, and its position stays.",
        "decoder_cross: a center averages the values s and the masks n of its own points.",
        f"feedforward: {moved}",
        f"What is left is {plan}.",
    )
    return Lowering(plan, steps)


def _find_meaning(recipe: Recipe) -> Meaning:
    """Return what the cross-attention computes: by a registered rule, or by those of the paper."""
    for rule in RULES:
        if (meaning := rule(recipe)) is not None:
            return meaning
    if isinstance(recipe.encoder_cross.activation, LimitingSinkhorn | Sinkhorn):
        return _find_bounded_meaning(recipe, recipe.encoder_cross.activation)
    assigning, gamma = _assign(recipe)
    summarising, plan = _summarise(recipe, gamma)
    return Meaning(assigning, summarising, plan)


def _find_bounded_meaning(recipe: Recipe, bounded: LimitingSinkhorn | Sinkhorn) -> Meaning:
    """Return what cross-attention computes if the encoder bounds the sizes of clusters.

    Labels may be any in this proof: all that decides which points a center summarises is the
    assignment that the encoder has written, so the decoder is that of the same recipe without
    bounds.
    """
    plain = LimitingSoftmax("first") if isinstance(bounded, LimitingSinkhorn) else Softmax()
    unbounded = replace(
        recipe, encoder_cross=replace(recipe.encoder_cross, activation=plain), stated=None
    )
    _, gamma = _assign(unbounded)
    summarising, plan = _summarise(unbounded, gamma)
    if recipe.norm is not None or not isinstance(plan, MeansPlan | SoftPlan):
        raise LoweringError(
            "decoder_cross",
            f"no fold is known for {recipe.decoder_cross.cell} together with bounds on sizes",
        )
    score = _describe_score(recipe, "encoder_cross")
    if isinstance(bounded, LimitingSinkhorn):
        return Meaning(
            "encoder_cross: each point goes to one center, so that the sizes are within their "
            f"bounds and the sum of the {score} is the largest: a transport problem.",
            summarising,
            ConstrainedPlan(bounded.size_min, bounded.size_max),
        )
    return Meaning(
        f"encoder_cross: Sinkhorn's iteration on exp({bounded.inverse_temperature:g} times the "
        f"{score}). The factor of a row follows from those of the columns, and the sum of a column "
        "is a sum over the points, so each round is a fold of k numbers.",
        summarising,
        SinkhornPlan(
            bounded.inverse_temperature, bounded.size_min, bounded.size_max, bounded.n_rounds
        ),
    )


def _check_constructed(recipe: Recipe) -> None:
    """Raise `LoweringError` unless all matrices are written by hand, with one head per slot."""
    # The proofs of the paper are about such matrices only.
    if recipe.numbers:
        raise LoweringError("numbers", "they change with the state; lowering supports fixed ones")
    if not isinstance(recipe.feedforward, Quadratic | None):
        reason = f"{recipe.feedforward} is not the network that renews squared norms"
        raise LoweringError("feedforward", reason)
    for part in ("encoder_norm", "encoder_feedforward"):
        if getattr(recipe, part) is not None:
            raise LoweringError(part, "it changes the points, which a plan does not")
    for slot, head in recipe.heads.items():
        if any(isinstance(projection, Dense) for projection in head.projections.values()):
            raise LoweringError(
                slot, "its matrices are learned; lowering supports constructed ones only"
            )
        if head.beside:
            raise LoweringError(slot, "this slot has several heads; lowering supports one")


def _check_names(recipe: Recipe) -> None:
    """Raise `LoweringError` unless each center finds itself by its name, which is unique."""
    # By position alone, decoder_self would average coincident centers, and they would stay equal.
    head = recipe.decoder_self
    if not (head.query == head.key and head.key in (on(ASSIGNMENT), on(AFFINITY))):
        raise LoweringError("decoder_self", "centers do not find themselves by their names")


def _find_written_subspaces(cross: Head, recipe: Recipe) -> frozenset[Subspace]:
    """Return the subspaces that cross-attention, and a network or head after it, write."""
    written = set(cross.value.subspaces)
    if cross is recipe.encoder_cross and recipe.affinity:
        written |= recipe.affinity.value.subspaces
    if cross is recipe.decoder_cross and recipe.feedforward:
        written |= recipe.feedforward.subspaces
    return frozenset(written)


def _check_cancels(recipe: Recipe, slot: str, written: frozenset[Subspace]) -> None:
    """Raise `LoweringError` unless self-attention removes what the residual keeps."""
    # With attention I and value -1 on the written subspaces, residual + self-attention is 0 there.
    head: Head = getattr(recipe, slot)
    if not isinstance(head.activation, LimitingSoftmax):
        raise LoweringError(slot, "its attention is the identity only in the limit of soft-max")
    if not _is_scaled_identity(head.value, dict.fromkeys(written, -1.0)):
        raise LoweringError(
            slot, f"its value {head.value} does not cancel what cross-attention writes again"
        )


def _is_scaled_identity(projection: Projection | Dense, factors: dict[Subspace, float]) -> bool:
    """True if it is this multiple of the identity on these subspaces, and zero elsewhere."""
    blocks = _blocks(projection)
    plain = all(b.source == b.target and not b.power for b in blocks)
    return plain and {b.source: b.coefficient for b in blocks} == factors


def _blocks(projection: Projection | Dense) -> tuple[Block, ...]:
    """Return the blocks of a constructed projection."""
    assert isinstance(projection, Projection)  # `_check_constructed` ensures it
    return projection.blocks


def _assign(recipe: Recipe) -> tuple[str, float | None]:
    """Return how points are assigned, in words and by gamma; None: to the nearest center alone."""
    head = recipe.encoder_cross
    if head.separated or not _is_scaled_identity(head.value, {ASSIGNMENT: 1.0}):
        raise LoweringError("encoder_cross", "it does not write an assignment by position alone")
    score = _describe_score(recipe, "encoder_cross")
    match head.activation:
        case LimitingSoftmax(ties="first"):
            return f"encoder_cross: each point goes to the center with the best {score}.", None
        # Averaged ties share a point between several centers, which no sum by label can do.
        case LimitingSoftmax():
            raise LoweringError("encoder_cross", 'tied points are shared; use ties="first"')
        case Softmax(inverse_temperature) if recipe.norm is None:
            return (
                f"encoder_cross: each point is shared by soft-max of {inverse_temperature:g} "
                f"times the {score}."
            ), float(inverse_temperature)
    raise LoweringError(
        "encoder_cross",
        f"no fold is known for {type(head.activation).__name__} (docs/new-algorithm.md adds one)",
    )


def _describe_score(recipe: Recipe, slot: str) -> str:
    """Return how a head compares positions, in words: by distance, lifted or not, or by angle.

    Raises `LoweringError` if it compares something else.
    """
    head: Head = getattr(recipe, slot)
    by_position = head.query == head.key == on(POSITION)
    if isinstance(head.score, Euclidean) and by_position:
        return "minus squared distance"
    if isinstance(head.score, DotProduct) and _is_lifted_distance(head):
        return "dot product of lifted tokens, which is minus the squared distance"
    if isinstance(head.score, DotProduct) and recipe.norm and by_position:
        return "dot product of unit vectors"
    raise LoweringError(slot, "its score is not a distance of positions")


def _is_lifted_distance(head: Head) -> bool:
    """True if the score is -|x - c|^2 by lem perm."""
    # Subspaces that the key does not hold multiply zeros: they do not change the score.
    seen = Projection(tuple(b for b in _blocks(head.query) if b.target in _LIFTED))
    return head.key == on(*_LIFTED) and seen == lifting(POSITION)


def _weighs_by_distance(recipe: Recipe) -> bool:
    """True if decoder cross-attention weighs a center's own points by distance as well.

    Raises `LoweringError` if it does not find a center's own points.
    """
    head = recipe.decoder_cross
    position_and_name = on(POSITION) + separated(ASSIGNMENT)
    if recipe.affinity and replace(recipe.affinity, separation=None) != _AFFINITY:
        raise LoweringError("affinity", "it does not write separated scores for decoder_cross")
    comparison = (type(head.score), head.query, head.key)
    if comparison == (DotProduct, on(ASSIGNMENT), on(ASSIGNMENT)):
        return False
    affine = recipe.affinity and comparison == (DotProduct, on(AFFINITY), on(AFFINITY))
    if affine or comparison == (Euclidean, position_and_name, position_and_name):
        return True
    # -|x - c_j|^2 + 2 delta y_j, by lem perm
    if comparison == (DotProduct, lifting(POSITION) + RAISED, on(*_LIFTED, ASSIGNMENT)):
        return True
    raise LoweringError("decoder_cross", "a center does not find its own points by this score")


def _summarise(recipe: Recipe, gamma: float | None) -> tuple[str, Plan]:
    """Return how each center is computed from its points, in words and as a plan."""
    head = recipe.decoder_cross
    if not _is_scaled_identity(head.value, {POSITION: 1.0}):
        raise LoweringError("decoder_cross", f"its value {head.value} is not the points' position")
    by_distance = _weighs_by_distance(recipe)
    if isinstance(recipe.norm, BlockArgmax):
        if by_distance or gamma is not None or head.activation != LimitingSoftmax():
            raise LoweringError("decoder_cross", "no fold is known before a block-wise argmax")
        if not isinstance(recipe.encoder_cross.score, Euclidean):
            raise LoweringError("encoder_cross", "codes are compared by their distance")
        return (
            "decoder_cross: a center weighs its own points equally.",
            PrototypesPlan(n_numbers=recipe.norm.n_numbers, sizes=recipe.norm.sizes),
        )
    if recipe.norm not in (None, RMSNorm(), LayerNorm()):
        raise LoweringError("norm", f"{recipe.norm} does not make unit vectors")
    if recipe.norm and by_distance:
        raise LoweringError("decoder_cross", "no fold is known for a norm with weighted points")
    if by_distance and not isinstance(head.activation, Gumbel):
        _check_separation(recipe)
    # One case for each fold; other pairs of activations have no proof.
    match head.activation, gamma:
        case LimitingSoftmax(ties="average"), None if not by_distance:
            return "decoder_cross: a center weighs its own points equally.", MeansPlan(
                directions=recipe.norm is not None
            )
        case Linear(), None if not by_distance:
            return "decoder_cross: a center weighs its own points equally.", MeansPlan(
                directions=recipe.norm is not None
            )
        case Linear(), float() if not by_distance:
            return "decoder_cross: a center weighs points by their shares.", SoftPlan(gamma)
        case NormMax(keep=keep), None if by_distance and keep is not None:
            return (
                f"decoder_cross: the separation leaves a center its own points, and norm-max the "
                f"nearest {keep:g} of them, equally."
            ), TrimmedPlan(float(keep))
        case (Sparsemax() | Softmax() | TopK()) as weighting, None if by_distance:
            return (
                "decoder_cross: the separation leaves a center its own points, weighted by "
                f"{weighting.symbol}."
            ), _make_robust_plan(weighting)
        case Gumbel(temperature=0.0), None if by_distance:
            factor = "0" if head.separation is None else f"exp(-2 * {head.separation:g})"
            return (
                f"decoder_cross: a center draws one point; another cluster's is {factor} times as "
                "likely."
            ), MedoidsPlan(head.separation)
    raise LoweringError(
        "decoder_cross", f"no fold is known for {head.cell} after this encoder_cross"
    )


def _check_separation(recipe: Recipe) -> None:
    """Raise `LoweringError` if a separation is given by hand: it may not keep clusters apart."""
    # One that the circuit chooses from the data is above the bound of each activation.
    for slot, head in recipe.heads.items():
        if head.separated and head.separation is not None:
            raise LoweringError(slot, "a separation given by hand may mix clusters; use None")


def _make_robust_plan(weighting: Sparsemax | Softmax | TopK) -> RobustPlan:
    """Return the plan of robust k-means with this weighting of a center's own points."""
    plan = RobustPlan(weighting.inverse_temperature, "softmax")
    if isinstance(weighting, Sparsemax):
        return replace(plan, activation="sparsemax")
    return replace(plan, m=weighting.m) if isinstance(weighting, TopK) else plan


def _explain_rest(recipe: Recipe) -> list[str]:
    """Return the steps of the proof for norm and feed-forward network, if the recipe has them."""
    norm = f"norm: {recipe.norm.symbol} divides each center by its length." if recipe.norm else ""
    if isinstance(recipe.norm, BlockArgmax):
        norm = (
            "norm: of each block of codes, the shares in a cluster, it keeps the largest: a mode."
        )
    network = (
        "feedforward: it renews the squared norm, which a plan computes when it needs it."
        if recipe.feedforward
        else ""
    )
    return [step for step in (norm, network) if step]
