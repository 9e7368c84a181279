"""The transformer: from the named subspaces of a token to a circuit of many layers.

It imports `numerics` alone. Begin with `recipes/kmeans.py` (how a recipe is written) and
`layer.py` (how it runs); then, in the order of the data: `subspaces`, `tokens`, `projections`,
`scores`, `activations`, `heads`, `recipe`, `layer`, `circuit`, `trace`. `stages` and `staged_layer`
are for recipes of several sub-layers: `relocating`, `recombining`.
"""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from lloydformer.lazy_imports import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
