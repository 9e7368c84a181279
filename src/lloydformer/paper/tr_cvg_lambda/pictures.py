"""fig:tr-cvg-lambda: one figure for d = 4 and one for d = 32."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.tr_cvg_lambda.settings import HIGH, LABEL, LOW
from lloydformer.paper.training_curves_figure import curves_picture


def pictures(result: Record) -> Sequence[Picture]:
    """Two figures with one column for each temperature."""
    found = []
    for settings in (LOW, HIGH):
        d, titles = settings[0].n_features, [rf"$\lambda = {s.temperature:g}$" for s in settings]
        name, about = f"{LABEL}-d{d}", f"d = {d}, k = 6"
        found.append(curves_picture(result, settings, titles, name, about))
    return found
