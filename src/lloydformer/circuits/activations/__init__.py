"""Activations: from the scores of a query to the weights of the keys."""

from lloydformer.circuits.activations.contract import NOTHING, Activation, Context
from lloydformer.circuits.activations.dense import Identity, Linear, LogSoftmax, Softmax
from lloydformer.circuits.activations.hard import Gumbel, LimitingSoftmax, Ties
from lloydformer.circuits.activations.sparse import NormMax, Sparsemax, TopK

__all__ = [
    "NOTHING",
    "Activation",
    "Context",
    "Gumbel",
    "Identity",
    "LimitingSoftmax",
    "Linear",
    "LogSoftmax",
    "NormMax",
    "Softmax",
    "Sparsemax",
    "Ties",
    "TopK",
]
