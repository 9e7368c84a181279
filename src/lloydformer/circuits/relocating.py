"""Relocation of means and exchange of medoids as circuits that keep the better proposal.

A relocation has four sub-layers: grow, settle, prune and keep. Each is a few attentions with
residuals, and every stage is explained and proved in docs/relocating-circuit.md. An exchange of
medoids is one sub-layer (docs/medoids.md). `recombining` also uses the tokens, heads and stages
that are defined first.
"""

from dataclasses import replace

from lloydformer.circuits.activations import FirstOfEquals, Identity, LimitingSoftmax, Lots, Ranked
from lloydformer.circuits.feedforward import squared_distance, times
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Projection, copy, on, separated
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import Counts, SizeKind, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Subspace
from lloydformer.circuits.tokens import plain
from lloydformer.numerics.checks import check_count, require_fraction
from lloydformer.numerics.search_constants import (
    EXCHANGE_GAIN,
    RELOCATION_GAIN,
    REMOVAL_CANDIDATES,
    SPLIT_SHARPNESS,
)

# ---- Tokens: what their subspaces hold; zero where nothing is said -------------------------------

# Points: position of their center. Clusters: mean of the half that stays.
CENTER = Subspace("center", "c")
# Points: position of the second nearest center. Clusters: mean of the half that leaves.
OTHER = Subspace("other", "o")
# Points: squared distance to their center. Centers: the sum of it over their points.
ERROR = Subspace("error", "r")
# Points: the code of their cluster times their error.
WEIGHTED = Subspace("weighted", "ry")
# Drawn points: the name of the cluster that they are drawn from.
TWIN = Subspace("twin", "t")
# Points: the code of their cluster if they are nearer to the drawn point than to its center.
NEAR = Subspace("near", "ν")
# 1 in drawn points, and in the points that are nearer to one of them than to its center.
MARK = Subspace("mark", "μ")
# Fraction of a cluster's points that are near.
SHARE = Subspace("share", "p")
# Number of a cluster's points that are not near.
REST = Subspace("rest", "m")
# Squared distance between the means of the two halves.
APART = Subspace("apart", "b")
# SHARE times REST.
LOAD = Subspace("load", "l")
# The amount by which a split lowers the objective.
GAIN = Subspace("gain", "g")
# Points: how much farther the second nearest center is. Centers: the sum of it.
UTILITY = Subspace("utility", "u")
# The objective of a proposal.
OBJECTIVE = Subspace("objective", "J")
# 0 in proposals that may be chosen.
VOID = Subspace("void", "v")

_NUMBERS = (ONE, ABSENT, ERROR, MARK, SHARE, REST, APART, LOAD, GAIN, UTILITY, OBJECTIVE, VOID)
_BY_SIZE: dict[SizeKind, tuple[Subspace, ...]] = {
    "position": (POSITION, CENTER, OTHER),
    "code": (ASSIGNMENT, NAME, TWIN, NEAR, WEIGHTED),
    "number": _NUMBERS,
}
INNER = tuple((subspace, size) for size, subspaces in _BY_SIZE.items() for subspace in subspaces)

# ---- Heads ---------------------------------------------------------------------------------------

FIRST, EVENLY = LimitingSoftmax("first"), LimitingSoftmax("average")
HERE, CODE = on(POSITION), copy(NAME, ASSIGNMENT)

# A point reads the code and position of the nearest center. An absent center scores delta lower,
# which is more than any squared distance, so it is never the nearest.
NEAREST = Head(Euclidean(), FIRST, HERE, HERE + separated(ABSENT), CODE + copy(POSITION, CENTER))
# A point reads the code of the nearest center that is present.
ASSIGN = replace(NEAREST, value=CODE)
# A point reads the position of the second nearest center that is present.
SECOND = replace(NEAREST, activation=Ranked(1), value=copy(POSITION, OTHER))
# A point reads the new position of its center.
OWN = Head(DotProduct(), FIRST, on(ASSIGNMENT), CODE, copy(POSITION, CENTER))
# A center reads the mean of its points (score 1) or, if it has none, itself (score 1/2).
MEAN = Head(DotProduct(), EVENLY, CODE, on(ASSIGNMENT) + 0.5 * CODE, HERE)
# The j-th token reads the position of the j-th center that is present: present ones come first.
SEAT = Head(DotProduct(), Ranked(), -copy(ONE, ABSENT), on(ABSENT), HERE)


def itself(value: Projection) -> Head:
    """Return the head by which a token, found by its name, reads itself.

    A negative value cancels the residual exactly, because the attention is one-hot.
    """
    return Head(DotProduct(), FIRST, on(NAME), on(NAME), value)


def only_token(value: Projection) -> Head:
    """Return the head that reads the only token of a set."""
    return best(on(ONE), value, ONE)


def total(value: Projection) -> Head:
    """Return the head that sums a number over all keys."""
    return Head(DotProduct(), Identity(), on(ONE), on(ONE), value)


def member_sum(number: Subspace) -> Head:
    """Return the head that sums a number over the points of each center."""
    return Head(DotProduct(), Identity(), CODE, on(ASSIGNMENT), on(number))


def best(query: Projection, value: Projection, *keys: Subspace) -> Head:
    """Return the head that reads the value of the key with the largest score."""
    return Head(DotProduct(), FIRST, query, on(*keys), value)


def least(number: Subspace, excluded: Subspace) -> Projection:
    """Return the query for the least number; keys that are 1 in `excluded` score delta lower."""
    return -copy(ONE, number) + -copy(ONE, excluded, power=1.0)


def twin_or_itself(value: Projection) -> Head:
    """Return the head that reads the key whose twin is the token (score 1), else itself (1/2)."""
    return Head(DotProduct(), FIRST, on(NAME), copy(TWIN, NAME) + 0.5 * on(NAME), value)


def first_of_equals(query: Projection, value: Projection, *keys: Subspace) -> Head:
    """Return the head that reads the first key whose score is the best but for rounding."""
    return replace(best(query, value, *keys), activation=FirstOfEquals())


# The objective: the sum of the errors of all points.
TOTAL_ERROR = total(copy(ERROR, OBJECTIVE))
# The network that writes a point's squared distance to its center.
SQUARED_ERROR = squared_distance(ERROR, POSITION, CENTER)
# The networks that write how much farther the second nearest center is: s - r.
SECOND_LESS_FIRST = (
    squared_distance(UTILITY, POSITION, OTHER),
    squared_distance(UTILITY, POSITION, CENTER, -1.0),
)

# ---- Stages that occur in several sub-layers -----------------------------------------------------


def assign_points(name: str, target: str, centers: str) -> Stage:
    """Return the stage that makes points with the nearest of these centers and their error."""
    return Stage(name, target, of=("points",)).read("nearest", NEAREST, centers).then(SQUARED_ERROR)


def judge(name: str, target: str, points: str) -> Stage:
    """Return the stage that makes a token with the objective: the sum of these points' errors."""
    return Stage(name, target, of=("verdict",)).read("total", TOTAL_ERROR, points)


def replace_position(name: str, target: str, *of: str, along: str = "") -> Stage:
    """Return a stage in which tokens lose their position; the next read writes the new one."""
    return Stage(name, target, of=of, along=along).read("self", itself(-HERE), target)


# ---- Sub-layers ----------------------------------------------------------------------------------


def grow(sharpness: float) -> Sublayer:
    """Return the sub-layer that splits clusters: spare centers draw the splits that are made."""
    rest_codes = on(ASSIGNMENT) + -copy(NEAR, ASSIGNMENT)
    draw = Head(DotProduct(), Lots(), copy(NAME, WEIGHTED), on(WEIGHTED), HERE)
    # other clusters' codes lower the score by 2 delta: a point compares its own center and draw
    by_code = HERE + copy(NAME, ASSIGNMENT, power=0.5)
    sides = copy(TWIN, NEAR) + on(MARK)
    side = Head(Euclidean(), FIRST, HERE + separated(ASSIGNMENT), by_code, sides)
    near = Head(DotProduct(), EVENLY, copy(NAME, NEAR), on(NEAR), HERE)
    rest = Head(DotProduct(), EVENLY, CODE, rest_codes, copy(POSITION, OTHER))
    share = Head(DotProduct(), EVENLY, CODE, on(ASSIGNMENT), copy(MARK, SHARE))
    count = Head(DotProduct(), Identity(), CODE, rest_codes, copy(ONE, REST))
    halves = copy(OTHER, CENTER) + copy(POSITION, OTHER) + on(GAIN)
    taken = copy(CENTER, POSITION) + copy(OTHER, CENTER) + 2.0 * CODE + on(GAIN)
    cluster = Head(DotProduct(), Lots(sharpness, Ranked()), copy(ONE, ERROR), on(ERROR), taken)
    offer = best(copy(ONE, GAIN), on(POSITION, CENTER, ASSIGNMENT, ABSENT), GAIN)
    stages = (
        assign_points("assign", "assigned", "centers").then(times(WEIGHTED, ERROR, ASSIGNMENT)),
        judge("judge", "before", "assigned"),
        Stage("errors", "clusters", of=("centers",)).read("sum", member_sum(ERROR), "assigned"),
        # a copy of each center moves to a point drawn from its cluster, once for each draw
        Stage("draw", "drawn", of=("clusters",), along="draws")
        .read("self", itself(-HERE + copy(NAME, TWIN) + copy(ONE, MARK)), "drawn")
        .read("point", draw, "assigned", lots="drawn"),
        # centers are the first keys: a point as near to both belongs to its center
        Stage("sides", "halves", of=("assigned",), along="draws").read(
            "side", side, "clusters", "drawn"
        ),
        # p n2 |m1 - m2|^2, with the share p of the near points, is the gain of a split:
        # n1 n2 / (n1 + n2) |m1 - m2|^2, and exactly 0 if a half is empty
        replace_position("split", "drawn")
        .read("near", near, "halves")
        .read("rest", rest, "halves")
        .read("share", share, "halves")
        .read("count", count, "halves")
        .then(squared_distance(APART, POSITION, OTHER), times(LOAD, SHARE, REST))
        .then(times(GAIN, APART, LOAD)),
        Stage("best", "clusters").read(
            "draw", first_of_equals(copy(ONE, GAIN), halves, GAIN), "drawn", across=True
        ),
        Stage("offer", "offers", of=("spares",))
        .read("self", itself(-on(ABSENT)), "offers")
        .read("cluster", cluster, "clusters", lots="grow"),
        # gains of 0 and g, the first of equals: a spare center becomes present only if g > 0
        Stage("accept", "spares")
        .read("self", itself(-on(ABSENT)), "spares")
        .read("offer", offer, "spares", "offers", across=True),
        # a center that is split reads the spare one, whose key is twice the code (score 2)
        replace_position("move", "moved", "centers").read(
            "mean", MEAN, "assigned", "centers", "spares"
        ),
        Stage("turn", "spares").read(
            "self", itself(-HERE + copy(CENTER, POSITION) + -on(CENTER, ASSIGNMENT)), "spares"
        ),
        Stage("join", "slots", of=("moved", "spares")),
    )
    return Sublayer("grow", stages)


def settle() -> Sublayer:
    """Return a step of Lloyd's algorithm with the centers that are present."""
    stages = (
        Stage("assign", "members", of=("points",)).read("nearest", ASSIGN, "slots"),
        replace_position("move", "slots").read("mean", MEAN, "members", "slots"),
    )
    return Sublayer("settle", stages)


def prune() -> Sublayer:
    """Return the sub-layer that removes a center: the best of proposals without one candidate."""
    useless, named = least(UTILITY, ABSENT), on(NAME) + copy(ABSENT, VOID)
    remove = Head(DotProduct(), Ranked(in_order=True), useless, on(UTILITY, ABSENT), named)
    vanish = Head(DotProduct(), Identity(), on(NAME), on(NAME), copy(ONE, ABSENT))
    present = copy(ONE, VOID) + -copy(ABSENT, VOID)
    lower, found = least(OBJECTIVE, VOID), on(POSITION, ABSENT)
    least_objective = first_of_equals(lower, found, OBJECTIVE, VOID)
    stages = (
        Stage("assign", "members", of=("points",))
        .read("nearest", NEAREST, "slots")
        .read("second", SECOND, "slots")
        .then(*SECOND_LESS_FIRST),
        Stage("utility", "valued", of=("slots",)).read("sum", member_sum(UTILITY), "members"),
        Stage("rank", "ranked", of=("candidates",)).read("least", remove, "valued"),
        # one proposal for each candidate, in which it is absent
        Stage("each", "verdicts", of=("ranked",), along="ranked"),
        Stage("vanish", "proposals", of=("slots",), along="ranked").read("one", vanish, "verdicts"),
        Stage("ahead", "ahead", of=("points",), along="ranked").read(
            "nearest", ASSIGN, "proposals"
        ),
        replace_position("move", "proposals").read("mean", MEAN, "ahead", "proposals"),
        Stage("weigh", "ahead").read("own", OWN, "proposals").then(SQUARED_ERROR),
        Stage("judge", "verdicts").read("total", TOTAL_ERROR, "ahead"),
        # all slots of a proposal get the same bits of its objective, so all choose alike
        Stage("tell", "proposals").read("hear", only_token(on(OBJECTIVE, VOID)), "verdicts"),
        # how many slots are present beyond k: with none, the slots stay as they are
        Stage("need", "standing", of=("slots",))
        .read("there", total(present), "slots")
        .read("wanted", total(-present), "centers"),
        Stage("choose", "slots")
        .read("self", itself(-on(POSITION, ABSENT)), "slots")
        .read("best", least_objective, "standing", "proposals", across=True),
    )
    return Sublayer("prune", stages, repeated=True)


def keep(margin: float) -> Sublayer:
    """Return a last step of Lloyd's algorithm; its centers are kept if the objective is lower."""
    stages = (
        *settle().stages,
        Stage("weigh", "members").read("own", OWN, "slots").then(SQUARED_ERROR),
        judge("judge", "after", "members"),
        replace_position("gather", "found", "centers")
        .read("seat", SEAT, "slots")
        .read("hear", only_token(on(OBJECTIVE)), "after"),
        *choose_lower_objective("found", margin),
    )
    return Sublayer("keep", stages)


def choose_lower_objective(proposed: str, margin: float) -> tuple[Stage, Stage]:
    """Return the last stages: centers stay, or become those of the lowest proposal.

    A proposal must be lower by the fraction `margin`: `standing` are the centers with their
    objective lowered by it.
    """
    lowest = best(-copy(ONE, OBJECTIVE), HERE, OBJECTIVE)
    stand = Stage("stand", "standing", of=("centers",)).read(
        "hear", only_token((1 - margin) * on(OBJECTIVE)), "before"
    )
    choose = replace_position("choose", "centers").read(
        "best", lowest, "standing", proposed, across=True
    )
    return stand, choose


def exchange(margin: float) -> Sublayer:
    """Return the best exchange of a drawn point and a medoid, if it lowers the loss."""
    draw = Head(DotProduct(), Lots(1.0, Ranked()), copy(ONE, ERROR), on(ERROR), HERE)
    named_cost = copy(UTILITY, OBJECTIVE) + on(NAME)
    cheapest = Head(DotProduct(), FIRST, -copy(ONE, UTILITY), on(UTILITY), named_cost)
    stages = (
        assign_points("assign", "assigned", "centers"),
        judge("judge", "before", "assigned"),
        Stage("draw", "drawn", of=("draws",), along="verdict").read(
            "point", draw, "assigned", lots="drawn"
        ),
        Stage("take", "candidates", of=("draws",)).read(
            "drawn", best(on(ONE), HERE, ONE), "drawn", across=True
        ),
        # one proposal for each candidate: the medoids, and a spare center at its position
        Stage("each", "candidate", of=("candidates",), along="candidates"),
        Stage("offer", "offer", of=("spares",), along="candidates")
        .read("self", itself(-on(ABSENT)), "offer")
        .read("hear", only_token(HERE), "candidate"),
        Stage("stay", "medoids", of=("centers",), along="candidates"),
        Stage("ahead", "ahead", of=("points",), along="candidates")
        .read("nearest", NEAREST, "medoids", "offer")
        .read("second", SECOND, "medoids", "offer")
        .then(SQUARED_ERROR, *SECOND_LESS_FIRST),
        # the loss with the candidate, plus the utility of a medoid, is the loss after the exchange:
        # points of the candidate stay there, those of the medoid go to the second nearest
        Stage("utility", "medoids").read("sum", member_sum(UTILITY), "ahead"),
        Stage("weigh", "verdicts", of=("verdict",), along="candidates")
        .read("total", TOTAL_ERROR, "ahead")
        .read("least", cheapest, "medoids"),
        Stage("address", "offer").read("hear", only_token(copy(NAME, TWIN)), "verdicts"),
        replace_position("replace", "proposals", "centers", along="candidates")
        # the medoid that goes is the twin of the candidate
        .read("place", twin_or_itself(HERE), "proposals", "offer")
        .read("hear", only_token(on(OBJECTIVE)), "verdicts"),
        *choose_lower_objective("proposals", margin),
    )
    return Sublayer("exchange", stages)


# ---- The recipes ---------------------------------------------------------------------------------


def relocating(
    n_moved: int = 5,
    n_draws: int = 3,
    n_candidates: int = REMOVAL_CANDIDATES,
    sharpness: float = SPLIT_SHARPNESS,
    margin: float = RELOCATION_GAIN,
) -> Staged:
    r"""Return the recipe that relocates some centers if this lowers the objective.

    A layer of this recipe alternates with layers of `lloyd()` in a schedule, and needs a seed. It
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
    require_fraction("margin", margin)
    return Staged(
        name="relocating",
        tokens=plain(),
        inner=INNER,
        counts=counts,
        sublayers=(grow(sharpness), settle(), prune(), keep(margin)),
        algorithm="Relocating k-means",
        appendix="docs/relocating-circuit.md",
    )


def medoids_swap(n_draws: int = 4, margin: float = EXCHANGE_GAIN) -> Staged:
    r"""Return the recipe that exchanges a medoid with a drawn point if this lowers the loss.

    Candidates are drawn without replacement in proportion to their squared distance to their
    medoid. For every candidate and every medoid, the loss with the candidate in place of the medoid
    is computed; the lowest of all is chosen, unless the loss is as low as it was. A layer of this
    recipe needs a seed, and centers that are points.

    Parameters
    ----------
    n_draws : int, default=4
        Number of candidates; at most the number of points. `KMedoids` draws 32.
    margin : float, default=1e-9
        Fraction by which the loss must fall.

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
    medoids : The paper's sampler.
    relocating : Relocations of means.
    lloydformer.KMedoids : The estimator, whose search makes these exchanges among other moves.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> start = torch.tensor([[0.0], [1.0]])  # both in one cluster
    >>> circuit = lf.Circuit(lf.recipes.medoids_swap(n_draws=6), n_features=1, n_clusters=2)
    >>> circuit(points, start, n_layers=2, seed=0).objective.tolist()
    [303.0, 4.0, 4.0]
    """
    base = relocating(n_draws=n_draws, margin=margin)
    return replace(
        base,
        name="medoids_swap",
        counts=replace(base.counts, spares=1, candidates=1),
        sublayers=(exchange(margin),),
        algorithm="k-medoids by exchanges",
        appendix="docs/medoids.md",
    )
