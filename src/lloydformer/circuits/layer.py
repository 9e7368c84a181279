"""The layer: one iteration of the algorithm, as the paper's equation; and the noise of a layer."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, SupportsIndex, cast

import torch
from torch import Tensor, nn

from lloydformer.circuits.activations import Context, Softmax
from lloydformer.circuits.activations.contract import Amount
from lloydformer.circuits.heads import Attention, Numbers
from lloydformer.circuits.norms import Norm
from lloydformer.circuits.outside import (
    choose_uncertainty,
    has_log_shares,
    measure_reach,
    weighs_by_share,
)
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION, Space
from lloydformer.circuits.tokens import DecoderTokens, EncoderTokens
from lloydformer.numerics.checks import check_count
from lloydformer.numerics.clusters import log_shares
from lloydformer.numerics.noise import gumbel

# Returns the noise of a slot, of the shape of the scores.
Noise = Callable[[str, Tensor], Tensor]
# An integer, or one for each problem of a batch; integers of NumPy are accepted.
Seed = SupportsIndex | Sequence[SupportsIndex] | None


def layer_noise(seed: Seed, layer: int, points: Tensor) -> Noise | None:
    """Return a function that draws the Gumbel noise of a layer, or None without a seed.

    The noise is a pure function of (seed, layer, slot, cluster, row). Problem i of a batch draws
    with seed + i, or with the i-th of several seeds.
    """
    if seed is None:
        return None
    n_problems = points.shape[0] if points.ndim == 3 else 1
    if isinstance(seed, Iterable):
        seeds = [check_count("seed", s, least=0) for s in seed]
    else:
        seeds = [check_count("seed", seed, least=0) + i for i in range(n_problems)]
    if len(seeds) != n_problems:
        raise ValueError(f"seed: found {len(seeds)} for {n_problems} problems; pass one for each")

    def draw(slot: str, scores: Tensor) -> Tensor:
        # noise belongs to (cluster, row); where points are the queries, scores are (row, cluster)
        queries_are_points = slot in ("encoder_cross", "affinity")
        n_clusters, n_rows = scores.shape[-2:][::-1] if queries_are_points else scores.shape[-2:]
        rows = torch.arange(n_rows, device=scores.device)
        drawn = {s: gumbel(s, layer, slot, n_clusters, rows) for s in set(seeds)}
        draws = torch.stack([drawn[s] for s in seeds])
        return (draws.mT if queries_are_points else draws).to(scores.dtype).reshape(scores.shape)

    return draw


@dataclass(frozen=True)
class LayerContext:
    """Inputs of a layer in addition to the tokens.

    Attributes
    ----------
    noise : callable or None
        For activations that draw.
    time : float
        From 0 in the first layer to 1 in the last.
    columns : dict of str to slice, or None
        For each head, the columns of queries and keys that its score needs. With them the layer
        runs without hooks on its heads, so that it can be traced (`unrolled`). None: with hooks.
    """

    noise: Noise | None = None
    time: float = 0.0
    columns: Mapping[str, slice] | None = None


class LayerResult(NamedTuple):
    """The new tokens, and the weights that assign points to centers; None if not traced."""

    encoder: Tensor
    decoder: Tensor
    assignment: Tensor | None


class Layer(nn.Module):
    r"""One layer of a recipe.

    $X \leftarrow X + \mathcal{A}(X, X) + \mathcal{A}(X, C)$ and
    $C \leftarrow C + \mathcal{A}(C, C) + \mathcal{A}(C, X)$ (eq:l2-trf-updates). Self-attention
    is added first: it makes the residual exactly zero where cross-attention writes. If a slot has
    several heads, $\mathcal{A}$ is their sum.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    space : Space
        The token space.
    generator : torch.Generator or None
        Draws the weights that the recipe leaves free.
    as_in_paper : bool
        Whether to run without the numbers that attention does not compute (see `outside`).

    Attributes
    ----------
    assigning : str
        Name of the point through which the assignments pass.
    separated_slot : str or None
        The first slot that uses the separation, which is chosen when this slot runs.
    """

    def __init__(
        self,
        recipe: Recipe,
        space: Space,
        generator: torch.Generator | None = None,
        as_in_paper: bool = False,
    ) -> None:
        super().__init__()
        self.recipe, self.space, self.as_in_paper = recipe, space, as_in_paper
        self.assigning = "encoder_cross.attention"
        for slot, heads in recipe.slots.items():
            for name, head in heads.items():
                measure = None if as_in_paper else choose_uncertainty(slot, head)
                self.add_module(name, Attention(head, space, generator, measure))
        # looked up once: torch.compile cannot trace the properties of a recipe
        self.slot_heads = {slot: list(heads) for slot, heads in recipe.slots.items()}
        self.by_share = {name: weighs_by_share(head) for name, head in recipe.heads.items()}
        self.log_shares = not as_in_paper and has_log_shares(recipe)
        order = ("encoder_self", "encoder_cross", "affinity", "decoder_self", "decoder_cross")
        self.separated_slot = next(
            (s for s in order if any(h.separated for h in recipe.slots.get(s, {}).values())), None
        )
        if self.separated_slot:
            self.separation, self.gap = nn.Identity(), nn.Identity()
        self.numbers = recipe.numbers.build(space) if recipe.numbers else None
        self.feedforward = recipe.feedforward.build(space) if recipe.feedforward else None
        network = recipe.encoder_feedforward
        self.encoder_feedforward = network.build(space) if network else None
        self.encoder_tokens, self.decoder_tokens = nn.Identity(), nn.Identity()
        self.encoder_residual, self.decoder_residual = nn.Identity(), nn.Identity()
        self.decoder_middle = nn.Identity()
        self.encoder_next, self.decoder_next = nn.Identity(), nn.Identity()

    def forward(
        self, encoder: EncoderTokens, decoder: DecoderTokens, layer_context: LayerContext
    ) -> tuple[EncoderTokens, DecoderTokens]:
        x, c, _ = self.run(encoder, decoder, layer_context)
        return x, c

    def run(self, encoder: Tensor, decoder: Tensor, layer_context: LayerContext) -> LayerResult:
        """Return the tokens of the next layer, with the assignment if the layer is traced."""
        x, c = self.encoder_tokens(encoder), self.decoder_tokens(decoder)
        numbers: Numbers | None = None
        if self.numbers is not None:
            x, numbers = self.numbers(x, c, layer_context.time)
        attend = _SlotAttention(self, x, c, numbers, layer_context)
        residual = self.encoder_residual(x + attend("encoder_self", x, x))
        x = residual + attend("encoder_cross", x, c)
        if self.recipe.affinity:
            x = x + attend("affinity", x, c)
        if self.recipe.encoder_norm:
            x = self._normalise(x, self.recipe.encoder_norm)
        if self.encoder_feedforward is not None:
            x = x + self.encoder_feedforward(x)
        x = self.encoder_next(x)
        residual = self.decoder_residual(c + attend("decoder_self", c, c))
        c = self.decoder_middle(residual + attend("decoder_cross", c, x))
        if self.recipe.norm:
            c = self._normalise(c, self.recipe.norm)
        if self.feedforward is not None:
            c = c + self.feedforward(c)
        return LayerResult(x, self.decoder_next(c), attend.assignment)

    def _normalise(self, tokens: Tensor, norm: Norm) -> Tensor:
        return self.space.write(tokens, POSITION, norm(self.space.read(tokens, POSITION)))

    def separate(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return the separation and the gap for these tokens, for each problem of a batch."""
        (distances, has_all_points), k = measure_reach(self.space, x, c), c.shape[-2]
        chosen: Amount = self.recipe.given_separation or 0.0
        if not self.as_in_paper:
            chosen = self.recipe.separation(distances, k, torch.finfo(x.dtype).eps)
        separation = self.separation(x.new_zeros(*x.shape[:-2], 1, 1) + chosen)
        gap = math.inf if self.as_in_paper else self.recipe.gap(separation, k)
        return separation, self.gap(torch.where(has_all_points, math.inf, gap).to(x))


@dataclass
class _SlotAttention:
    """The attentions of a running layer, and what later slots need from earlier ones.

    Attributes
    ----------
    layer : Layer
        The layer.
    points, centers : Tensor
        The tokens that the last slots of encoder and decoder received.
    numbers : dict of str to Tensor or None
        The numbers of the modulation.
    given : LayerContext
        Noise, and the columns of a traced layer.
    separation, gap : float or Tensor
        Chosen when the separated slot runs, from the tokens at that time.
    log_shares : Tensor of shape (k, n) or None
        Logarithms of the assignments, once encoder_cross has run.
    assignment : Tensor of shape (n, k) or None
        The weights of encoder_cross, once it has run in a traced layer.
    """

    layer: Layer
    points: Tensor
    centers: Tensor
    numbers: Numbers | None
    given: LayerContext
    separation: Amount = 0.0
    gap: Amount = math.inf
    log_shares: Tensor | None = None
    assignment: Tensor | None = None

    def __call__(self, slot: str, tokens: Tensor, sources: Tensor) -> Tensor:
        """Return the sum of the outputs of a slot's heads."""
        if slot.startswith("decoder"):
            self.centers = tokens
            self.points = sources if slot == "decoder_cross" else self.points
        else:
            self.points = tokens
        if slot == self.layer.separated_slot:
            self.separation, self.gap = self.layer.separate(self.points, self.centers)
        noise = self.given.noise
        draw = partial(noise, slot) if noise else None

        def context_of(name: str) -> Context:
            # the logarithms are those of the scores of this head alone
            by_share = slot == "decoder_cross" and self.layer.by_share[name]
            logs = self.log_shares if by_share else None
            return Context(gap=self.gap, log_scores=logs, noise=draw)

        names = self.layer.slot_heads[slot]
        heads = [cast(Attention, self.layer.get_submodule(name)) for name in names]
        if self.given.columns is not None:  # traced: no hook can be registered on the way
            results = [
                head.attend(
                    *(tokens, sources, context_of(name), self.separation, self.numbers),
                    self.given.columns[name],
                )
                for name, head in zip(names, heads, strict=True)
            ]
            if slot == "encoder_cross":
                self.assignment = results[0].attention
                if self.layer.log_shares:
                    self._keep_log_shares(results[0].scores)
            outputs = [result.output for result in results]
            return sum(outputs[1:], start=outputs[0])
        # Heads are called as modules, so that hooks on them run. Their scores, which such a call
        # does not return, are read where hooks and patches may have replaced them.
        hook: AbstractContextManager[object] = nullcontext()
        if slot == "encoder_cross" and self.layer.log_shares:
            scores = heads[0].get_submodule("scores")
            hook = scores.register_forward_hook(lambda m, i, out: self._keep_log_shares(out))
        with hook:
            outputs = [
                head(tokens, sources, context_of(name), self.separation, self.numbers)
                for name, head in zip(names, heads, strict=True)
            ]
        return sum(outputs[1:], start=outputs[0])

    def _keep_log_shares(self, scores: Tensor) -> None:
        activation = self.layer.recipe.encoder_cross.activation
        assert isinstance(activation, Softmax)  # by `has_log_shares`
        logs, _ = log_shares(-scores.double(), activation.inverse_temperature)
        self.log_shares = logs.mT
