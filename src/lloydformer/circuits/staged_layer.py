"""The layer of a staged recipe: runs its sub-layers, one stage after the other."""

import torch
from torch import Tensor, nn

from lloydformer.circuits.activations import Context
from lloydformer.circuits.heads import Attention
from lloydformer.circuits.layer import LayerContext, Noise
from lloydformer.circuits.outside import bound_distances
from lloydformer.circuits.stages import Read, Stage, Staged
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, NAME, ONE, POSITION, Space, Subspace
from lloydformer.circuits.tokens import DecoderTokens, EncoderTokens

# Sets of tokens by name: (m, dim), or (p, m, dim) with proposals. A batch axis comes first.
TokenSets = dict[str, Tensor]


class StagedLayer(nn.Module):
    """Embeds points and centers in wider tokens, runs the stages, and reads the new centers.

    Attributes
    ----------
    inner : Space
        The space of the wider tokens.
    assigning : str
        Name of the point through which the assignment of points to the incoming centers passes.
    """

    def __init__(self, recipe: Staged, space: Space) -> None:
        super().__init__()
        self.recipe, self.space, self.numbers = recipe, space, None
        self.n_clusters = space.size(ASSIGNMENT)
        self.inner = recipe.space(space.size(POSITION), self.n_clusters)
        self.counts = recipe.counts.within(self.n_clusters)
        stage_name, assigned = next(
            (name, stage) for name, stage in recipe.stages.items() if stage.target == "assigned"
        )
        self.assigning = f"{stage_name}.{assigned.reads[0].name}.attention"
        for part in recipe.sublayers:
            runs = [
                nn.ModuleDict(
                    {stage.name: RunningStage(stage, self.inner) for stage in part.stages}
                )
                for _ in range(self.counts[part.counted])
            ]
            self.add_module(part.name, nn.ModuleList(runs) if part.repeated else runs[0])
        self.separation = nn.Identity()
        self.encoder_tokens, self.decoder_tokens = nn.Identity(), nn.Identity()
        self.encoder_next, self.decoder_next = nn.Identity(), nn.Identity()

    def forward(
        self, encoder: EncoderTokens, decoder: DecoderTokens, layer_context: LayerContext
    ) -> tuple[EncoderTokens, DecoderTokens]:
        x, c = self.encoder_tokens(encoder), self.decoder_tokens(decoder)
        sets = self.embed(x, c)
        # above any sum of squared distances over the points, so that no objective outweighs it
        separation = self.separation(2 * x.shape[-2] * bound_distances(self.space, x, c))
        # modules are in the order in which they were added, which is that of the recipe
        for stage in (module for module in self.modules() if isinstance(module, RunningStage)):
            sets[stage.stage.target] = stage(sets, separation, layer_context.noise)
        codes = self.inner.read(sets["assigned"], ASSIGNMENT)[..., : self.n_clusters]
        positions = self.inner.read(sets["centers"], POSITION)
        return (
            self.encoder_next(self.space.write(x, ASSIGNMENT, codes)),
            self.decoder_next(self.space.write(c, POSITION, positions)),
        )

    def embed(self, x: Tensor, c: Tensor) -> TokenSets:
        """Return the initial sets of tokens; the code of a center is its name.

        Every token has the constant 1. Subspaces that are not set here are zero.
        """
        k, batch = self.n_clusters, c.shape[:-2]
        counts = {"points": x.shape[-2], "centers": k, **self.counts}
        names = torch.eye(k + counts["spares"]).to(c).expand(*batch, -1, -1)
        centers = {POSITION: self.space.read(c, POSITION), NAME: names[..., :k, :]}
        # of two solutions, the second half of the centers is the second one (see PairedCounts)
        later = (torch.arange(k)[:, None] >= k // 2).to(c).expand(*batch, -1, -1)
        absent = c.new_ones(*batch, counts["spares"], 1)
        given: dict[str, dict[Subspace, Tensor]] = {
            "points": {POSITION: self.space.read(x, POSITION)},
            "centers": centers,
            "first": centers | {ABSENT: later},
            "second": centers | {ABSENT: 1 - later},
            "spares": {NAME: names[..., k:, :], ABSENT: absent},
        }
        sets = {}
        for name, count in counts.items():
            zeros = c.new_zeros(*batch, count, self.inner.dim)
            parts = {ONE: torch.ones_like(zeros[..., :1]), **given.get(name, {})}
            sets[name] = self.inner.assemble(
                {s: parts.get(s, self.inner.read(zeros, s)) for s in self.inner.subspaces}
            )
        return sets


class RunningStage(nn.Module):
    """The module of a stage. `tokens` are those that it starts with, `next` the result."""

    def __init__(self, stage: Stage, space: Space) -> None:
        super().__init__()
        self.stage = stage
        for read in stage.reads:
            self.add_module(read.name, Attention(read.head, space))
        self.networks = nn.ModuleList(network.build(space) for network in stage.networks)
        self.tokens, self.next = nn.Identity(), nn.Identity()

    def forward(self, sets: TokenSets, separation: Tensor, noise: Noise | None) -> Tensor:
        """Return the new tokens of the target."""
        before = self.tokens(self._start(sets))
        sets = {**sets, self.stage.target: before}  # a read may have the target among its keys
        tokens = before
        for read in self.stage.reads:
            head = self.get_submodule(read.name)
            queries, keys = _queries_and_keys(read, before, sets)
            n_axes = queries.ndim - separation.ndim  # of proposals
            delta = separation.reshape(*separation.shape, *[1] * n_axes)
            output = head(queries, keys, _context(read, sets["points"].ndim, noise), delta)
            tokens = tokens + (output.squeeze(-2) if read.across else output)
        for network in self.networks:
            tokens = tokens + network(tokens)
        result: Tensor = self.next(tokens)
        return result

    def _start(self, sets: TokenSets) -> Tensor:
        """Return the tokens to start with: concatenated, and repeated for each proposal."""
        stage = self.stage
        tokens = torch.cat([sets[s] for s in stage.of or (stage.target,)], dim=-2)
        if not stage.along:
            return tokens
        if stage.of == (stage.along,):
            return tokens.unsqueeze(-2)  # (p, 1, dim): one token for each proposal
        return _repeat(tokens, sets[stage.along].shape[-2])


def _repeat(tokens: Tensor, n_proposals: int) -> Tensor:
    """Return the same tokens in each proposal: (m, dim) becomes (p, m, dim)."""
    return tokens.unsqueeze(-3).expand(*tokens.shape[:-2], n_proposals, -1, -1)


def _queries_and_keys(read: Read, tokens: Tensor, sets: TokenSets) -> tuple[Tensor, Tensor]:
    """Return the tokens of queries and keys; across proposals, a token's keys are its versions."""
    sources = [sets[s] for s in read.sources]
    if read.across:
        # (m, 1, dim) attends to (m, p, dim); a set without proposals counts as one
        versions = [_repeat(s, 1) if s.ndim == tokens.ndim else s for s in sources]
        return tokens.unsqueeze(-2), torch.cat(versions, dim=-3).transpose(-3, -2)
    shared = [_repeat(s, tokens.shape[-3]) if s.ndim < tokens.ndim else s for s in sources]
    return tokens, torch.cat(shared, dim=-2)


def _context(read: Read, n_axes: int, noise: Noise | None) -> Context:
    """Return the noise of a read: for (proposal, key), else for (key, 0); queries share it.

    n_axes: of a set of tokens without proposals.
    """
    if not read.lots or noise is None:
        return Context()

    def draw(scores: Tensor) -> Tensor:
        if scores.ndim > n_axes:
            return noise(read.lots, scores[..., 0, :]).unsqueeze(-2)  # (p, 1, m)
        return noise(read.lots, scores[..., :1, :].mT).mT  # (1, m)

    return Context(noise=draw)
