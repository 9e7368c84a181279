"""The four sub-layers of a relocation: grow, settle, prune and keep.

Each is a few attentions with residuals; docs/relocating-circuit.md derives them.
"""

from lloydformer.circuits.activations import Identity, Lots, Ranked
from lloydformer.circuits.heads import Head
from lloydformer.circuits.products import squared, times
from lloydformer.circuits.projections import moved, on, separated
from lloydformer.circuits.relocating.heads import (
    ASSIGN,
    CODE,
    EVENLY,
    FIRST,
    HERE,
    NEAREST,
    OWN,
    SECOND,
    SQUARED_ERROR,
    TOTAL_ERROR,
    best,
    first_of_equals,
    from_itself,
    from_single_token,
    mean_update,
    member_sum,
    total,
)
from lloydformer.circuits.relocating.subspaces import (
    APART,
    CENTER,
    ERROR,
    GAIN,
    LOAD,
    MARK,
    NEAR,
    OBJECTIVE,
    OTHER,
    REST,
    SHARE,
    TWIN,
    UTILITY,
    VOID,
    WEIGHTED,
)
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import Read, Stage, Sublayer
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION


def grow(sharpness: float) -> Sublayer:
    """Split every cluster in several ways; spare centers draw the splits that are made."""
    own_codes, rest_codes = on(ASSIGNMENT), on(ASSIGNMENT) + -moved(NEAR, ASSIGNMENT)
    draw = Head(DotProduct(), Lots(), moved(NAME, WEIGHTED), on(WEIGHTED), HERE)
    side = Head(
        Euclidean(),
        FIRST,
        HERE + separated(ASSIGNMENT),
        HERE + moved(NAME, ASSIGNMENT, power=0.5),
        moved(TWIN, NEAR) + on(MARK),
    )
    near = Head(DotProduct(), EVENLY, moved(NAME, NEAR), on(NEAR), HERE)
    rest = Head(DotProduct(), EVENLY, CODE, rest_codes, moved(POSITION, OTHER))
    share = Head(DotProduct(), EVENLY, CODE, own_codes, moved(MARK, SHARE))
    count = Head(DotProduct(), Identity(), CODE, rest_codes, moved(ONE, REST))
    halves = moved(OTHER, CENTER) + moved(POSITION, OTHER) + on(GAIN)
    half = first_of_equals(moved(ONE, GAIN), halves, GAIN)
    taken = moved(CENTER, POSITION) + moved(OTHER, CENTER) + 2.0 * CODE + on(GAIN)
    cluster = Head(DotProduct(), Lots(sharpness, Ranked()), moved(ONE, ERROR), on(ERROR), taken)
    offer = on(POSITION, CENTER, ASSIGNMENT, ABSENT)
    turned = -HERE + moved(CENTER, POSITION) + -on(CENTER, ASSIGNMENT)
    return Sublayer("grow", (
        Stage("assign", "assigned", (Read("nearest", NEAREST, ("centers",)),),
              (*SQUARED_ERROR, times(WEIGHTED, ERROR, ASSIGNMENT)), of=("points",)),
        Stage("judge", "before", (Read("total", TOTAL_ERROR, ("assigned",)),),
              of=("verdict",)),
        Stage("errors", "clusters", (Read("sum", member_sum(ERROR), ("assigned",)),),
              of=("centers",)),
        Stage("draw", "drawn",
              (from_itself("drawn", -HERE + moved(NAME, TWIN) + moved(ONE, MARK)),
               Read("point", draw, ("assigned",), lots="drawn")),
              of=("clusters",), along="draws"),
        Stage("sides", "halves", (Read("side", side, ("clusters", "drawn")),),
              of=("assigned",), along="draws"),
        Stage("split", "drawn",
              (from_itself("drawn", -HERE), Read("near", near, ("halves",)),
               Read("rest", rest, ("halves",)), Read("share", share, ("halves",)),
               Read("count", count, ("halves",))),
              (squared(APART, POSITION, OTHER), times(LOAD, SHARE, REST),
               times(GAIN, APART, LOAD))),
        Stage("best", "clusters",
              (Read("draw", half, ("drawn",), across=True),)),
        Stage("offer", "offers",
              (from_itself("offers", -on(ABSENT)),
               Read("cluster", cluster, ("clusters",), lots="grow")),
              of=("spares",)),
        Stage("accept", "spares",
              (from_itself("spares", -on(ABSENT)),
               Read("offer", best(moved(ONE, GAIN), offer, GAIN), ("spares", "offers"),
                    across=True))),
        Stage("move", "moved", mean_update("moved", "assigned", "centers", "spares"),
              of=("centers",)),
        Stage("turn", "spares", (from_itself("spares", turned),)),
        Stage("join", "slots", of=("moved", "spares")),
    ))  # fmt: skip


def settle() -> Sublayer:
    """One step of Lloyd's algorithm with the centers that are present."""
    return Sublayer("settle", (
        Stage("assign", "members", (Read("nearest", ASSIGN, ("slots",)),), of=("points",)),
        Stage("move", "slots", mean_update("slots", "members", "slots")),
    ))  # fmt: skip


def prune() -> Sublayer:
    """Remove one center: each candidate in a proposal of its own, a step of Lloyd's ahead."""
    useless = -moved(ONE, UTILITY) + -moved(ONE, ABSENT, power=1.0)
    least = Head(
        DotProduct(), Ranked(in_order=True), useless, on(UTILITY, ABSENT),
        on(NAME) + moved(ABSENT, VOID),
    )  # fmt: skip
    vanish = Head(DotProduct(), Identity(), on(NAME), on(NAME), moved(ONE, ABSENT))
    there = moved(ONE, VOID) + -moved(ABSENT, VOID)
    lower = -moved(ONE, OBJECTIVE) + -moved(ONE, VOID, power=1.0)
    least_objective = first_of_equals(lower, on(POSITION, ABSENT), OBJECTIVE, VOID)
    return Sublayer("prune", (
        Stage("assign", "members",
              (Read("nearest", NEAREST, ("slots",)), Read("second", SECOND, ("slots",))),
              (squared(UTILITY, POSITION, OTHER), squared(UTILITY, POSITION, CENTER, -1.0)),
              of=("points",)),
        Stage("utility", "valued", (Read("sum", member_sum(UTILITY), ("members",)),),
              of=("slots",)),
        Stage("rank", "ranked", (Read("least", least, ("valued",)),), of=("candidates",)),
        Stage("each", "verdicts", of=("ranked",), along="ranked"),
        Stage("vanish", "proposals", (Read("one", vanish, ("verdicts",)),),
              of=("slots",), along="ranked"),
        Stage("ahead", "ahead", (Read("nearest", ASSIGN, ("proposals",)),),
              of=("points",), along="ranked"),
        Stage("move", "proposals", mean_update("proposals", "ahead", "proposals")),
        Stage("weigh", "ahead", (Read("own", OWN, ("proposals",)),), SQUARED_ERROR),
        Stage("judge", "verdicts", (Read("total", TOTAL_ERROR, ("ahead",)),)),
        Stage("tell", "proposals", (from_single_token("verdicts", on(OBJECTIVE, VOID)),)),
        Stage("need", "standing",
              (Read("there", total(there), ("slots",)),
               Read("wanted", total(-there), ("centers",))),
              of=("slots",)),
        Stage("choose", "slots",
              (from_itself("slots", -on(POSITION, ABSENT)),
               Read("best", least_objective, ("standing", "proposals"), across=True))),
    ), repeated=True)  # fmt: skip


def keep(margin: float) -> Sublayer:
    """A last step of Lloyd's algorithm; keep the new centers if their objective is lower."""
    seat = Head(DotProduct(), Ranked(), -moved(ONE, ABSENT), on(ABSENT), HERE)
    return Sublayer("keep", (
        *settle().stages,
        Stage("weigh", "members", (Read("own", OWN, ("slots",)),), SQUARED_ERROR),
        Stage("judge", "after", (Read("total", TOTAL_ERROR, ("members",)),),
              of=("verdict",)),
        Stage("gather", "found",
              (from_itself("found", -HERE), Read("seat", seat, ("slots",)),
               from_single_token("after", on(OBJECTIVE))),
              of=("centers",)),
        Stage("stand", "standing", (from_single_token("before", (1 - margin) * on(OBJECTIVE)),),
              of=("centers",)),
        Stage("choose", "centers",
              (from_itself("centers", -HERE),
               Read("best", best(-moved(ONE, OBJECTIVE), HERE, OBJECTIVE), ("standing", "found"),
                    across=True))),
    ))  # fmt: skip
