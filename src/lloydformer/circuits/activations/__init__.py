"""Activations: from the scores of a query to the weights of the keys.

`contract` has the protocol and the context that an activation gets; `dense`, `hard` and `sparse`
have those of the paper and of staged recipes, by how many keys get a weight; `transport` has those
whose keys have bounded sums. Any frozen dataclass
with the members of `Activation` is one; `serialise` finds those that are defined here.
"""

from lloydformer.circuits.activations.contract import NOTHING, Activation, Context, Reach
from lloydformer.circuits.activations.dense import Identity, Linear, LogSoftmax, Softmax
from lloydformer.circuits.activations.hard import (
    FirstOfEquals,
    Gumbel,
    LimitingSoftmax,
    Lots,
    Ranked,
    Ties,
)
from lloydformer.circuits.activations.sparse import NormMax, Sparsemax, TopK
from lloydformer.circuits.activations.straight_through import StraightThrough
from lloydformer.circuits.activations.transport import LimitingSinkhorn, Sinkhorn

__all__ = [
    "NOTHING",
    "Activation",
    "Context",
    "FirstOfEquals",
    "Gumbel",
    "Identity",
    "LimitingSinkhorn",
    "LimitingSoftmax",
    "Linear",
    "LogSoftmax",
    "Lots",
    "NormMax",
    "Ranked",
    "Reach",
    "Sinkhorn",
    "Softmax",
    "Sparsemax",
    "StraightThrough",
    "Ties",
    "TopK",
]
