"""Models for other programs: fits and predictions as ONNX graphs, and standard transformers.

Uses `circuits` and `estimators`. Begin with `onnx_fits.py`, where each algorithm is one function
over a few operators, or with `plain_transformer.py`: a transformer in plain torch, whose weights
`transformer.py` compiles from a recipe. Circuits themselves are exported by `Circuit.export`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.export.onnx_fits import fit_onnx as fit_onnx
    from lloydformer.export.onnx_fits import predict_onnx as predict_onnx
    from lloydformer.export.transformer import CompiledTransformer as CompiledTransformer
    from lloydformer.export.transformer import compile_transformer as compile_transformer
else:  # the same names, each imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "CompiledTransformer": "lloydformer.export.transformer",
        "compile_transformer": "lloydformer.export.transformer",
        "fit_onnx": "lloydformer.export.onnx_fits",
        "predict_onnx": "lloydformer.export.onnx_fits",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
