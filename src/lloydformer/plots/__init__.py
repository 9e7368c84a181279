"""Plots of circuits, clusterings, training and times; diagrams of recipes; HTML pages.

`diagram` returns SVG. The other functions take matplotlib axes and return them; they need the
extra `plots`. May import every room but `paper` and `app`. Begin with `curves.py`; diagrams are
drawn without matplotlib in `diagrams/`, and pages are built in `report/`.
"""

from lloydformer.plots.clusters import trajectories
from lloydformer.plots.curves import convergence, objective_curve
from lloydformer.plots.diagrams import diagram
from lloydformer.plots.heatmaps import attention_map, weights
from lloydformer.plots.times import times

__all__ = [
    "attention_map",
    "convergence",
    "diagram",
    "objective_curve",
    "times",
    "trajectories",
    "weights",
]
