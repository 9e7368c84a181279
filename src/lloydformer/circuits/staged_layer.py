"""The layer of a staged recipe: runs its sub-layers, one stage after the other."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.activations import Context
from lloydformer.circuits.heads import Attention
from lloydformer.circuits.layer import LayerContext, Noise
from lloydformer.circuits.outside import farthest
from lloydformer.circuits.stages import Read, Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import (
    ABSENT,
    ASSIGNMENT,
    NAME,
    ONE,
    POSITION,
    Space,
    Subspace,
)

Sets = dict[str, Tensor]
"""Sets of tokens by name: (m, dim), or (p, m, dim) with proposals. A batch axis comes first."""


class StagedLayer(nn.Module):
    """Embeds points and centers in wider tokens, runs the stages, and reads the new centers."""

    def __init__(
        self,
        recipe: Staged,
        space: Space,
        generator: torch.Generator | None = None,
        as_printed: bool = False,
    ) -> None:
        super().__init__()
        if as_printed:
            raise ValueError(
                f"as_printed: found True for {recipe.name!r}, whose stages need a separation; use "
                "as_printed=False"
            )
        self.recipe, self.space = recipe, space
        self.n_clusters = space.size(ASSIGNMENT)
        self.inner = recipe.space(space.size(POSITION), self.n_clusters)
        self.counts = recipe.counts.within(self.n_clusters)
        self.assigning, self.numbers = _assigning(recipe), None
        for part in recipe.sublayers:
            self.add_module(part.name, self._built(part))
        self.separation = nn.Identity()
        self.encoder_tokens, self.decoder_tokens = nn.Identity(), nn.Identity()
        self.encoder_next, self.decoder_next = nn.Identity(), nn.Identity()

    def forward(
        self,
        encoder: Float[Tensor, "*b n dim"],
        decoder: Float[Tensor, "*b k dim"],
        layer_context: LayerContext,
    ) -> tuple[Float[Tensor, "*b n dim"], Float[Tensor, "*b k dim"]]:
        x, c = self.encoder_tokens(encoder), self.decoder_tokens(decoder)
        sets = self.embed(x, c)
        # above any sum of squared distances
        separation = self.separation(2 * x.shape[-2] * farthest(self.space, x, c))
        for stage in self.stages():
            stage(sets, separation, layer_context.noise)
        codes = self.inner.read(sets["assigned"], ASSIGNMENT)[..., : self.n_clusters]
        positions = self.inner.read(sets["centers"], POSITION)
        return (
            self.encoder_next(self.space.write(x, ASSIGNMENT, codes)),
            self.decoder_next(self.space.write(c, POSITION, positions)),
        )

    def stages(self) -> Iterator[nn.Module]:
        """Return all stages in the order in which they run."""
        return (m for m in self.modules() if isinstance(m, RunningStage))

    def embed(self, x: Tensor, c: Tensor) -> Sets:
        """Return the initial sets of tokens; the code of a center is its name."""
        k, before = self.n_clusters, c.shape[:-2]
        counts = {"points": x.shape[-2], "centers": k, **self.counts}
        names = torch.eye(k + counts["spares"]).to(c).expand(*before, -1, -1)
        absent = c.new_ones(*before, counts["spares"], 1)
        centers = {POSITION: self.space.read(c, POSITION), NAME: names[..., :k, :]}
        later = (torch.arange(k)[:, None] >= k // 2).to(c).expand(*before, -1, -1)
        parts = {
            "points": {POSITION: self.space.read(x, POSITION)},
            "centers": centers,
            "first": centers | {ABSENT: later},
            "second": centers | {ABSENT: 1 - later},
            "spares": {NAME: names[..., k:, :], ABSENT: absent},
        }
        return {s: self._tokens(c, m, parts.get(s, {})) for s, m in counts.items()}

    def _tokens(self, like: Tensor, count: int, parts: dict[Subspace, Tensor]) -> Tensor:
        """Return `count` tokens with these parts and the constant 1; the rest is zero."""
        tokens = like.new_zeros(*like.shape[:-2], count, self.inner.dim)
        parts = {ONE: torch.ones_like(tokens[..., :1]), **parts}
        return self.inner.assemble(
            {s: parts.get(s, self.inner.read(tokens, s)) for s in self.inner.subspaces}
        )

    def _built(self, part: Sublayer) -> nn.Module:
        def row() -> nn.ModuleDict:
            return nn.ModuleDict({s.name: RunningStage(s, self.inner) for s in part.stages})

        if not part.repeated:
            return row()
        return nn.ModuleList(row() for _ in range(self.counts[part.counted]))


class RunningStage(nn.Module):
    """The module of a stage. `tokens` are those that it starts with, `next` the result."""

    def __init__(self, stage: Stage, space: Space) -> None:
        super().__init__()
        self.stage = stage
        for read in stage.reads:
            self.add_module(read.name, Attention(read.head, space))
        self.networks = nn.ModuleList(network.build(space) for network in stage.networks)
        self.tokens, self.next = nn.Identity(), nn.Identity()

    def forward(self, sets: Sets, separation: Tensor, noise: Noise | None) -> None:
        """Write the tokens of the target into the sets."""
        before = self.tokens(self._initial(sets))
        tokens = before
        for read in self.stage.reads:
            head = self.get_submodule(read.name)
            queries, keys = _sides(read, before, {**sets, self.stage.target: before})
            context = _context(read, sets["points"], noise)
            extra = queries.ndim - separation.ndim  # axes of proposals
            apart = separation.reshape(*separation.shape, *[1] * extra)
            output = head(queries, keys, context, apart)
            tokens = tokens + (output.squeeze(-2) if read.across else output)
        for network in self.networks:
            tokens = tokens + network(tokens)
        sets[self.stage.target] = self.next(tokens)

    def _initial(self, sets: Sets) -> Tensor:
        """Return the initial tokens: concatenated, and repeated for each proposal."""
        stage = self.stage
        tokens = torch.cat([sets[s] for s in stage.of or (stage.target,)], dim=-2)
        if not stage.along:
            return tokens
        if stage.of == (stage.along,):
            return tokens.unsqueeze(-2)  # (p, 1, dim): one token for each proposal
        return _for_each(tokens, sets[stage.along].shape[-2])


def _for_each(tokens: Tensor, n_proposals: int) -> Tensor:
    return tokens.unsqueeze(-3).expand(*tokens.shape[:-2], n_proposals, -1, -1)


def _sides(read: Read, tokens: Tensor, sets: Sets) -> tuple[Tensor, Tensor]:
    """Return tokens of queries and keys; across proposals, a token's keys are its versions."""
    sources = [sets[s] for s in read.sources]
    if read.across:
        proposals = [_for_each(s, 1) if s.ndim == tokens.ndim else s for s in sources]
        return tokens.unsqueeze(-2), torch.cat(proposals, dim=-3).transpose(-3, -2)
    shared = [_for_each(s, tokens.shape[-3]) if s.ndim < tokens.ndim else s for s in sources]
    return tokens, torch.cat(shared, dim=-2)


def _context(read: Read, points: Tensor, noise: Noise | None) -> Context:
    """Return the noise of a read: for (proposal, key), else for (key, 0); queries share it."""
    if not read.lots or noise is None:
        return Context()

    def draw(scores: Tensor) -> Tensor:
        if scores.ndim > points.ndim:
            return noise(read.lots, scores[..., 0, :]).unsqueeze(-2)  # (p, 1, m)
        return noise(read.lots, scores[..., :1, :].mT).mT  # (1, m)

    return Context(noise=draw)


def _assigning(recipe: Staged) -> str:
    """Return the name of the attention that assigns the points to the incoming centers."""
    name, stage = next((n, s) for n, s in recipe.stages.items() if s.target == "assigned")
    return f"{name}.{stage.reads[0].name}.attention"
