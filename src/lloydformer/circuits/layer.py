"""The layer: one iteration of the algorithm, as the paper's equation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.activations import Context
from lloydformer.circuits.heads import Attention, Head, Numbers
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION, Space

Noise = Callable[[str, Tensor], Tensor]
"""Returns the noise of a slot, of the shape of the scores."""


class Layer(nn.Module):
    r"""One layer of a recipe.

    $X \leftarrow X + \mathcal{A}(X, X) + \mathcal{A}(X, C)$ and
    $C \leftarrow C + \mathcal{A}(C, C) + \mathcal{A}(C, X)$ (eq:l2-trf-updates). Self-attention
    is added first: it makes the residual exactly zero where cross-attention writes. If a slot has
    several heads, $\mathcal{A}$ is their sum.
    """

    def __init__(
        self, recipe: Recipe, space: Space, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.recipe, self.space = recipe, space
        self.assigning = "encoder_cross.attention"
        for name, head in recipe.heads.items():
            self.add_module(name, Attention(head, space, generator))
        self.numbers = recipe.numbers.build(space) if recipe.numbers else None
        self.feedforward = recipe.feedforward.build(space) if recipe.feedforward else None
        self.encoder_tokens, self.decoder_tokens = nn.Identity(), nn.Identity()
        self.encoder_residual, self.decoder_residual = nn.Identity(), nn.Identity()
        self.decoder_middle = nn.Identity()
        self.encoder_next, self.decoder_next = nn.Identity(), nn.Identity()

    def forward(
        self,
        encoder: Float[Tensor, "*b n dim"],
        decoder: Float[Tensor, "*b k dim"],
        layer_context: "LayerContext",
    ) -> tuple[Float[Tensor, "*b n dim"], Float[Tensor, "*b k dim"]]:
        x, c = self.encoder_tokens(encoder), self.decoder_tokens(decoder)
        numbers: Numbers | None = None
        if self.numbers is not None:
            x, numbers = self.numbers(x, c, layer_context.time)
        attend = layer_context.bind(self, numbers)
        residual = self.encoder_residual(x + attend("encoder_self", x, x))
        x = residual + attend("encoder_cross", x, c)
        if self.recipe.affinity:
            x = x + attend("affinity", x, c)
        x = self.encoder_next(x)
        residual = self.decoder_residual(c + attend("decoder_self", c, c))
        c = self.decoder_middle(residual + attend("decoder_cross", c, x))
        if self.recipe.norm:
            c = self.space.write(c, POSITION, self.recipe.norm(self.space.read(c, POSITION)))
        if self.feedforward is not None:
            c = c + self.feedforward(c)
        return x, self.decoder_next(c)


@dataclass(frozen=True)
class LayerContext:
    """What the heads of one layer use in addition to the tokens.

    separation: the paper's delta. rounding: scores that differ by less than this may be equal
    except for rounding. time: from 0 in the first layer to 1 in the last.
    """

    n_clusters: int
    separation: float = 0.0
    rounding: float = 0.0
    noise: Noise | None = None
    time: float = 0.0

    @classmethod
    def for_reach(
        cls,
        reach: float,
        recipe: AnyRecipe,
        decoder: Tensor,
        noise: Noise | None = None,
        time: float = 0.0,
    ) -> "LayerContext":
        """Return the context for squared distances up to `reach` and the dtype of the tokens."""
        n_clusters = decoder.shape[-2]
        eps = torch.finfo(decoder.dtype).eps
        separation = recipe.separation(reach, n_clusters, eps)
        return cls(n_clusters, separation, 4 * eps * reach, noise, time)

    def bind(
        self, layer: Layer, numbers: Numbers | None = None
    ) -> Callable[[str, Tensor, Tensor], Tensor]:
        """Return a function that runs the heads of a slot of this layer with their context."""
        recipe = layer.recipe

        def attend(slot: str, tokens: Tensor, sources: Tensor) -> Tensor:
            def output(name: str, head: Head) -> Tensor:
                attention: Attention = getattr(layer, name)
                context = self.context(recipe, slot, head)
                return attention(tokens, sources, context, self.separation, numbers)

            return reduce(add, (output(*named) for named in recipe.slots[slot].items()))

        return attend

    def context(self, recipe: Recipe, slot: str, head: Head) -> Context:
        """Return the context of a head's activation."""
        noise = self.noise
        return Context(
            gap=recipe.gap(self.separation, self.n_clusters),
            tolerance=self._tolerance(slot, head),
            noise=partial(noise, slot) if noise else None,
        )

    def _tolerance(self, slot: str, head: Head) -> float:
        """Return the difference up to which maxima of limiting soft-max count as equal.

        Between a point and two centers: the rounding error. Between memberships: they are 1/m
        with m at most k, so different ones differ by at least 1/k^2; smaller differences are
        rounding (docs/errata.md, 7). Between points: zero.
        """
        if isinstance(head.score, DotProduct) and head.query.subspaces == {ASSIGNMENT}:
            return 1 / (2 * self.n_clusters**2)
        return self.rounding if slot == "encoder_cross" else 0.0
