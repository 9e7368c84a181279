"""Plots of models, circuits, clusterings, training and times; diagrams of recipes; HTML pages.

`plot` draws the clusters of a fitted model and returns a figure, `diagram` returns SVG. The other
functions take matplotlib axes and return them. All but `diagram` need the extra `plots`. May import
every room but `paper` and `app`. Begin with `models.py`; diagrams are drawn without matplotlib in
`diagrams/`, and pages are built in `report/`.
"""

from lloydformer.plots.clusters import trajectories
from lloydformer.plots.curves import convergence, objective_curve
from lloydformer.plots.diagrams import diagram
from lloydformer.plots.heatmaps import attention_map, weights
from lloydformer.plots.models import plot
from lloydformer.plots.times import times

__all__ = [
    "attention_map",
    "convergence",
    "diagram",
    "objective_curve",
    "plot",
    "times",
    "trajectories",
    "weights",
]
