"""Plots of circuits, training and times, and diagrams of recipes.

`diagram` returns SVG. The others take axes and return them, and need the extra `plots`.
"""

from lloydformer.plots.attention import attention_map
from lloydformer.plots.diagrams import diagram
from lloydformer.plots.objective import objective_curve
from lloydformer.plots.times import times
from lloydformer.plots.training import convergence
from lloydformer.plots.trajectories import trajectories
from lloydformer.plots.weights import weights

__all__ = [
    "attention_map",
    "convergence",
    "diagram",
    "objective_curve",
    "times",
    "trajectories",
    "weights",
]
