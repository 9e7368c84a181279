"""A layer of a circuit as a problem for methods that find circuits, and inputs for it."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, cast

import torch
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import QuadraticNetwork
from lloydformer.circuits.heads import Attention
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
        place = f"layers.{layer}."
        places = {"next_points": f"{place}encoder_next", "next_centers": f"{place}decoder_next"}
        self._state = {name: places[name] for name in hands_on}
        # a norm is no sum: what it reads is one
        self._sum_of_centers = f"{place}decoder_middle" if recipe.norm else places["next_centers"]
        self._sources = {edge.source: edge_names(circuit, edge, layer)[0] for edge in self.edges}
        others = {n for edge in self.edges for n in edge_names(circuit, edge, layer)[1:]}
        self._needed = {name.rpartition(".")[2]: name for name in others}
        self._clean = _stack([pair.clean for pair in pairs])
        run, corrupted = (
            self._call(inputs, self.n_pairs, (*self._state.values(), *self._sources.values()))
            for inputs in (self._clean, _stack([pair.corrupted for pair in pairs]))
        )
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
            return corrupted[name].detach().roll(int(of_centers), dims=-2)

        self._other = {node: corrupt(node, name) for node, name in self._sources.items()}
        self._ends = {
            node: (run[name].detach(), corrupt(node, name)) for node, name in self._state.items()
        }

    def _call(self, inputs: tuple[Tensor, Tensor], count: int, keep: tuple[str, ...]) -> Any:
        with warnings.catch_warnings():
            # broken runs are what methods look for
            warnings.filterwarnings("ignore", "layer .* a center is not a number", RuntimeWarning)
            return self.circuit(
                *inputs, self.layer + 1, names_filter=keep, seed=[self.seed] * count
            )

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
        live: dict[str, Tensor] = {}
        # (runs * pairs, 1, 1, edges), beside tokens (runs * pairs, m, dim)
        strong = strengths.reshape(-1, 1, 1, self.n_edges)

        def record(node: str) -> Callable[[Tensor], Tensor]:
            def keep(value: Tensor) -> Tensor:
                live[node] = value
                return value

            return keep

        def removed(numbers: Sequence[int]) -> Tensor:
            """Return what these edges no longer carry."""
            total: Tensor | float = 0.0
            for number in numbers:
                node = self.edges[number].source
                other = self._other[node].repeat(count, 1, 1)
                total = total + strong[..., number] * (live[node] - other)
            return cast(Tensor, total)

        by_place: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, edge in enumerate(self.edges):
            by_place[edge.target, edge.via].append(number)
        inputs = (rows.repeat(count, 1, 1) for rows in self._clean)
        with ExitStack() as patches:
            for node, name in {**self._sources, **self._needed}.items():
                patches.enter_context(self.circuit.patch(name, record(node)))
            # the decoder reads these points as well, by edges of its own
            at_the_end = by_place.pop(("next_points", "residual"), [])
            for (target, via), numbers in by_place.items():
                where, change = self._change(target, via, numbers, live, removed)
                patches.enter_context(self.circuit.patch(where, change))
            trace = self._call(
                cast(tuple[Tensor, Tensor], tuple(inputs)),
                count * self.n_pairs,
                tuple(self._state.values()),
            )
        parts = []
        for node, (clean, corrupted) in self._ends.items():
            state = trace[self._state[node]]
            if node == "next_points":
                state = state - removed(at_the_end)
            way = clean - corrupted
            along = ((state.unflatten(0, (count, self.n_pairs)) - corrupted) * way).sum(
                dim=(-1, -2)
            )
            parts.append(along / way.square().sum(dim=(-1, -2)))
        return torch.stack(parts).mean(dim=0)

    def _change(
        self,
        target: str,
        via: str,
        numbers: list[int],
        live: dict[str, Tensor],
        removed: Callable[[Sequence[int]], Tensor],
    ) -> tuple[str, Callable[[Tensor], Tensor]]:
        """Return the arguments of `Circuit.patch` that act on all edges of one input."""
        module = cast(Any, self.circuit.layers[0])
        place = f"layers.{self.layer}."
        if via == "input":
            network: QuadraticNetwork = module.feedforward

            def activate(value: Tensor) -> Tensor:
                return network.activate(live["decoder_middle"] - removed(numbers))

            return f"{place}feedforward.hidden", activate
        if via == "residual":
            return self._sum_of_centers, lambda value: value - removed(numbers)
        matrix, where = PARTS[via]
        head: Attention = module.get_submodule(target)

        def project(value: Tensor) -> Tensor:
            apart, separation = removed(numbers), live.get("separation", 0.0)
            none = head.project(matrix, torch.zeros_like(apart), separation)  # the bias
            return value - (head.project(matrix, apart, separation) - none)

        return f"{place}{target}.{where}", project


def _stack(inputs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    points, centers = zip(*inputs, strict=True)
    return torch.stack(points), torch.stack(centers)


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
