"""For research on interpretability: the known answer about a circuit, and tools to find it.

Uses `circuits` and `export`. Begin with `layer_graph.py`: which head computes what, and which paths
carry it. `tasks.py` has inputs that differ in one variable, `tools.py` patching, ablation and
attribution, `disguises.py` models whose weights do not show the answer, `hooks.py` the step to
TransformerLens. The benchmark: `finders.py` has the methods, `layer_problem.py` what they run on,
`benchmark.py` the cases and their scores.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.interp.disguises import Disguised as Disguised
    from lloydformer.interp.disguises import DisguisedCircuit as DisguisedCircuit
    from lloydformer.interp.disguises import disguise as disguise
    from lloydformer.interp.disguises import disguise_circuit as disguise_circuit
    from lloydformer.interp.finders import FindingProblem as FindingProblem
    from lloydformer.interp.finders import area_under_curve as area_under_curve
    from lloydformer.interp.finders import score_edges as score_edges
    from lloydformer.interp.hooks import hooked as hooked
    from lloydformer.interp.layer_graph import Edge as Edge
    from lloydformer.interp.layer_graph import LayerNode as LayerNode
    from lloydformer.interp.layer_graph import Truth as Truth
    from lloydformer.interp.layer_graph import ablate_edge as ablate_edge
    from lloydformer.interp.layer_graph import truth as truth
    from lloydformer.interp.layer_problem import LayerProblem as LayerProblem
    from lloydformer.interp.layer_problem import resampled_pairs as resampled_pairs
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
        "DisguisedCircuit": "lloydformer.interp.disguises",
        "Edge": "lloydformer.interp.layer_graph",
        "FindingProblem": "lloydformer.interp.finders",
        "InputPair": "lloydformer.interp.tasks",
        "LayerNode": "lloydformer.interp.layer_graph",
        "LayerProblem": "lloydformer.interp.layer_problem",
        "Truth": "lloydformer.interp.layer_graph",
        "ablate": "lloydformer.interp.tools",
        "ablate_edge": "lloydformer.interp.layer_graph",
        "area_under_curve": "lloydformer.interp.finders",
        "attribute": "lloydformer.interp.tools",
        "disguise": "lloydformer.interp.disguises",
        "disguise_circuit": "lloydformer.interp.disguises",
        "hooked": "lloydformer.interp.hooks",
        "pairs": "lloydformer.interp.tasks",
        "patch_activations": "lloydformer.interp.tools",
        "patch_edges": "lloydformer.interp.tools",
        "resampled_pairs": "lloydformer.interp.layer_problem",
        "score_edges": "lloydformer.interp.finders",
        "truth": "lloydformer.interp.layer_graph",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
