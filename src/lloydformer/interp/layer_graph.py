r"""The known answer about a circuit: which head computes what, and which paths carry it.

A layer is a graph. Its nodes are the incoming tokens (`points`, `centers`), the heads, the network
and the outgoing tokens (`next_points`, `next_centers`). The input of a head is a sum of what
earlier nodes wrote into the residual stream, so each summand is an edge, by query, key or value.
`truth` derives from the projections of a recipe which of them carry something, and `ablate_edge`
removes one of them from a run.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

import torch
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import Quadratic, QuadraticNetwork
from lloydformer.circuits.heads import Attention, Head
from lloydformer.circuits.layer import Seed
from lloydformer.circuits.projections import Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.subspaces import POSITION, Subspace
from lloydformer.circuits.trace import Trace
from lloydformer.renamed import renamed_arguments

Via = Literal["Q", "K", "V", "residual", "input"]

# What reads which summands: the stream of its queries, and that of its keys and values.
_SUMMANDS = {
    "points": ("points",),
    "centers": ("centers",),
    "written points": ("points", "encoder_self", "encoder_cross"),
    "next_points": ("points", "encoder_self", "encoder_cross", "affinity"),
    "next_centers": ("centers", "decoder_self", "decoder_cross"),
}
_STREAMS = {
    "encoder_self": ("points", "points"),
    "encoder_cross": ("points", "centers"),
    "affinity": ("written points", "centers"),
    "decoder_self": ("centers", "centers"),
    "decoder_cross": ("centers", "next_points"),
}
# The variable that a node computes or holds.
_VARIABLES = {
    "points": "the position of the point, and its cluster of the layer before",
    "centers": "the position of the center, and the code that names it",
    "encoder_self": "what is erased of a point: its cluster of the layer before",
    "encoder_cross": "the cluster of the point",
    "affinity": "the point's squared distance to each center, lowered for other clusters",
    "decoder_self": "what is erased of a center: its position of the layer before",
    "decoder_cross": "the new position of the center: a mean of its cluster",
    "feedforward": "the squared norm of the new center",
    "next_points": "the position of the point, and its cluster",
    "next_centers": "the new position of the center, and the code that names it",
}
# The matrix of an input, and the hook point behind it.
PARTS = {"Q": ("query", "queries"), "K": ("key", "keys"), "V": ("value", "values")}
# Names of the intermediates that hold what a node wrote; those of heads end in "output".
_OUTPUTS = {
    "points": "encoder_tokens",
    "centers": "decoder_tokens",
    "feedforward": "feedforward.output",
}


@dataclass(frozen=True)
class LayerNode:
    """A node of a layer.

    Parameters
    ----------
    name : str
        Name of the node: that of a head, or of tokens.
    variable : str
        The causal variable that it computes or holds.
    subspaces : tuple of str
        Names of the subspaces in which it writes the variable.

    See Also
    --------
    truth : Lists the nodes of a recipe.

    Examples
    --------
    >>> import lloydformer as lf
    >>> node = lf.interp.truth(lf.recipes.lloyd()).node("encoder_cross")
    >>> node.variable, node.subspaces
    ('the cluster of the point', ('assignment',))
    """

    name: str
    variable: str
    subspaces: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """The part that a node adds to the input of another one, by query, key or value.

    Parameters
    ----------
    source, target : str
        Names of the nodes.
    via : {"Q", "K", "V", "residual", "input"}
        The input of the target: queries, keys or values of a head; the sum of the outgoing tokens;
        or the input of the network.
    subspaces : tuple of str
        Names of the subspaces in which it carries something that the target reads. Empty for
        edges that are not in the truth.

    See Also
    --------
    ablate_edge : Runs a circuit without it.

    Examples
    --------
    >>> import lloydformer as lf
    >>> print(lf.interp.truth(lf.recipes.lloyd()).edges[0])
    points -> encoder_cross.Q
    """

    source: str
    target: str
    via: Via
    subspaces: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}.{self.via}"


@dataclass(frozen=True)
class Truth:
    """The graph of one layer: its nodes, the edges that carry something, and those that do not.

    Parameters
    ----------
    recipe : str
        Name of the recipe.
    nodes : tuple of LayerNode
        All nodes.
    edges : tuple of Edge
        The edges of the circuit.
    absent : tuple of Edge
        All others: the target does not read what the source writes.

    See Also
    --------
    truth : Makes it from a recipe.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.interp.truth(lf.recipes.lloyd())
    >>> [str(edge) for edge in found.edges if edge.target == "encoder_cross"]
    ['points -> encoder_cross.Q', 'centers -> encoder_cross.K', 'centers -> encoder_cross.V']
    """

    recipe: str
    nodes: tuple[LayerNode, ...]
    edges: tuple[Edge, ...]
    absent: tuple[Edge, ...]

    def node(self, name: str) -> LayerNode:
        """Return the node of this name.

        Parameters
        ----------
        name : str
            For example "encoder_cross".

        Returns
        -------
        LayerNode
            The node.

        Raises
        ------
        ValueError
            If there is none.

        See Also
        --------
        Truth.basis : The directions in which it writes.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.interp.truth(lf.recipes.soft()).node("decoder_self").variable
        'what is erased of a center: its position of the layer before'
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise ValueError(f"name: found {name!r}; nodes are {', '.join(n.name for n in self.nodes)}")

    def basis(self, name: str, circuit: Circuit) -> Tensor:
        """Return a basis of the subspace in which a node writes its variable.

        Parameters
        ----------
        name : str
            Name of the node.
        circuit : Circuit
            A circuit of the recipe, for the sizes.

        Returns
        -------
        torch.Tensor of shape (m, dim)
            Orthonormal rows: directions of a token.

        See Also
        --------
        Truth.node : The variable.

        Examples
        --------
        >>> import lloydformer as lf
        >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
        >>> lf.interp.truth(lf.recipes.lloyd()).basis("encoder_cross", circuit).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        wanted, space = self.node(name).subspaces, circuit.space
        eye = torch.eye(space.dim, dtype=torch.float64)
        return torch.cat([eye[space.span(s)] for s in space.subspaces if s.name in wanted])

    def to_json(self) -> str:
        """Return nodes and edges as JSON.

        Returns
        -------
        str
            An object with recipe, nodes, edges and absent.

        See Also
        --------
        truth : Makes the object.

        Examples
        --------
        >>> import json, lloydformer as lf
        >>> sorted(json.loads(lf.interp.truth(lf.recipes.lloyd()).to_json()))
        ['absent', 'edges', 'nodes', 'recipe']
        """
        return json.dumps(asdict(self))


def truth(recipe: AnyRecipe) -> Truth:
    """Return which head of a recipe computes what, and which paths carry it.

    An edge is in the truth if its source writes a subspace that the target's projection reads. A
    query is read where its keys have something in the same subspace, and the reverse.

    Parameters
    ----------
    recipe : Recipe
        A constructed recipe with one head in each slot.

    Returns
    -------
    Truth
        Nodes and edges of one layer; all layers have the same.

    Raises
    ------
    ValueError
        If weights are learned, or the recipe has stages, several heads in a slot, or a network
        other than that of lifted tokens.

    See Also
    --------
    ablate_edge : Removes an edge from a run, to check the truth.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.interp.truth(lf.recipes.lloyd())
    >>> len(found.edges), len(found.absent)
    (20, 2)
    """
    if not isinstance(recipe, Recipe) or recipe.free or recipe.numbers is not None:
        raise ValueError(
            f"recipe: found {getattr(recipe, 'name', recipe)!r}; the truth is known for "
            "constructed recipes without stages and modulation"
        )
    lifted = recipe.feedforward is None or isinstance(recipe.feedforward, Quadratic)
    if not lifted or recipe.encoder_norm or recipe.encoder_feedforward:
        raise ValueError(
            f"recipe: found {recipe.name!r}; the truth is known for recipes whose network is "
            "Quadratic(), without norm and network in the encoder"
        )
    if any(head.beside for head in recipe.heads.values()):
        raise ValueError(f"recipe: {recipe.name!r} has several heads in a slot; pass one for each")
    has = recipe.tokens.subspaces
    writes: dict[str, tuple[Subspace, ...]] = {"points": has, "centers": has}
    for name, head in recipe.heads.items():
        targets = {b.target for b in cast(Projection, head.value).blocks}
        writes[name] = tuple(s for s in has if s in targets)
    if recipe.feedforward is not None:
        written = recipe.feedforward.subspaces - {POSITION}
        writes["feedforward"] = tuple(s for s in has if s in written)
    found, absent = list[Edge](), list[Edge]()
    everything = frozenset(has)
    for edge in candidate_edges(recipe):
        if edge.via in PARTS:
            reads = _reads(recipe.heads[edge.target])[edge.via]
        else:
            # the network reads positions; its output does not depend on the other subspaces
            reads = frozenset({POSITION}) if edge.via == "input" else everything
        carried = tuple(s.name for s in writes[edge.source] if s in reads)
        (found if carried else absent).append(replace(edge, subspaces=carried))
    names = [n for n in _VARIABLES if n in writes or n.startswith("next_")]
    nodes = tuple(
        LayerNode(n, _VARIABLES[n], tuple(s.name for s in writes.get(n, has))) for n in names
    )
    return Truth(recipe.name, nodes, tuple(found), tuple(absent))


def candidate_edges(recipe: Recipe) -> Iterator[Edge]:
    """Yield all possible edges of a layer, in the truth or not; a slot may have several heads."""
    slots = recipe.slots
    network = ("feedforward",) if recipe.feedforward is not None else ()

    def write(stream: str) -> list[str]:
        """Return the nodes whose sum is this stream."""
        return [node for name in _SUMMANDS[stream] for node in slots.get(name, (name,))]

    there = {*recipe.heads, "points", "centers"}
    for slot, heads in slots.items():
        queries, keys = _STREAMS[slot]
        for target in heads:
            for via, stream in (("Q", queries), ("K", keys), ("V", keys)):
                for source in write(stream):
                    # a head does not read what is written after it
                    if source in there and source not in heads:
                        yield Edge(source, target, cast(Via, via))
    for target in network:
        for source in write("next_centers"):
            yield Edge(source, target, "input")
    for target in ("next_points", "next_centers"):
        for source in write(target):
            if source in there:
                yield Edge(source, target, "residual")
    for source in network:
        yield Edge(source, "next_centers", "residual")


def _reads(head: Head) -> dict[str, frozenset[Subspace]]:
    """Return the subspaces that have an effect on the output, for query, key and value."""
    query, key, value = (cast(Projection, p) for p in head.projections.values())
    asked = {b.target for b in query.blocks}
    offered = {b.target for b in key.blocks}
    if isinstance(head.score, DotProduct):
        asked, offered = asked & offered, asked & offered
    else:  # a part of the query that no key has adds the same to all scores
        asked = asked & offered
    return {
        "Q": frozenset(b.source for b in query.blocks if b.target in asked),
        "K": frozenset(b.source for b in key.blocks if b.target in offered),
        "V": frozenset(b.source for b in value.blocks),
    }


@renamed_arguments(keep="names_filter")
def ablate_edge(
    circuit: Circuit,
    edge: Edge,
    points: Tensor,
    centers: Tensor,
    layer: int = 1,
    n_layers: int | None = None,
    seed: Seed = None,
    names_filter: tuple[str, ...] = (),
) -> tuple[Trace, Trace]:
    """Run a circuit with and without an edge: the target does not see what the source wrote.

    Everything else sees it. In the first layer points have no old cluster yet, so the edges that
    carry it are idle there.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    edge : Edge
        One of `Truth.edges` or `Truth.absent`.
    points : torch.Tensor of shape (n, d)
        The points.
    centers : torch.Tensor of shape (k, d)
        The initial centers.
    layer : int, default=1
        The layer in which the edge is cut.
    n_layers : int or None, default=None
        Number of layers to run; None ends with the one after it. Edges to `next_points` need that
        one.
    seed : int or None, default=None
        Seed for recipes that draw noise.
    names_filter : tuple of str, default=()
        Intermediates that both traces keep, as in `Circuit.forward`.

    Returns
    -------
    tuple of Trace
        The run with the edge, and that without it.

    See Also
    --------
    truth : The edges that matter.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]], dtype=torch.float64)
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> found = lf.interp.truth(lf.recipes.lloyd())
    >>> for edge in (found.edges[-1], found.absent[0]):
    ...     intact, cut = lf.interp.ablate_edge(circuit, edge, points, points[:2])
    ...     print(edge, bool((intact.centers == cut.centers).all()))
    decoder_cross -> next_centers.residual False
    encoder_self -> decoder_cross.V True
    """
    total = layer + 2 if n_layers is None else n_layers
    needed = (*names_filter, *edge_names(circuit, edge, layer))
    intact = circuit(points, centers, total, names_filter=needed, seed=seed)
    with circuit.patch(
        *edge_patch(circuit, edge, layer, intact, intact[needed[len(names_filter)]])
    ):
        return intact, circuit(points, centers, total, names_filter=needed, seed=seed)


def edge_names(circuit: Circuit, edge: Edge, layer: int) -> list[str]:
    """Return the intermediates that `edge_patch` needs; what the source wrote is the first one."""
    place = f"layers.{layer}."
    names = [place + _OUTPUTS.get(edge.source, f"{edge.source}.output")]
    if edge.via == "input":
        names.append(f"{place}decoder_middle")
    if getattr(circuit.layers[layer % len(circuit.layers)], "separated_slot", None):
        names.append(f"{place}separation")
    return names


def edge_patch(
    circuit: Circuit, edge: Edge, layer: int, run: Trace, removed: Tensor
) -> tuple[str, Callable[[Tensor], Tensor]]:
    """Return the arguments of `Circuit.patch` that take something away from one edge.

    run: has the intermediates of `edge_names`. removed: what the target no longer sees, a part of
    what the source wrote.
    """
    place = f"layers.{layer}."
    module = cast(Any, circuit.layers[layer % len(circuit.layers)])
    if edge.via == "input":
        network: QuadraticNetwork = module.feedforward
        seen = run[f"{place}decoder_middle"] - removed
        return f"{place}feedforward.hidden", lambda value: network.activate(seen)
    if edge.via != "residual":
        matrix, where = PARTS[edge.via]
        head: Attention = module.get_submodule(edge.target)
        # projections are linear: without the summand, its projection is missing
        apart = head.project(matrix, removed, run.kept.get(f"{place}separation", 0.0))
        return f"{place}{edge.target}.{where}", lambda value: value - apart
    if edge.target == "next_points":
        # the tokens as the next layer receives them: decoder_cross reads the same sum by K and V
        return f"layers.{layer + 1}.encoder_tokens", lambda value: value - removed
    # behind the network, which reads the same sum; but a norm is no sum
    stream = "decoder_middle" if module.recipe.norm else "decoder_next"
    return f"{place}{stream}", lambda value: value - removed
