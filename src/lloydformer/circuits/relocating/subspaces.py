"""The subspaces of the wider tokens that a relocation computes with."""

from lloydformer.circuits.stages import Kind
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Subspace

CENTER = Subspace("center", "c")
"""Points: position of their center. Clusters: mean of the half that stays."""
OTHER = Subspace("other", "o")
"""Points: position of the second nearest center. Clusters: mean of the half that leaves."""
ERROR = Subspace("error", "r")
"""Points: squared distance to their center. Centers: the sum of it over their points."""
WEIGHTED = Subspace("weighted", "ry")
"""Points: the code of their cluster times their error."""
TWIN = Subspace("twin", "t")
"""Drawn points: the name of the cluster that they are drawn from."""
NEAR = Subspace("near", "ν")
"""Points: the code of their cluster if they are nearer to the drawn point than to its center."""
MARK = Subspace("mark", "μ")
"""1 in drawn points, and in the points that are nearer to one of them than to its center."""
SHARE = Subspace("share", "p")
"""Fraction of a cluster's points that are near."""
REST = Subspace("rest", "m")
"""Number of a cluster's points that are not near."""
APART = Subspace("apart", "b")
"""Squared distance between the means of the two halves."""
LOAD = Subspace("load", "l")
"""SHARE times REST."""
GAIN = Subspace("gain", "g")
"""The amount by which a split lowers the objective."""
UTILITY = Subspace("utility", "u")
"""Points: how much farther the second nearest center is. Centers: the sum of it."""
OBJECTIVE = Subspace("objective", "J")
"""The objective of a proposal."""
VOID = Subspace("void", "v")
"""0 in proposals that may be chosen."""

_SIZES: dict[Kind, tuple[Subspace, ...]] = {
    "position": (POSITION, CENTER, OTHER),
    "code": (ASSIGNMENT, NAME, TWIN, NEAR, WEIGHTED),
    "number": (ONE, ABSENT, ERROR, MARK, SHARE, REST, APART, LOAD, GAIN, UTILITY, OBJECTIVE, VOID),
}
INNER = tuple((subspace, kind) for kind, subspaces in _SIZES.items() for subspace in subspaces)
"""All subspaces of these tokens, with the kind of their size."""
