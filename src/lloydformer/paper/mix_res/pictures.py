"""fig:mix-res: the objective over the steps, one panel for each family."""

from collections.abc import Sequence

from lloydformer.learning.families import FAMILIES
from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.lloyd_comparison import N_STEPS
from lloydformer.paper.lloyd_comparison_figure import panels
from lloydformer.paper.mix_res.settings import LABEL, TITLES


def pictures(result: Record) -> Sequence[Picture]:
    """One figure."""
    curves = {TITLES[family]: result["curves"][family] for family in FAMILIES}
    caption = (
        f"The log objective over {N_STEPS} steps: mean over {result['n_tasks']} tasks a family, "
        "ribbons from the least to the greatest."
    )
    return [Picture(LABEL, panels(curves), caption)]
