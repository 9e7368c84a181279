"""The subspaces that a recombination needs beside those of a relocation."""

from lloydformer.circuits.relocating.subspaces import INNER as OF_RELOCATION
from lloydformer.circuits.stages import Kind
from lloydformer.circuits.subspaces import Subspace

MASS = Subspace("mass", "w")
"""Centers: number of their points. Of a pair: that of both."""
COST = Subspace("cost", "κ")
"""Pairs of centers: the amount by which the objective grows if they are merged (Ward)."""

_NUMBER: Kind = "number"
INNER = (*OF_RELOCATION, (MASS, _NUMBER), (COST, _NUMBER))
"""All subspaces of these tokens, with the kind of their size."""
