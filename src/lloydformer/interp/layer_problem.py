"""A layer of a circuit as a problem for methods that find circuits, and inputs for it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import QuadraticNetwork
from lloydformer.circuits.heads import Attention
from lloydformer.circuits.layer import Layer, LayerContext, layer_noise
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.recipe import Recipe
from lloydformer.interp.layer_graph import PARTS, candidate_edges, edge_names
from lloydformer.interp.tasks import InputPair
from lloydformer.numerics.checks import check_count, require
from lloydformer.numerics.clusters import squared_distances

# What a layer computes, from its input to its output; ACDC goes the other way.
_ORDER = (
    *("encoder_self", "encoder_cross", "affinity", "decoder_self", "decoder_cross"),
    *("feedforward", "next_points", "next_centers"),
)
# The tokens that a layer receives, and the stream of the tokens that it hands on.
_TOKENS = ("encoder_tokens", "decoder_tokens")
_STREAM_OF = {"next_points": "encoder", "next_centers": "decoder"}
# Nodes that write tokens of centers.
_OF_CENTERS = ("centers", "decoder_self", "decoder_cross", "feedforward", "next_centers")


class LayerProblem:
    """A layer of a circuit whose edges can see corrupted values.

    The metric compares the tokens that the layer hands on with those of the clean run (1) and of
    the corrupted one (0): the projection on their difference, as a mean over points and centers.

    Parameters
    ----------
    circuit : Circuit
        The circuit of one recipe; a slot may have several heads.
    pairs : sequence of InputPair
        Clean and corrupted inputs of equal sizes, as `resampled_pairs` returns them.
    layer : int, default=1
        The layer. In the first one points have no old cluster yet, so that edges which carry it
        have no effect.
    seed : int, default=0
        Seed for recipes that draw noise.

    Attributes
    ----------
    edges : list of Edge
        All edges that the layer could have.
    n_edges, n_pairs : int
        Their number, and the number of pairs.
    order : list of int
        The edges from the output of the layer to its input.

    Raises
    ------
    ValueError
        If the circuit has a schedule, stages or a modulation, or inputs of a pair have different
        origins.

    See Also
    --------
    score_edges : Finds the circuit.

    Examples
    --------
    >>> import lloydformer as lf
    >>> pairs = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=2)
    >>> problem = lf.interp.LayerProblem(lf.Circuit(lf.recipes.lloyd(), 2, 3), pairs)
    >>> problem.n_edges, str(problem.edges[problem.order[0]])
    (22, 'centers -> next_centers.residual')
    """

    def __init__(
        self, circuit: Circuit, pairs: Sequence[InputPair], layer: int = 1, seed: int = 0
    ) -> None:
        recipe = circuit.schedule[0]
        if len(circuit.schedule) > 1 or not isinstance(recipe, Recipe) or recipe.numbers:
            raise ValueError(
                f"circuit: found {recipe.name!r}; pass a circuit of one recipe without stages and "
                "modulation"
            )
        require(len(pairs) > 0, "pairs", list(pairs), "pass one pair or more")
        self.circuit, self.layer, self.seed = circuit, check_count("layer", layer, least=0), seed
        # if tokens are embedded again, a layer hands on nothing but its centers
        hands_on = ("next_centers",) if recipe.embeds_again else ("next_points", "next_centers")
        self.edges = [
            edge
            for edge in candidate_edges(recipe)
            if edge.via != "residual" or edge.target in hands_on
        ]
        self.n_edges, self.n_pairs = len(self.edges), len(pairs)
        slots = {name: slot for slot, heads in recipe.slots.items() for name in heads}
        rank = [_ORDER.index(slots.get(edge.target, edge.target)) for edge in self.edges]
        self.order: Sequence[int] = sorted(range(self.n_edges), key=lambda e: -rank[e])
        self._by_input: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, edge in enumerate(self.edges):
            self._by_input[edge.target, edge.via].append(number)
        # names of hook points: of what nodes write, of other values that are needed, of the end
        place, needed = f"layers.{layer}.", [edge_names(circuit, e, layer) for e in self.edges]
        first = [names[0].removeprefix(place) for names in needed]
        self._points = {e.source: name for e, name in zip(self.edges, first, strict=True)}
        others = {name.removeprefix(place) for names in needed for name in names[1:]}
        self._points |= {name: name for name in others}
        self._state = {name: f"{_STREAM_OF[name]}_next" for name in hands_on}
        # a norm is no sum: what it reads is one
        self._sum_of_centers = "decoder_middle" if recipe.norm else "decoder_next"
        names = {place + name for name in (*first, *self._state.values(), *_TOKENS)}
        runs = []
        for inputs in ([pair.clean for pair in pairs], [pair.corrupted for pair in pairs]):
            points, centers = (torch.stack(rows) for rows in zip(*inputs, strict=True))
            seeds = [seed] * self.n_pairs
            runs.append(circuit(points, centers, layer + 1, names_filter=[*names], seed=seeds))
        run, corrupted = runs
        if not torch.equal(run.origin, corrupted.origin):
            raise ValueError(
                "pairs: the inputs of a pair have different origins, so their tokens cannot be "
                "exchanged; corrupt by another order of the same points, as resampled_pairs does"
            )

        def corrupt(node: str, name: str) -> Tensor:
            """Return what the node wrote in the corrupted run, centers in another order.

            Their codes are the same in every input, so that no other input could corrupt them.
            Attention does not depend on the order of tokens: another one is a valid run.
            """
            of_centers = slots.get(node, node) in _OF_CENTERS
            return corrupted[place + name].detach().roll(int(of_centers), dims=-2)

        self._tokens = [run[place + name].detach() for name in _TOKENS]
        self._other = {e.source: corrupt(e.source, self._points[e.source]) for e in self.edges}
        self._ends = {
            node: (run[place + name].detach(), corrupt(node, name))
            for node, name in self._state.items()
        }

    def metric(self, strengths: Tensor) -> Tensor:
        """Return the metric of runs with these strengths.

        Parameters
        ----------
        strengths : torch.Tensor of shape (b, n_pairs, n_edges)
            0 where an edge is as in the clean run, 1 where its target sees what its source writes
            in the corrupted run.

        Returns
        -------
        torch.Tensor of shape (b, n_pairs)
            1 for the clean run.

        See Also
        --------
        FindingProblem.metric : What methods expect.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> pairs = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=1)
        >>> problem = lf.interp.LayerProblem(lf.Circuit(lf.recipes.lloyd(), 2, 3), pairs)
        >>> every = torch.ones(1, 1, problem.n_edges, dtype=torch.float64)
        >>> bool(problem.metric(every).abs().max() < 1e-12)  # everything is corrupted
        True
        """
        count = len(strengths)
        strong = strengths.reshape(-1, self.n_edges)  # a row for each run and pair
        live: dict[str, Tensor] = {}
        differences: dict[tuple[str, ...], Tensor] = {}

        def record(node: str, module: nn.Module, inputs: object, value: Tensor) -> None:
            live[node] = value

        def removed(edges: Sequence[int]) -> Tensor:
            """Return what these edges no longer carry."""
            nodes = tuple(self.edges[edge].source for edge in edges)
            if nodes not in differences:
                differences[nodes] = torch.stack(
                    [live[node] - self._other[node].repeat(count, 1, 1) for node in nodes]
                )
            return torch.einsum("bs,sbmd->bmd", strong[:, edges], differences[nodes])

        # not by Circuit.patch: the layers before would run each time, and there are many runs
        layer = cast(Layer, self.circuit.layers[0])
        points, centers = (tokens.repeat(count, 1, 1) for tokens in self._tokens)
        noise = layer_noise([self.seed] * len(points), self.layer, points)
        with ExitStack() as hooks:
            for node, name in self._points.items():
                point = layer.get_submodule(name)
                hooks.enter_context(point.register_forward_hook(partial(record, node)))
            for (target, via), edges in self._by_input.items():
                if target != "next_points":
                    name, change = self._change(target, via, edges, live, removed)
                    hooks.enter_context(layer.get_submodule(name).register_forward_hook(change))
            points, centers = layer(points, centers, LayerContext(noise))
        # at the end, as the decoder reads these points as well, by edges of its own
        if last := self._by_input.get(("next_points", "residual")):
            points = points - removed(last)
        found = {"next_points": points, "next_centers": centers}
        parts = []
        for node, (clean, corrupted) in self._ends.items():
            state, way = found[node].unflatten(0, (count, self.n_pairs)), clean - corrupted
            along = ((state - corrupted) * way).sum(dim=(-1, -2))
            parts.append(along / way.square().sum(dim=(-1, -2)))
        return torch.stack(parts).mean(dim=0)

    def _change(
        self,
        target: str,
        via: str,
        edges: list[int],
        live: dict[str, Tensor],
        removed: Callable[[Sequence[int]], Tensor],
    ) -> tuple[str, Callable[[nn.Module, object, Tensor], Tensor]]:
        """Return a hook point, and the hook that acts on all edges of one input."""
        layer = self.circuit.layers[0]
        if via == "input":
            network = cast(QuadraticNetwork, layer.get_submodule("feedforward"))
            return "feedforward.hidden", lambda module, inputs, value: network.activate(
                live["decoder_middle"] - removed(edges)
            )
        if via == "residual":
            return self._sum_of_centers, lambda module, inputs, value: value - removed(edges)
        matrix, where = PARTS[via]
        head = cast(Attention, layer.get_submodule(target))

        def project(module: nn.Module, inputs: object, value: Tensor) -> Tensor:
            apart, separation = removed(edges), live.get("separation", 0.0)
            change = head.project(matrix, apart, separation)
            if hasattr(head, f"{matrix}_bias"):  # it belongs to the input, not to an edge
                change = change - head.project(matrix, torch.zeros_like(apart), separation)
            return value - change

        return f"{target}.{where}", project


def resampled_pairs(
    recipe: Recipe,
    n_pairs: int = 4,
    n_points: int = 24,
    n_features: int = 2,
    n_clusters: int = 3,
    seed: int = 0,
) -> list[InputPair]:
    """Return inputs in which everything differs: other rows at each place, and other centers.

    The corrupted points are the clean ones in another order, so that both have the same origin.
    Points are normally distributed, on the sphere for recipes with a norm; no cluster of the first
    two iterations of k-means is empty.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    n_pairs : int, default=4
        Number of pairs.
    n_points, n_features, n_clusters : int, default=24, 2 and 3
        Sizes. For layer norm, points have one feature more.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    list of InputPair
        The pairs, in float64; the variable is "rows".

    See Also
    --------
    pairs : Inputs that differ in one variable.

    Examples
    --------
    >>> import lloydformer as lf
    >>> pair = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=1)[0]
    >>> clean, corrupted = pair.clean[0], pair.corrupted[0]
    >>> bool((clean.sort(0)[0] == corrupted.sort(0)[0]).all()), bool((clean == corrupted).all())
    (True, False)
    """
    k, d = check_count("n_clusters", n_clusters, least=2), check_count("n_features", n_features)
    require(n_points >= 2 * k, "n_points", n_points, f"pass {2 * k} or more, two for each center")
    generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
    found, count = list[InputPair](), check_count("n_pairs", n_pairs)
    while len(found) < count:
        points = torch.randn(n_points, d, generator=generator, dtype=torch.float64)
        if recipe.norm is not None:
            points = points / points.norm(dim=1, keepdim=True)
            points = zero_sum(points) if recipe.norm.zero_sum else points
        rows = torch.randperm(n_points, generator=generator)
        clean, corrupted = points[rows[:k]], points[rows[k : 2 * k]]
        if _has_points(points, clean) and _has_points(points, corrupted):
            order = torch.randperm(n_points, generator=generator)
            pair = ((points, clean), (points[order], corrupted))
            found.append(InputPair(*pair, "rows", 0, 0, 0))
    return found


def _has_points(points: Tensor, centers: Tensor) -> bool:
    """Return whether every cluster has points, in two iterations of k-means."""
    codes = torch.eye(len(centers), dtype=points.dtype)
    for _ in range(2):
        share = codes[squared_distances(points, centers).argmin(dim=1)]
        if not share.any(dim=0).all():
            return False
        centers = share.mT @ points / share.sum(dim=0)[:, None]
    return True
