"""The circuit: a recipe at work, T layers for T iterations."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple, SupportsIndex, cast

import torch
from numpy import ndarray
from torch import Tensor, nn

from lloydformer.circuits.layer import Layer, Noise, Surroundings
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.staged_layer import StagedLayer
from lloydformer.circuits.stages import AnyRecipe, Staged
from lloydformer.circuits.subspaces import POSITION
from lloydformer.circuits.trace import Recorder, Trace, names_of
from lloydformer.numerics import noise
from lloydformer.numerics.checks import (
    as_problem,
    check_count,
    check_range,
    check_unit,
    check_zero_sum,
)
from lloydformer.numerics.origin import middle

Seed = SupportsIndex | Sequence[SupportsIndex] | None
"""A whole number, or one for each problem of a batch; numpy's will do."""

AnyLayer = Layer | StagedLayer
_LAYERS: dict[type[AnyRecipe], Callable[..., AnyLayer]] = {Recipe: Layer, Staged: StagedLayer}


class Embedded(NamedTuple):
    """Tokens of a problem, with what was decided when they were made."""

    encoder: Tensor
    decoder: Tensor
    origin: Tensor
    reach: float
    """No point is farther than this from a center, squared, as long as the circuit runs."""


class Circuit(nn.Module):
    """A transformer with hand-set weights whose layers run a clustering algorithm exactly.

    recipe: one recipe for every layer, or a schedule of them that is repeated.

    trainable: the weights are parameters that begin where the recipe writes them. Of a recipe
    whose numbers are decided by the state, what decides them is trained, and nothing else.
    seed: of the weights that a recipe leaves free, such as those of `recipes.learned()`.

    Otherwise weights are buffers and follow the dtype and device of the points. Encoder
    self-attention is computed in full, so time and memory grow with n^2: this is for looking,
    checking and training.

    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> trace = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)(points, points[:2], 3)
    >>> trace.centers[-1].flatten().tolist()
    [0.5, 11.0]
    """

    def __init__(
        self,
        recipe: AnyRecipe | Sequence[AnyRecipe],
        n_features: int,
        n_clusters: int,
        trainable: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.schedule = _schedule(recipe)
        self.n_features = check_count("n_features", n_features)
        self.n_clusters = check_count("n_clusters", n_clusters)
        self.tokens = self.schedule[0].tokens
        self.space = self.tokens.space(n_features, n_clusters)
        generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
        self.layers = nn.ModuleList(
            _LAYERS[type(r)](r, self.space, generator) for r in self.schedule
        )
        if trainable:
            for layer in cast(list[Layer], list(self.layers)):
                _free(layer if layer.numbers is None else layer.numbers)

    def forward(
        self,
        points: Tensor | ndarray,
        centers: Tensor | ndarray,
        n_layers: int = 10,
        keep: Sequence[str] = (),
        seed: Seed = None,
    ) -> Trace:
        """Run the circuit on points (n, d) and centers (k, d), or on a batch of such problems.

        keep: names or patterns (`"layers.3.*"`) of intermediates for the trace to hold.
        seed: for recipes that draw noise. In a batch, problem i draws with seed + i, or with
        the i-th of several seeds.
        """
        points, centers = self._checked(points, centers)
        layers = self._order(check_count("n_layers", n_layers))
        names = names_of(layers)
        patterns = _patterns(keep, names)
        x, c, origin, reach = self.embed(points, centers)
        history, depth = [centers], 0
        with Recorder(patterns).watching(layers) as recorder:
            for recorder.layer, layer in enumerate(layers):
                if recorder.layer and layer.recipe.embeds_again:
                    x, c, origin, reach = self.embed(points, history[-1])
                draw = _noise(seed, depth, points)
                depth += layer.recipe.depth(self.n_clusters)
                time = recorder.layer / max(1, n_layers - 1)
                x, c = layer(x, c, Surroundings.within(reach, layer.recipe, c, draw, time))
                history.append(self.space.read(c, POSITION) + origin)
        _warn_if_lost(history)
        return Trace(
            points=points,
            centers=torch.stack(history, dim=-3),
            assignments=torch.stack(recorder.assignments, dim=-3),
            origin=origin,
            names=names,
            kept=recorder.kept,
        )

    def embed(self, points: Tensor, centers: Tensor, assignments: Tensor | None = None) -> Embedded:
        """The first layer's tokens, centered where the recipe does not mind.

        assignments (n, k), zero by default, are those of an earlier layer.
        """
        origin = torch.zeros_like(points[..., :1, :])
        if all(r.translation_invariant for r in self.schedule):
            origin = middle(points).unsqueeze(-2)
        if assignments is None:
            assignments = points.new_zeros(*points.shape[:-1], self.n_clusters)
        x, c = points - origin, centers - origin
        encoder, decoder = self.tokens.encoder(x, assignments), self.tokens.decoder(c)
        return Embedded(encoder, decoder, origin, _reach(x, c))

    def _order(self, n_layers: int) -> list[AnyLayer]:
        layers = cast(list[AnyLayer], list(self.layers))
        return [layers[t % len(layers)] for t in range(n_layers)]

    def _checked(self, points: object, centers: object) -> tuple[Tensor, Tensor]:
        x, c = as_problem(points, centers)
        found = (x.shape[-1], c.shape[-2])
        if found != (self.n_features, self.n_clusters):
            raise ValueError(
                f"points, centers: found {found[0]} features and {found[1]} centers; this circuit "
                f"was made with n_features={self.n_features}, n_clusters={self.n_clusters}"
            )
        check_range("points", x)
        check_range("centers", torch.cat([x, c], dim=-2))
        for norm in {r.norm for r in self.schedule if r.norm}:
            for name, rows in (("points", x), ("centers", c)):
                check_unit(name, rows)
                if norm.zero_sum:
                    check_zero_sum(name, rows)
        return x, c

    def extra_repr(self) -> str:
        return f"n_features={self.n_features}, n_clusters={self.n_clusters}, dim={self.space.dim}"


def _schedule(recipe: object) -> tuple[AnyRecipe, ...]:
    schedule = tuple(recipe) if isinstance(recipe, (list, tuple)) else (recipe,)
    if not schedule or not all(isinstance(r, AnyRecipe) for r in schedule):
        raise ValueError(f"recipe: found {recipe!r}; pass a recipe such as lf.recipes.lloyd()")
    if len({r.tokens for r in schedule}) > 1:
        found = "; ".join(f"{r.name} has {_subspaces(r)}" for r in dict.fromkeys(schedule))
        raise ValueError(
            f"recipe: a schedule needs recipes with the same tokens; found several: {found}"
        )
    return schedule


def _subspaces(recipe: AnyRecipe) -> str:
    codes = type(recipe.tokens.codes).__name__
    return f"{', '.join(s.name for s in recipe.tokens.subspaces)} ({codes})"


def _free(part: nn.Module) -> None:
    """Buffers become parameters, in the precision that is torch's default."""
    for module in part.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            delattr(module, name)
            module.register_parameter(name, nn.Parameter(buffer.to(torch.get_default_dtype())))


def _patterns(keep: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """What to keep; a pattern that matches no intermediate is a mistake."""
    patterns = (keep,) if isinstance(keep, str) else tuple(keep)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern, names, n=1)
            raise ValueError(
                f"keep: found {pattern!r}, which matches no intermediate of {len(names)}; "
                f"try {near[0] if near else names[0]!r}"
            )
    return patterns


def _reach(points: Tensor, centers: Tensor) -> float:
    """Centers stay among the points or where they began, and so do distances to them."""
    radius = points.norm(dim=-1).max().item()
    return (radius + max(radius, centers.norm(dim=-1).max().item())) ** 2 * 1.001 or 1.0


def _noise(seed: Seed, layer: int, points: Tensor) -> Noise | None:
    """Gumbel noise for each slot; cluster and row are told apart by the side they are on."""
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
        points_ask = slot in ("encoder_cross", "affinity")
        n_clusters, n_rows = scores.shape[-2:][::-1] if points_ask else scores.shape[-2:]
        rows = torch.arange(n_rows, device=scores.device)
        draws = torch.stack([noise.gumbel(s, layer, slot, n_clusters, rows) for s in seeds])
        return (draws.mT if points_ask else draws).to(scores.dtype).reshape(scores.shape)

    return draw


def _warn_if_lost(history: list[Tensor]) -> None:
    for t, centers in enumerate(history):
        if not torch.isfinite(centers).all():
            warnings.warn(
                f"layer {t - 1}: a center is not a number. Its weights vanished (0/0): linear "
                "attention on a cluster without weight, or a norm of a zero vector",
                RuntimeWarning,
                stacklevel=3,
            )
            return
