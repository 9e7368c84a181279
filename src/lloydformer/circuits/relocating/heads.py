"""Heads and reads that several sub-layers of a relocation use."""

from dataclasses import replace

from lloydformer.circuits.activations import FirstOfEquals, Identity, LimitingSoftmax, Ranked
from lloydformer.circuits.heads import Head
from lloydformer.circuits.products import squared
from lloydformer.circuits.projections import Projection, moved, on, separated
from lloydformer.circuits.relocating.subspaces import CENTER, ERROR, OBJECTIVE, OTHER
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.stages import Read
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Subspace

FIRST, EVENLY = LimitingSoftmax("first"), LimitingSoftmax("average")
HERE, CODE = on(POSITION), moved(NAME, ASSIGNMENT)

NEAREST = Head(Euclidean(), FIRST, HERE, HERE + separated(ABSENT), CODE + moved(POSITION, CENTER))
"""A point reads the code and position of the nearest center that is present."""
ASSIGN = replace(NEAREST, value=CODE)
"""A point reads the code of the nearest center that is present."""
SECOND = replace(NEAREST, activation=Ranked(1), value=moved(POSITION, OTHER))
"""A point reads the position of the second nearest center that is present."""
OWN = Head(DotProduct(), FIRST, on(ASSIGNMENT), CODE, moved(POSITION, CENTER))
"""A point reads the new position of its center."""
MEAN = Head(DotProduct(), EVENLY, CODE, on(ASSIGNMENT) + 0.5 * CODE, HERE)
"""A center reads the mean of its points (score 1) or, if it has none, itself (score 1/2)."""


def total(value: Projection) -> Head:
    """Sum a number over all keys."""
    return Head(DotProduct(), Identity(), on(ONE), on(ONE), value)


def member_sum(number: Subspace) -> Head:
    """Sum a number over the points of each center."""
    return Head(DotProduct(), Identity(), CODE, on(ASSIGNMENT), on(number))


def best(query: Projection, value: Projection, *keys: Subspace) -> Head:
    """Read the value of the key with the largest score."""
    return Head(DotProduct(), FIRST, query, on(*keys), value)


def first_of_equals(query: Projection, value: Projection, *keys: Subspace) -> Head:
    """Read the best key, the first of those whose scores differ by rounding only."""
    return replace(best(query, value, *keys), activation=FirstOfEquals())


def from_itself(target: str, value: Projection) -> Read:
    """A token reads itself, found by its name. A negative value cancels the residual exactly."""
    return Read("self", Head(DotProduct(), FIRST, on(NAME), on(NAME), value), (target,))


def from_single_token(source: str, value: Projection) -> Read:
    """Read the only token of a set."""
    return Read("hear", best(on(ONE), value, ONE), (source,))


def mean_update(target: str, *sources: str) -> tuple[Read, Read]:
    """Lloyd's update: cancel the old position, write the mean."""
    return from_itself(target, -HERE), Read("mean", MEAN, sources)


TOTAL_ERROR = total(moved(ERROR, OBJECTIVE))
"""The objective: the sum of the errors of all points."""
SQUARED_ERROR = (squared(ERROR, POSITION, CENTER),)
"""The network that writes a point's squared distance to its center."""
