"""For research on interpretability: the known answer about a circuit, and tools to find it.

Uses `circuits` and `export`. Begin with `layer_graph.py`: which head computes what, and which paths
carry it. `tasks.py` has inputs that differ in one variable, `tools.py` patching, ablation and
attribution, `disguises.py` models whose weights do not show the answer, `hooks.py` the step to
TransformerLens.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.interp.disguises import Disguised as Disguised
    from lloydformer.interp.disguises import disguise as disguise
    from lloydformer.interp.hooks import hooked as hooked
    from lloydformer.interp.layer_graph import Edge as Edge
    from lloydformer.interp.layer_graph import LayerNode as LayerNode
    from lloydformer.interp.layer_graph import Truth as Truth
    from lloydformer.interp.layer_graph import ablate_edge as ablate_edge
    from lloydformer.interp.layer_graph import truth as truth
    from lloydformer.interp.tasks import InputPair as InputPair
    from lloydformer.interp.tasks import pairs as pairs
    from lloydformer.interp.tools import ablate as ablate
    from lloydformer.interp.tools import attribute as attribute
    from lloydformer.interp.tools import patch_activations as patch_activations
    from lloydformer.interp.tools import patch_edges as patch_edges
else:  # the same names, each imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "Disguised": "lloydformer.interp.disguises",
        "Edge": "lloydformer.interp.layer_graph",
        "LayerNode": "lloydformer.interp.layer_graph",
        "InputPair": "lloydformer.interp.tasks",
        "Truth": "lloydformer.interp.layer_graph",
        "ablate": "lloydformer.interp.tools",
        "ablate_edge": "lloydformer.interp.layer_graph",
        "attribute": "lloydformer.interp.tools",
        "disguise": "lloydformer.interp.disguises",
        "hooked": "lloydformer.interp.hooks",
        "pairs": "lloydformer.interp.tasks",
        "patch_activations": "lloydformer.interp.tools",
        "patch_edges": "lloydformer.interp.tools",
        "truth": "lloydformer.interp.layer_graph",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
