"""Plots of circuits, training and times. Each takes axes and returns them.

Needs the extra `plots`.
"""

from lloydformer.plots.attention import attention_map
from lloydformer.plots.objective import objective_curve
from lloydformer.plots.times import times
from lloydformer.plots.training import convergence
from lloydformer.plots.trajectories import trajectories
from lloydformer.plots.weights import weights

__all__ = ["attention_map", "convergence", "objective_curve", "times", "trajectories", "weights"]
