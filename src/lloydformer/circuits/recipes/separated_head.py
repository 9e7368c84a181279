"""The decoder's head of the algorithms that weigh the points of a cluster by their distance."""

from lloydformer.circuits.activations import Activation
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import on, separated
from lloydformer.circuits.scores import Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION


def separated_head(activation: Activation, separation: float | None) -> Head:
    """Decoder cross-attention by distance; other clusters' scores are lowered by 2 * separation.

    See sec:methods:robust.
    """
    apart = on(POSITION) + separated(ASSIGNMENT)
    return Head(Euclidean(), activation, apart, apart, on(POSITION), separation)
