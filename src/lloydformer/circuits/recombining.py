"""Recombination as a circuit: two solutions are merged to a child, and the best two are kept.

Sub-layers: unite, merge, bear, a relocation, steps of Lloyd's algorithm, and enter. Every stage is
explained and proved in docs/recombining-circuit.md. Tokens and heads are those of `relocating`.
"""

from dataclasses import replace

from lloydformer.circuits.activations import Identity, Linear, Ranked
from lloydformer.circuits.feedforward import Difference, Product, squared_distance, times
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import copy, on
from lloydformer.circuits.relocating import (
    APART,
    CENTER,
    CODE,
    GAIN,
    HERE,
    INNER,
    LOAD,
    MARK,
    NEAR,
    OBJECTIVE,
    OTHER,
    SEAT,
    SHARE,
    TWIN,
    UTILITY,
    VOID,
    WEIGHTED,
    assign_points,
    best,
    first_of_equals,
    itself,
    judge,
    least,
    only_token,
    relocating,
    replace_position,
    settle,
    total,
    twin_or_itself,
)
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import PairedCounts, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Subspace
from lloydformer.numerics.checks import check_count, require_fraction
from lloydformer.numerics.search_constants import RELOCATION_GAIN, SAME_SOLUTION

# Centers: number of their points. Of a pair: that of both.
MASS = Subspace("mass", "w")
# Pairs of centers: the amount by which the objective grows if they are merged (Ward).
COST = Subspace("cost", "κ")

# Mass that the first of two centers has in addition, far below that of one point: if neither has
# points, the merged center is where the first one is.
FAINT = 1e-30


def unite() -> Sublayer:
    """Return the sub-layer that assigns the points to both solutions, whose centers count them."""
    count = Head(DotProduct(), Identity(), CODE, on(ASSIGNMENT), copy(ONE, MASS))
    stages = (
        assign_points("assign", "assigned", "first"),
        assign_points("assign_again", "assigned_again", "second"),
        judge("judge", "first_verdict", "assigned"),
        judge("judge_again", "second_verdict", "assigned_again"),
        Stage("count", "united", of=("centers",)).read(
            "points", count, "assigned", "assigned_again"
        ),
    )
    return Sublayer("unite", stages)


def merge() -> Sublayer:
    """Return the sub-layer that merges the cheapest pair; each center meets all in a proposal."""
    # Division by attention: linear attention with scores w_a, w_b and 0 has the weights
    # w_a / (w_a + w_b) and w_b / (w_a + w_b): it writes the mean by mass, and the shares as a code.
    both = copy(NAME, WEIGHTED) + copy(TWIN, WEIGHTED) + FAINT * copy(TWIN, ASSIGNMENT)
    mean = copy(POSITION, OTHER) + CODE
    by_mass = Head(DotProduct(), Linear(), both, on(WEIGHTED) + CODE, mean)
    cheaper = least(COST, VOID)
    of_partner = copy(POSITION, CENTER) + copy(NAME, TWIN) + copy(ABSENT, VOID)
    partner = on(COST, VOID, MASS) + copy(NAME, NEAR) + copy(OTHER, CENTER)
    pair = copy(NAME, TWIN) + on(NEAR, MASS) + copy(CENTER, POSITION)
    vanish = Head(DotProduct(), Identity(), on(NAME), copy(NEAR, NAME), copy(ONE, ABSENT))
    stages = (
        Stage("each", "partners", of=("united",), along="united"),
        # VOID is 0 for two different centers that are both present
        Stage("meet", "pairs", of=("united",), along="centers")
        .read("hear", only_token(of_partner), "partners")
        .then(squared_distance(APART, POSITION, CENTER))
        .then(times(VOID, NAME, TWIN), times(VOID, ABSENT, ONE)),
        Stage("weigh", "weighed", of=("united",)).then(times(WEIGHTED, MASS, NAME)),
        Stage("cost", "pairs")
        .read("both", by_mass, "weighed")
        .then(times(SHARE, ASSIGNMENT, TWIN), times(LOAD, SHARE, MASS), times(COST, LOAD, APART)),
        Stage("partner", "partners").read(
            "cheapest", first_of_equals(cheaper, partner, COST, VOID), "pairs"
        ),
        # a pair occurs from both sides, with costs that differ by rounding: the first side counts
        Stage("choose", "pair", of=("verdict",)).read(
            "cheapest", first_of_equals(cheaper, pair, COST, VOID), "partners", across=True
        ),
        Stage("replace", "united")
        .read("self", itself(-on(POSITION, MASS)), "united")
        # the merged center takes the place of the first of the two, its twin
        .read("place", twin_or_itself(HERE + on(MASS)), "united", "pair")
        .read("vanish", vanish, "pair"),
    )
    return Sublayer("merge", stages, repeated="merges")


def bear() -> Sublayer:
    """Return the sub-layer by which the centers that are left become the first k of the child."""
    gather = replace_position("gather", "child", "first").read("seat", SEAT, "united")
    return Sublayer("bear", (gather,))


def step(number: int) -> Sublayer:
    """Return a step of Lloyd's algorithm with the child."""
    part = settle().rename_sets({"slots": "child", "members": "followers"})
    return replace(part, name=f"step_{number}")


def enter(same: float) -> Sublayer:
    """Return the sub-layer that keeps the two best of both solutions and the child.

    The better one comes first. A child whose objective is that of a parent, up to the fraction
    `same`, is not taken.
    """
    lowest = best(least(OBJECTIVE, VOID), HERE, OBJECTIVE, VOID)
    second_lowest = replace(lowest, activation=Ranked(1))
    # (same J)^2 - (J - J')^2, which is 0 or more if the two objectives are the same
    alike = (
        Product(GAIN, Difference(OBJECTIVE), Difference(OBJECTIVE), same**2),
        squared_distance(GAIN, OBJECTIVE, UTILITY, -1.0),
    )
    parents, among = ("first_verdict", "second_verdict"), ("stands", "stands_again", "child")
    stages = (
        assign_points("assign", "born", "child"),
        judge("judge", "child_verdict", "born"),
        # a test whether a number is 0 or more: the first of equals among it and 0
        Stage("unlike", "unlike", of=parents),
        Stage("compare", "alike", of=parents)
        .read("hear", only_token(copy(OBJECTIVE, UTILITY) + copy(ONE, MARK)), "child_verdict")
        .then(*alike),
        Stage("same", "parents", of=parents).read(
            "same", best(copy(ONE, GAIN), on(MARK), GAIN), "alike", "unlike", across=True
        ),
        Stage("refuse", "child_verdict").read("same", total(copy(MARK, VOID)), "parents"),
        # all three solutions take the first k of 2k tokens, with their objectives
        Stage("tell", "child").read("hear", only_token(on(OBJECTIVE, VOID)), "child_verdict"),
        Stage("stand", "stands", of=("first",)).read(
            "hear", only_token(on(OBJECTIVE)), "first_verdict"
        ),
        replace_position("stand_again", "stands_again", "first")
        .read("seat", SEAT, "second")
        .read("hear", only_token(on(OBJECTIVE)), "second_verdict"),
        replace_position("better", "better", "first").read("best", lowest, *among, across=True),
        replace_position("other", "other", "first").read(
            "second", second_lowest, *among, across=True
        ),
        replace_position("pool", "centers").read("seat", SEAT, "better", "other"),
    )
    return Sublayer("enter", stages)


def recombining(
    n_moved: int = 5,
    n_draws: int = 3,
    n_steps: int = 2,
    margin: float = RELOCATION_GAIN,
    same: float = SAME_SOLUTION,
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
    steps = range(1, check_count("n_steps", n_steps, least=0) + 1)
    require_fraction("same", same)
    base = relocating(n_moved, n_draws, margin=margin)
    # the relocation of the child: the same stages, with the child as centers
    child = {"centers": "child", "assigned": "placed"}
    relocation = [part.rename_sets(child) for part in base.sublayers]
    counts = base.counts
    return replace(
        base,
        name="recombining",
        inner=(*INNER, (MASS, "number"), (COST, "number")),
        counts=PairedCounts(counts.spares, counts.draws, counts.candidates),
        sublayers=(unite(), merge(), bear(), *relocation, *map(step, steps), enter(same)),
        algorithm="Recombining k-means",
        appendix="docs/recombining-circuit.md",
    )
