"""Soft clustering for networks that are trained through it: operators and a module of torch.

Uses `numerics`, and `estimators` to place centers. Begin with `operators.py`: the equations, the
operators and the public functions; `modules.py` has the layer over them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.nn.modules import SoftAssign as SoftAssign
    from lloydformer.nn.operators import soft_assign as soft_assign
    from lloydformer.nn.operators import soft_sums as soft_sums
else:  # the same names, each imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "SoftAssign": "lloydformer.nn.modules",
        "soft_assign": "lloydformer.nn.operators",
        "soft_sums": "lloydformer.nn.operators",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
