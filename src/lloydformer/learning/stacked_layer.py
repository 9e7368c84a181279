"""The learned layer of many runs at once: parameters (runs, ...), tasks (runs, tasks, ...).

The same equation as `Circuit` with `recipes.learned()`, arranged for speed: scores by one product
of matrices, all runs in one batched product.
"""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.circuits.tokens import Tokens
from lloydformer.learning.dropout import Dropout
from lloydformer.learning.flat_layer import FlatLayer
from lloydformer.learning.stacked_heads import StackedHeads


@dataclass(frozen=True)
class StackedLayer(FlatLayer):
    """The layer of a learned recipe as a function of flat weights, one row for each run."""

    capturable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.recipe.free or not self.recipe.embeds_again:
            raise ValueError(
                f"recipe: found {self.recipe.name!r}; a stacked layer needs lf.recipes.learned()"
            )

    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "r b n d"],
        centers: Float[Tensor, "r b k d"],
        dropout: Dropout | None = None,
        depth: int = 0,
    ) -> Float[Tensor, "r b k d"]:
        """Return the centers after one step. `depth`: number of the unrolled layer."""
        x = F.pad(points, (0, self.dim - self.n_features))
        codes = _codes(self.recipe.tokens, centers.shape[2], centers.device, centers.dtype)
        c = torch.cat([centers, codes.expand(*centers.shape[:3], -1)], dim=-1)
        heads = StackedHeads(
            self.recipe, self.named(weights), self._dropped(x, c, dropout, depth)
        )  # fmt: skip
        # all projections of the same tokens are one product of matrices
        q1, k1, v1, q0 = heads.projected(
            x, "encoder_self.query", "encoder_self.key", "encoder_self.value", "encoder_cross.query"
        )
        k0, v0, q2, q3, k3, v3 = heads.projected(
            c, "encoder_cross.key", "encoder_cross.value", "decoder_cross.query",
            "decoder_self.query", "decoder_self.key", "decoder_self.value",
        )  # fmt: skip
        x = x + heads("encoder_self", q1, k1, v1) + heads("encoder_cross", q0, k0, v0)
        k2, v2 = heads.projected(x, "decoder_cross.key", "decoder_cross.value")
        c = c + heads("decoder_self", q3, k3, v3) + heads("decoder_cross", q2, k2, v2)
        return c[..., : self.n_features]

    def _dropped(
        self, x: Tensor, c: Tensor, dropout: Dropout | None, depth: int
    ) -> dict[str, Tensor] | None:
        if dropout is None:
            return None
        runs, tasks, n, _ = x.shape
        k = c.shape[2]
        sizes = {"encoder_cross": (n, k), "encoder_self": (n, n), "decoder_cross": (k, n),
                 "decoder_self": (k, k)}  # fmt: skip
        return dropout.indices({slot: (runs, tasks, *size) for slot, size in sizes.items()}, depth)


@cache
def _codes(
    tokens: Tokens, n_clusters: int, device: torch.device, dtype: torch.dtype
) -> Float[Tensor, "k m"]:
    """The codes of the clusters, cached on the device: a captured CUDA graph cannot copy them."""
    table = tokens.codes.table(n_clusters)
    return (table if ASSIGNMENT in tokens.subspaces else table[:, :0]).to(device, dtype)
