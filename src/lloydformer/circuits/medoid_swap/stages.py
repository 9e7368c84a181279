"""The stages of an exchange: draw candidates, add each, remove the medoid that costs least, keep.

docs/medoids.md derives them.
"""

from lloydformer.circuits.activations import Lots, Ranked
from lloydformer.circuits.heads import Head
from lloydformer.circuits.products import squared
from lloydformer.circuits.projections import moved, on
from lloydformer.circuits.relocating.heads import (
    FIRST,
    HERE,
    NEAREST,
    SECOND,
    SQUARED_ERROR,
    TOTAL_ERROR,
    best,
    from_itself,
    from_single_token,
    member_sum,
)
from lloydformer.circuits.relocating.subspaces import CENTER, ERROR, OBJECTIVE, OTHER, TWIN, UTILITY
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import Read, Stage, Sublayer
from lloydformer.circuits.subspaces import ABSENT, NAME, ONE, POSITION


def exchange(margin: float) -> Sublayer:
    """The best exchange of a drawn point and a medoid, if it lowers the loss."""
    draw = Head(DotProduct(), Lots(1.0, Ranked()), moved(ONE, ERROR), on(ERROR), HERE)
    cheapest = Head(
        DotProduct(), FIRST, -moved(ONE, UTILITY), on(UTILITY),
        moved(UTILITY, OBJECTIVE) + on(NAME),
    )  # fmt: skip
    place = Head(DotProduct(), FIRST, on(NAME), moved(TWIN, NAME) + 0.5 * on(NAME), HERE)
    return Sublayer("exchange", (
        Stage("assign", "assigned", (Read("nearest", NEAREST, ("centers",)),), SQUARED_ERROR,
              of=("points",)),
        Stage("judge", "before", (Read("total", TOTAL_ERROR, ("assigned",)),), of=("verdict",)),
        Stage("draw", "drawn", (Read("point", draw, ("assigned",), lots="drawn"),),
              of=("draws",), along="verdict"),
        Stage("take", "candidates",
              (Read("drawn", best(on(ONE), HERE, ONE), ("drawn",), across=True),), of=("draws",)),
        Stage("each", "candidate", of=("candidates",), along="candidates"),
        Stage("offer", "offer",
              (from_itself("offer", -on(ABSENT)), from_single_token("candidate", HERE)),
              of=("spares",), along="candidates"),
        Stage("stay", "medoids", of=("centers",), along="candidates"),
        Stage("ahead", "ahead",
              (Read("nearest", NEAREST, ("medoids", "offer")),
               Read("second", SECOND, ("medoids", "offer"))),
              (*SQUARED_ERROR, squared(UTILITY, POSITION, OTHER),
               squared(UTILITY, POSITION, CENTER, -1.0)),
              of=("points",), along="candidates"),
        Stage("utility", "medoids", (Read("sum", member_sum(UTILITY), ("ahead",)),)),
        Stage("weigh", "verdicts",
              (Read("total", TOTAL_ERROR, ("ahead",)), Read("least", cheapest, ("medoids",))),
              of=("verdict",), along="candidates"),
        Stage("address", "offer", (from_single_token("verdicts", moved(NAME, TWIN)),)),
        Stage("replace", "proposals",
              (from_itself("proposals", -HERE), Read("place", place, ("proposals", "offer")),
               from_single_token("verdicts", on(OBJECTIVE))),
              of=("centers",), along="candidates"),
        Stage("stand", "standing", (from_single_token("before", (1 - margin) * on(OBJECTIVE)),),
              of=("centers",)),
        Stage("choose", "centers",
              (from_itself("centers", -HERE),
               Read("best", best(-moved(ONE, OBJECTIVE), HERE, OBJECTIVE),
                    ("standing", "proposals"), across=True))),
    ))  # fmt: skip
