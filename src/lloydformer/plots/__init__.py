"""Plots of models, circuits, clusterings, training and times; diagrams of recipes; HTML pages.

`plot` draws the clusters of a fitted model and returns a figure, `diagram` returns SVG. The other
functions take matplotlib axes and return them. All but `diagram` need the extra `plots`. May import
every room but `paper` and `app`. Begin with `models.py`; diagrams are drawn without matplotlib in
`diagrams/`, and pages are built in `report/`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.plots.clusters import trajectories as trajectories
    from lloydformer.plots.curves import convergence as convergence
    from lloydformer.plots.curves import objective_curve as objective_curve
    from lloydformer.plots.diagrams import diagram as diagram
    from lloydformer.plots.heatmaps import attention_map as attention_map
    from lloydformer.plots.heatmaps import weights as weights
    from lloydformer.plots.models import plot as plot
    from lloydformer.plots.time_chart import times as times
else:  # the same names, each imported when it is first used: `fit` needs `axes.py` alone
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "attention_map": "lloydformer.plots.heatmaps",
        "convergence": "lloydformer.plots.curves",
        "diagram": "lloydformer.plots.diagrams",
        "objective_curve": "lloydformer.plots.curves",
        "plot": "lloydformer.plots.models",
        "times": "lloydformer.plots.time_chart",
        "trajectories": "lloydformer.plots.clusters",
        "weights": "lloydformer.plots.heatmaps",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
