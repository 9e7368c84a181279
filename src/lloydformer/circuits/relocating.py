"""Relocation as a circuit: clusters split, centers vanish, and the better proposal stays.

Each sub-layer below is a few attentions with residuals; docs/relocating-circuit.md derives them.
"""

from dataclasses import replace

from lloydformer.circuits.activations import (
    FirstOfEquals,
    Identity,
    LimitingSoftmax,
    Lots,
    Ranked,
)
from lloydformer.circuits.heads import Head
from lloydformer.circuits.products import squared, times
from lloydformer.circuits.projections import Projection, moved, on, separated
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import Counts, Kind, Read, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Subspace
from lloydformer.circuits.tokens import plain
from lloydformer.numerics.checks import check_count

CENTER = Subspace("center", "c")
"""Points: where their center is. Clusters: the mean of the half that stays."""
OTHER = Subspace("other", "o")
"""Points: where the second nearest center is. Clusters: the mean of the half that leaves."""
ERROR = Subspace("error", "r")
"""Points: squared distance to their center. Centers: the sum of it."""
WEIGHTED = Subspace("weighted", "ry")
"""Points: the code of their cluster times their error."""
TWIN = Subspace("twin", "t")
"""Drawn points: the name of the cluster that they are drawn from."""
NEAR = Subspace("near", "ν")
"""Points: the code of their cluster if they are nearer to the point drawn than to its center."""
MARK = Subspace("mark", "μ")
"""Points that are near and drawn points: 1."""
SHARE = Subspace("share", "p")
"""The share of the near ones among a cluster's points."""
REST = Subspace("rest", "m")
"""The number of the others."""
APART = Subspace("apart", "b")
"""The squared distance of two halves' means."""
LOAD = Subspace("load", "l")
"""Share times rest."""
GAIN = Subspace("gain", "g")
"""By how much a split lowers the objective."""
UTILITY = Subspace("utility", "u")
"""How much farther the second nearest center is; centers: the sum of it."""
OBJECTIVE = Subspace("objective", "J")
"""What a proposal comes to."""
VOID = Subspace("void", "v")
"""0 in proposals that may be chosen."""

_SIZES: dict[Kind, tuple[Subspace, ...]] = {
    "position": (POSITION, CENTER, OTHER),
    "code": (ASSIGNMENT, NAME, TWIN, NEAR, WEIGHTED),
    "number": (ONE, ABSENT, ERROR, MARK, SHARE, REST, APART, LOAD, GAIN, UTILITY, OBJECTIVE, VOID),
}
INNER = tuple((subspace, kind) for kind, subspaces in _SIZES.items() for subspace in subspaces)

_FIRST, _EVENLY = LimitingSoftmax("first"), LimitingSoftmax("average")
_AT, _CODE = on(POSITION), moved(NAME, ASSIGNMENT)

NEAREST = Head(Euclidean(), _FIRST, _AT, _AT + separated(ABSENT), _CODE + moved(POSITION, CENTER))
"""A point asks for the nearest center that is there."""
ASSIGN = replace(NEAREST, value=_CODE)
SECOND = replace(NEAREST, activation=Ranked(1), value=moved(POSITION, OTHER))
OWN = Head(DotProduct(), _FIRST, on(ASSIGNMENT), _CODE, moved(POSITION, CENTER))
"""A point asks where its center has gone."""
MEAN = Head(DotProduct(), _EVENLY, _CODE, on(ASSIGNMENT) + 0.5 * _CODE, _AT)
"""A center asks for its points (score 1) and, should there be none, for itself (score 1/2)."""


def _total(value: Projection) -> Head:
    """Adds up a number over all that answer."""
    return Head(DotProduct(), Identity(), on(ONE), on(ONE), value)


def _sum(number: Subspace) -> Head:
    """A center adds up a number over its points."""
    return Head(DotProduct(), Identity(), _CODE, on(ASSIGNMENT), on(number))


def _best(query: Projection, value: Projection, *keys: Subspace) -> Head:
    return Head(DotProduct(), _FIRST, query, on(*keys), value)


def _first_of_equals(query: Projection, value: Projection, *keys: Subspace) -> Head:
    """The best, where equal ones do occur and rounding must not choose."""
    return replace(_best(query, value, *keys), activation=FirstOfEquals())


def _self(target: str, value: Projection) -> Read:
    """A token finds itself by its name: with the residual, what it wipes is exactly zero."""
    return Read("self", Head(DotProduct(), _FIRST, on(NAME), on(NAME), value), (target,))


def _hear(source: str, value: Projection) -> Read:
    """The one token that answers is believed."""
    return Read("hear", _best(on(ONE), value, ONE), (source,))


def _moving(target: str, *sources: str) -> tuple[Read, Read]:
    """Lloyd's update: the old position is wiped, the mean is written."""
    return _self(target, -_AT), Read("mean", MEAN, sources)


_TOTAL = _total(moved(ERROR, OBJECTIVE))
_WEIGH = (squared(ERROR, POSITION, CENTER),)


def _grow(sharpness: float) -> Sublayer:
    """Every cluster is split in some ways; spare centers draw which splits are made."""
    own_codes, rest_codes = on(ASSIGNMENT), on(ASSIGNMENT) + -moved(NEAR, ASSIGNMENT)
    draw = Head(DotProduct(), Lots(), moved(NAME, WEIGHTED), on(WEIGHTED), _AT)
    side = Head(
        Euclidean(),
        _FIRST,
        _AT + separated(ASSIGNMENT),
        _AT + moved(NAME, ASSIGNMENT, power=0.5),
        moved(TWIN, NEAR) + on(MARK),
    )
    near = Head(DotProduct(), _EVENLY, moved(NAME, NEAR), on(NEAR), _AT)
    rest = Head(DotProduct(), _EVENLY, _CODE, rest_codes, moved(POSITION, OTHER))
    share = Head(DotProduct(), _EVENLY, _CODE, own_codes, moved(MARK, SHARE))
    count = Head(DotProduct(), Identity(), _CODE, rest_codes, moved(ONE, REST))
    halves = moved(OTHER, CENTER) + moved(POSITION, OTHER) + on(GAIN)
    half = _first_of_equals(moved(ONE, GAIN), halves, GAIN)
    taken = moved(CENTER, POSITION) + moved(OTHER, CENTER) + 2.0 * _CODE + on(GAIN)
    cluster = Head(DotProduct(), Lots(sharpness, Ranked()), moved(ONE, ERROR), on(ERROR), taken)
    offer = on(POSITION, CENTER, ASSIGNMENT, ABSENT)
    turned = -_AT + moved(CENTER, POSITION) + -on(CENTER, ASSIGNMENT)
    return Sublayer("grow", (
        Stage("assign", "assigned", (Read("nearest", NEAREST, ("centers",)),),
              (*_WEIGH, times(WEIGHTED, ERROR, ASSIGNMENT)), of=("points",)),
        Stage("judge", "before", (Read("total", _TOTAL, ("assigned",)),),
              of=("verdict",)),
        Stage("errors", "clusters", (Read("sum", _sum(ERROR), ("assigned",)),), of=("centers",)),
        Stage("draw", "drawn",
              (_self("drawn", -_AT + moved(NAME, TWIN) + moved(ONE, MARK)),
               Read("point", draw, ("assigned",), lots="drawn")),
              of=("clusters",), along="draws"),
        Stage("sides", "halves", (Read("side", side, ("clusters", "drawn")),),
              of=("assigned",), along="draws"),
        Stage("split", "drawn",
              (_self("drawn", -_AT), Read("near", near, ("halves",)),
               Read("rest", rest, ("halves",)), Read("share", share, ("halves",)),
               Read("count", count, ("halves",))),
              (squared(APART, POSITION, OTHER), times(LOAD, SHARE, REST),
               times(GAIN, APART, LOAD))),
        Stage("best", "clusters",
              (Read("draw", half, ("drawn",), across=True),)),
        Stage("offer", "offers",
              (_self("offers", -on(ABSENT)), Read("cluster", cluster, ("clusters",), lots="grow")),
              of=("spares",)),
        Stage("accept", "spares",
              (_self("spares", -on(ABSENT)),
               Read("offer", _best(moved(ONE, GAIN), offer, GAIN), ("spares", "offers"),
                    across=True))),
        Stage("move", "moved", _moving("moved", "assigned", "centers", "spares"), of=("centers",)),
        Stage("turn", "spares", (_self("spares", turned),)),
        Stage("join", "slots", of=("moved", "spares")),
    ))  # fmt: skip


def _settle() -> Sublayer:
    """A step of Lloyd's with the centers that are there."""
    return Sublayer("settle", (
        Stage("assign", "members", (Read("nearest", ASSIGN, ("slots",)),), of=("points",)),
        Stage("move", "slots", _moving("slots", "members", "slots")),
    ))  # fmt: skip


def _prune() -> Sublayer:
    """Each candidate vanishes in a proposal of its own, which looks a step of Lloyd's ahead."""
    useless = -moved(ONE, UTILITY) + -moved(ONE, ABSENT, power=1.0)
    least = Head(
        DotProduct(), Ranked(in_order=True), useless, on(UTILITY, ABSENT),
        on(NAME) + moved(ABSENT, VOID),
    )  # fmt: skip
    vanish = Head(DotProduct(), Identity(), on(NAME), on(NAME), moved(ONE, ABSENT))
    there = _total(moved(ONE, VOID) + -moved(ABSENT, VOID))
    lower = -moved(ONE, OBJECTIVE) + -moved(ONE, VOID, power=1.0)
    best = _first_of_equals(lower, on(POSITION, ABSENT), OBJECTIVE, VOID)
    return Sublayer("prune", (
        Stage("assign", "members",
              (Read("nearest", NEAREST, ("slots",)), Read("second", SECOND, ("slots",))),
              (squared(UTILITY, POSITION, OTHER), squared(UTILITY, POSITION, CENTER, -1.0)),
              of=("points",)),
        Stage("utility", "valued", (Read("sum", _sum(UTILITY), ("members",)),), of=("slots",)),
        Stage("rank", "ranked", (Read("least", least, ("valued",)),), of=("candidates",)),
        Stage("each", "verdicts", of=("ranked",), along="ranked"),
        Stage("vanish", "proposals", (Read("one", vanish, ("verdicts",)),),
              of=("slots",), along="ranked"),
        Stage("ahead", "ahead", (Read("nearest", ASSIGN, ("proposals",)),),
              of=("points",), along="ranked"),
        Stage("move", "proposals", _moving("proposals", "ahead", "proposals")),
        Stage("weigh", "ahead", (Read("own", OWN, ("proposals",)),), _WEIGH),
        Stage("judge", "verdicts", (Read("total", _TOTAL, ("ahead",)),)),
        Stage("tell", "proposals", (_hear("verdicts", on(OBJECTIVE, VOID)),)),
        Stage("need", "standing",
              (Read("there", there, ("slots",)),
               Read("wanted", _total(-moved(ONE, VOID)), ("centers",))),
              of=("slots",)),
        Stage("choose", "slots",
              (_self("slots", -on(POSITION, ABSENT)),
               Read("best", best, ("standing", "proposals"), across=True))),
    ), repeated=True)  # fmt: skip


def _keep(margin: float) -> Sublayer:
    """A last step of Lloyd's; what was found stays if it is better than what there was."""
    seat = Head(DotProduct(), Ranked(), -moved(ONE, ABSENT), on(ABSENT), _AT)
    return Sublayer("keep", (
        *_settle().stages,
        Stage("weigh", "members", (Read("own", OWN, ("slots",)),), _WEIGH),
        Stage("judge", "after", (Read("total", _TOTAL, ("members",)),),
              of=("verdict",)),
        Stage("gather", "found",
              (_self("found", -_AT), Read("seat", seat, ("slots",)),
               _hear("after", on(OBJECTIVE))),
              of=("centers",)),
        Stage("stand", "standing", (_hear("before", (1 - margin) * on(OBJECTIVE)),),
              of=("centers",)),
        Stage("choose", "centers",
              (_self("centers", -_AT),
               Read("best", _best(-moved(ONE, OBJECTIVE), _AT, OBJECTIVE), ("standing", "found"),
                    across=True))),
    ))  # fmt: skip


def relocating(
    n_moved: int = 5,
    n_draws: int = 3,
    n_candidates: int = 64,
    sharpness: float = 2.0,
    margin: float = 1e-6,
) -> Staged:
    r"""Relocation of some centers, kept if the objective falls: a layer between `lloyd()` ones.

    Clusters are drawn by their error to the power `sharpness`, and the best of `n_draws` splits of
    each is made; a step of Lloyd's; then, one after the other, the center vanishes without which
    the objective is lowest after a step of Lloyd's, among the `n_candidates` of least utility;
    another step. It stands for 3 + n_moved layers: look-ahead counts, and numbers the noise.
    margin: by which share the objective must fall.
    """
    counts = Counts(
        spares=check_count("n_moved", n_moved),
        draws=check_count("n_draws", n_draws),
        candidates=check_count("n_candidates", n_candidates),
    )
    if not 0 <= margin < 1:
        raise ValueError(f"margin: found {margin!r}; pass a share from 0 to below 1")
    return Staged(
        name="relocating",
        tokens=plain(),
        inner=INNER,
        counts=counts,
        sublayers=(_grow(sharpness), _settle(), _prune(), _keep(margin)),
        algorithm="Relocating k-means",
        appendix="docs/relocating-circuit.md",
    )
