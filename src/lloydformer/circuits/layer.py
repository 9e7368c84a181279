"""The layer: one iteration of the algorithm, as the paper's equation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.activations import Context, Softmax
from lloydformer.circuits.activations.contract import Amount
from lloydformer.circuits.heads import Attended, Attention, Numbers
from lloydformer.circuits.outside import keeps_logarithms, measure_of, reach
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION, Space
from lloydformer.numerics.shares import log_shares

Noise = Callable[[str, Tensor], Tensor]
"""Returns the noise of a slot, of the shape of the scores."""


@dataclass(frozen=True)
class LayerContext:
    """What a layer uses in addition to the tokens.

    noise: for activations that draw. time: from 0 in the first layer to 1 in the last.
    """

    noise: Noise | None = None
    time: float = 0.0


class Layer(nn.Module):
    r"""One layer of a recipe.

    $X \leftarrow X + \mathcal{A}(X, X) + \mathcal{A}(X, C)$ and
    $C \leftarrow C + \mathcal{A}(C, C) + \mathcal{A}(C, X)$ (eq:l2-trf-updates). Self-attention
    is added first: it makes the residual exactly zero where cross-attention writes. If a slot has
    several heads, $\mathcal{A}$ is their sum.

    as_printed: without what stands outside of the transformer (see `outside`).
    """

    def __init__(
        self,
        recipe: Recipe,
        space: Space,
        generator: torch.Generator | None = None,
        as_printed: bool = False,
    ) -> None:
        super().__init__()
        self.recipe, self.space, self.as_printed = recipe, space, as_printed
        self.assigning = "encoder_cross.attention"
        for slot, heads in recipe.slots.items():
            for name, head in heads.items():
                measure = None if as_printed else measure_of(slot, head)
                self.add_module(name, Attention(head, space, generator, measure))
        self.log_shares = not as_printed and keeps_logarithms(recipe)
        order = ("encoder_self", "encoder_cross", "affinity", "decoder_self", "decoder_cross")
        self.separated_slot = next(
            (s for s in order if any(h.separated for h in recipe.slots.get(s, {}).values())), None
        )
        if self.separated_slot:
            self.separation, self.gap = nn.Identity(), nn.Identity()
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
        layer_context: LayerContext,
    ) -> tuple[Float[Tensor, "*b n dim"], Float[Tensor, "*b k dim"]]:
        x, c = self.encoder_tokens(encoder), self.decoder_tokens(decoder)
        numbers: Numbers | None = None
        if self.numbers is not None:
            x, numbers = self.numbers(x, c, layer_context.time)
        run = _Running(self, x, c, numbers, layer_context.noise)
        residual = self.encoder_residual(x + run("encoder_self", x, x))
        x = residual + run("encoder_cross", x, c)
        if self.recipe.affinity:
            x = x + run("affinity", x, c)
        x = self.encoder_next(x)
        residual = self.decoder_residual(c + run("decoder_self", c, c))
        c = self.decoder_middle(residual + run("decoder_cross", c, x))
        if self.recipe.norm:
            c = self.space.write(c, POSITION, self.recipe.norm(self.space.read(c, POSITION)))
        if self.feedforward is not None:
            c = c + self.feedforward(c)
        return x, self.decoder_next(c)

    def separate(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return the separation and the gap for these tokens, for each problem of a batch."""
        (far, everyone), k = reach(self.space, x, c), c.shape[-2]
        chosen: Amount = self.recipe.given_separation or 0.0
        if not self.as_printed:
            chosen = self.recipe.separation(far, k, torch.finfo(x.dtype).eps)
        apart = self.separation(x.new_zeros(*x.shape[:-2], 1, 1) + chosen)
        within = math.inf if self.as_printed else self.recipe.gap(apart, k)
        return apart, self.gap(torch.where(everyone, math.inf, within).to(x))


@dataclass
class _Running:
    """A layer while it runs: calls the heads of a slot with their context.

    separation, gap: decided when the separated head runs, from the tokens at that time.
    log_shares: logarithms of the assignments, (k, n), once encoder_cross has run.
    """

    layer: Layer
    points: Tensor
    centers: Tensor
    numbers: Numbers | None
    noise: Noise | None
    separation: Amount = 0.0
    gap: Amount = math.inf
    log_shares: Tensor | None = None

    def __call__(self, slot: str, tokens: Tensor, sources: Tensor) -> Tensor:
        """Return the sum of the outputs of a slot's heads."""
        self._note(slot, tokens, sources)
        if slot == self.layer.separated_slot:
            self.separation, self.gap = self.layer.separate(self.points, self.centers)
        context = Context(
            gap=self.gap,
            log_scores=self.log_shares if slot == "decoder_cross" else None,
            noise=partial(self.noise, slot) if self.noise else None,
        )
        heads = self.layer.recipe.slots[slot]
        found = [self._attend(name, tokens, sources, context) for name in heads]
        if slot == "encoder_cross" and self.layer.log_shares:
            self.log_shares = self._logarithms(found[0].scores)
        total = found[0].output
        for other in found[1:]:
            total = total + other.output
        return total

    def _note(self, slot: str, tokens: Tensor, sources: Tensor) -> None:
        """Keep the current tokens of points and centers."""
        match slot:
            case "decoder_cross":
                self.centers, self.points = tokens, sources
            case "decoder_self":
                self.centers = tokens
            case _:
                self.points = tokens

    def _attend(self, name: str, tokens: Tensor, sources: Tensor, context: Context) -> Attended:
        attention: Attention = getattr(self.layer, name)
        return attention.attend(tokens, sources, context, self.separation, self.numbers)

    def _logarithms(self, scores: Tensor) -> Tensor:
        activation = self.layer.recipe.encoder_cross.activation
        assert isinstance(activation, Softmax)
        logs, _ = log_shares(-scores.double(), activation.inverse_temperature)
        return logs.mT
