"""Activations: from the scores of a query to the weights of the keys."""

from lloydformer.circuits.activations.contract import NOTHING, Activation, Context, Reach
from lloydformer.circuits.activations.dense import Identity, Linear, LogSoftmax, Softmax
from lloydformer.circuits.activations.hard import Gumbel, LimitingSoftmax, Ties
from lloydformer.circuits.activations.ranked import FirstOfEquals, Lots, Ranked
from lloydformer.circuits.activations.sparse import NormMax, Sparsemax, TopK
from lloydformer.circuits.activations.straight_through import StraightThrough

__all__ = [
    "NOTHING",
    "Activation",
    "Context",
    "FirstOfEquals",
    "Gumbel",
    "Identity",
    "LimitingSoftmax",
    "Linear",
    "LogSoftmax",
    "Lots",
    "NormMax",
    "Ranked",
    "Reach",
    "Softmax",
    "Sparsemax",
    "StraightThrough",
    "Ties",
    "TopK",
]
