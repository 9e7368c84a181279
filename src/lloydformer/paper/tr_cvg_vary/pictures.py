"""fig:tr-cvg-vary: one figure that varies k, and one that varies d."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.tr_cvg_vary.settings import BY_CLUSTERS, BY_FEATURES, LABEL
from lloydformer.paper.training_curves_figure import curves_picture


def pictures(result: Record) -> Sequence[Picture]:
    """Two figures with one column for each setting."""
    parts = {
        "clusters": (BY_CLUSTERS, [f"k = {s.n_clusters}" for s in BY_CLUSTERS], "d = 32"),
        "features": (BY_FEATURES, [f"d = {s.n_features}" for s in BY_FEATURES], "k = 6"),
    }
    return [
        curves_picture(
            result, settings, titles, f"{LABEL}-{name}", f"{fixed}, lambda = 0.1, varying {name}"
        )
        for name, (settings, titles, fixed) in parts.items()
    ]
