"""The sub-layers of a recombination: unite, merge, bear, steps of Lloyd's algorithm, and enter.

Relocation stands between `bear` and the steps; docs/recombining-circuit.md derives all of them.
"""

from dataclasses import replace

from lloydformer.circuits.activations import Identity, Linear, Ranked
from lloydformer.circuits.heads import Head
from lloydformer.circuits.products import Difference, Product, squared, times
from lloydformer.circuits.projections import moved, on
from lloydformer.circuits.recombining.subspaces import COST, MASS
from lloydformer.circuits.relocating.heads import (
    CODE,
    FIRST,
    HERE,
    NEAREST,
    SQUARED_ERROR,
    TOTAL_ERROR,
    best,
    first_of_equals,
    from_itself,
    from_single_token,
    total,
)
from lloydformer.circuits.relocating.sublayers import settle
from lloydformer.circuits.relocating.subspaces import (
    APART,
    CENTER,
    GAIN,
    LOAD,
    MARK,
    NEAR,
    OBJECTIVE,
    OTHER,
    SHARE,
    TWIN,
    UTILITY,
    VOID,
    WEIGHTED,
)
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import Read, Stage, Sublayer
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION

FAINT = 1e-30
"""Mass of the first of two centers without points: the merged one stands where it stood."""
SEAT = Head(DotProduct(), Ranked(), -moved(ONE, ABSENT), on(ABSENT), HERE)
"""The j-th token reads the position of the j-th center that is present."""


def unite() -> Sublayer:
    """Assign the points to both solutions; the 2k centers count their points."""
    count = Head(DotProduct(), Identity(), CODE, on(ASSIGNMENT), moved(ONE, MASS))
    return Sublayer("unite", (
        Stage("assign", "assigned", (Read("nearest", NEAREST, ("first",)),), SQUARED_ERROR,
              of=("points",)),
        Stage("assign_again", "assigned_again", (Read("nearest", NEAREST, ("second",)),),
              SQUARED_ERROR, of=("points",)),
        Stage("judge", "first_verdict", (Read("total", TOTAL_ERROR, ("assigned",)),),
              of=("verdict",)),
        Stage("judge_again", "second_verdict", (Read("total", TOTAL_ERROR, ("assigned_again",)),),
              of=("verdict",)),
        Stage("count", "united", (Read("points", count, ("assigned", "assigned_again")),),
              of=("centers",)),
    ))  # fmt: skip


def merge() -> Sublayer:
    """Merge the cheapest pair of centers: each center meets all others in its own proposal."""
    by_mass = Head(
        DotProduct(), Linear(),
        moved(NAME, WEIGHTED) + moved(TWIN, WEIGHTED) + FAINT * moved(TWIN, ASSIGNMENT),
        on(WEIGHTED) + CODE, moved(POSITION, OTHER) + CODE,
    )  # fmt: skip
    cheaper = -moved(ONE, COST) + -moved(ONE, VOID, power=1.0)
    of_partner = moved(POSITION, CENTER) + moved(NAME, TWIN) + moved(ABSENT, VOID)
    partner = on(COST, VOID, MASS) + moved(NAME, NEAR) + moved(OTHER, CENTER)
    pair = moved(NAME, TWIN) + on(NEAR, MASS) + moved(CENTER, POSITION)
    place = Head(DotProduct(), FIRST, on(NAME), moved(TWIN, NAME) + 0.5 * on(NAME), HERE + on(MASS))
    vanish = Head(DotProduct(), Identity(), on(NAME), moved(NEAR, NAME), moved(ONE, ABSENT))
    return Sublayer("merge", (
        Stage("each", "partners", of=("united",), along="united"),
        Stage("meet", "pairs",
              (from_single_token("partners", of_partner),),
              (squared(APART, POSITION, CENTER), times(VOID, NAME, TWIN), times(VOID, ABSENT, ONE)),
              of=("united",), along="centers"),
        Stage("weigh", "weighed", networks=(times(WEIGHTED, MASS, NAME),), of=("united",)),
        Stage("cost", "pairs", (Read("both", by_mass, ("weighed",)),),
              (times(SHARE, ASSIGNMENT, TWIN), times(LOAD, SHARE, MASS), times(COST, LOAD, APART))),
        Stage("partner", "partners",
              (Read("cheapest", first_of_equals(cheaper, partner, COST, VOID), ("pairs",)),)),
        Stage("choose", "pair",
              (Read("cheapest", first_of_equals(cheaper, pair, COST, VOID), ("partners",),
                    across=True),),
              of=("verdict",)),
        Stage("replace", "united",
              (from_itself("united", -on(POSITION, MASS)),
               Read("place", place, ("united", "pair")), Read("vanish", vanish, ("pair",)))),
    ), repeated="merges")  # fmt: skip


def bear() -> Sublayer:
    """The centers that are left become the first k tokens of the child."""
    return Sublayer("bear", (
        Stage("gather", "child", (from_itself("child", -HERE), Read("seat", SEAT, ("united",))),
              of=("first",)),
    ))  # fmt: skip


def step(number: int) -> Sublayer:
    """A step of Lloyd's algorithm with the child."""
    part = settle().renamed({"slots": "child", "members": "followers"})
    return replace(part, name=f"step_{number}")


def enter(same: float) -> Sublayer:
    """The two best of both solutions and the child, the better one first.

    A child whose objective is that of a parent, up to the fraction `same`, is not taken.
    """
    lower = -moved(ONE, OBJECTIVE) + -moved(ONE, VOID, power=1.0)
    lowest = best(lower, HERE, OBJECTIVE, VOID)
    among, seats = ("stands", "stands_again", "child"), Read("seat", SEAT, ("second",))
    alike = (
        Product(GAIN, Difference(OBJECTIVE), Difference(OBJECTIVE), same**2),
        squared(GAIN, OBJECTIVE, UTILITY, -1.0),
    )
    parents = ("first_verdict", "second_verdict")
    return Sublayer("enter", (
        Stage("assign", "born", (Read("nearest", NEAREST, ("child",)),), SQUARED_ERROR,
              of=("points",)),
        Stage("judge", "child_verdict", (Read("total", TOTAL_ERROR, ("born",)),), of=("verdict",)),
        Stage("unlike", "unlike", of=parents),
        Stage("compare", "alike",
              (from_single_token("child_verdict", moved(OBJECTIVE, UTILITY) + moved(ONE, MARK)),),
              alike, of=parents),
        Stage("same", "parents",
              (Read("same", best(moved(ONE, GAIN), on(MARK), GAIN), ("alike", "unlike"),
                    across=True),),
              of=parents),
        Stage("refuse", "child_verdict", (Read("same", total(moved(MARK, VOID)), ("parents",)),)),
        Stage("tell", "child", (from_single_token("child_verdict", on(OBJECTIVE, VOID)),)),
        Stage("stand", "stands", (from_single_token("first_verdict", on(OBJECTIVE)),),
              of=("first",)),
        Stage("stand_again", "stands_again",
              (from_itself("stands_again", -HERE), seats,
               from_single_token("second_verdict", on(OBJECTIVE))),
              of=("first",)),
        Stage("better", "better",
              (from_itself("better", -HERE), Read("best", lowest, among, across=True)),
              of=("first",)),
        Stage("other", "other",
              (from_itself("other", -HERE),
               Read("second", replace(lowest, activation=Ranked(1)), among, across=True)),
              of=("first",)),
        Stage("pool", "centers",
              (from_itself("centers", -HERE), Read("seat", SEAT, ("better", "other")))),
    ))  # fmt: skip
