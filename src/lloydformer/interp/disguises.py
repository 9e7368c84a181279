r"""Hide the structure of a transformer in its weights, without changing its function.

A standard transformer has symmetries: the stream may be rotated, queries and keys of a head may be
multiplied by a matrix and the inverse of its transpose, values and outputs by a matrix and its
inverse, and heads may be split or renumbered. `disguise` draws all of these at random (the free
rotations are those of rem:inf-params), and keeps the key to them. `disguise_circuit` does the same
to the heads of a circuit, for every recipe.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from lloydformer.circuits.activations import Gumbel
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.heads import Attention, sum_of_heads
from lloydformer.circuits.projections import Projection
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct
from lloydformer.export.plain_transformer import PlainTransformer
from lloydformer.export.transformer import CompiledTransformer
from lloydformer.interp.layer_graph import Edge, LayerNode, Truth, candidate_edges, truth
from lloydformer.numerics.checks import check_count, require

# What the heads of the two blocks of a layer do.
_ROLES = (("erase the cluster", "assign"), ("erase the center", "update"))
# Standard deviation of the weights of idle heads: small beside those of the others, which are 0, 1
# or 2, so that a head is idle in what it does and in what it weighs.
_IDLE = 0.1
# Diagonal scales of queries and keys are drawn between the inverse of this number and itself.
_SCALES = 3.0


@dataclass(frozen=True)
class Disguised:
    """A disguised model and the key to it.

    Parameters
    ----------
    model : PlainTransformer
        The model, in plain torch.
    roles : tuple of tuple of str
        For each block, what each head does: "erase the cluster", "assign", "erase the center",
        "update", or "idle". Several heads may share a role.
    rotation : torch.Tensor of shape (d_model, d_model)
        The stream is that of the plain model times this matrix.

    See Also
    --------
    disguise : Makes one.

    Examples
    --------
    >>> import lloydformer as lf
    >>> compiled = lf.compile_transformer(lf.recipes.lloyd(), 2, 3, n_layers=1)
    >>> found = lf.interp.disguise(compiled, extra_heads=2, seed=0)
    >>> sorted(found.roles[0])
    ['assign', 'assign', 'erase the cluster', 'erase the cluster', 'idle', 'idle']
    """

    model: PlainTransformer
    roles: tuple[tuple[str, ...], ...]
    rotation: Tensor


def disguise(
    compiled: CompiledTransformer,
    rotation: bool = True,
    extra_heads: int = 2,
    seed: int = 0,
) -> Disguised:
    """Return a model with the same results, whose weights do not show which head does what.

    Every head is split in two that share its work in a random ratio, `extra_heads` idle heads are
    added in pairs that cancel, and all of them are renumbered in each block.

    Parameters
    ----------
    compiled : CompiledTransformer
        The weights of a recipe.
    rotation : bool, default=True
        Whether to rotate the stream, and queries, keys and values of each head. With a norm the
        stream is rotated outside of the positions only.
    extra_heads : int, default=2
        Number of idle heads in each block, even.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    Disguised
        The model and its key.

    Raises
    ------
    ValueError
        If the number of idle heads is odd.

    See Also
    --------
    lloydformer.compile_transformer : The plain weights.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> compiled = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, n_layers=3)
    >>> points = torch.tensor([[-0.9], [-0.8], [0.5], [0.7]], dtype=torch.float64)
    >>> centers, labels = lf.interp.disguise(compiled).model(points, points[:2])
    >>> labels.tolist(), bool((centers[:, 0] - torch.tensor([-0.85, 0.6])).abs().max() < 1e-7)
    ([0, 0, 1, 1], True)
    """
    check_count("extra_heads", extra_heads, least=0)
    require(extra_heads % 2 == 0, "extra_heads", extra_heads, "pass an even number: they cancel")
    generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
    config, dim = dict(compiled.config), compiled.config["d_model"]
    turn = torch.eye(dim, dtype=torch.float64)
    if rotation:
        # a norm reads the first numbers of the stream, which must stay what they are
        fixed = config["n_features"] if any(config["norms"]) else 0
        turn[fixed:, fixed:] = _orthogonal(dim - fixed, generator)
    weights = {name: w.double() for name, w in compiled.weights.items()}
    made: dict[str, Tensor] = {"codes": weights["codes"]}
    made["W_E"], made["W_U"] = weights["W_E"] @ turn, turn.mT @ weights["W_U"]
    hard, roles = list[list[bool]](), list[tuple[str, ...]]()
    for number, heads in enumerate(config["hard"]):
        block = f"blocks.{number}."
        drawn = _Heads(
            {n: turn.mT @ weights[f"{block}attention.W_{n}"] for n in "QKV"},
            weights[f"{block}attention.W_O"] @ turn,
            generator,
        )
        order, role, kinds = drawn.order(extra_heads), list[str](), list[bool]()
        for name, weight in drawn.draw(order, rotation).items():
            made[f"{block}attention.W_{name}"] = weight
        for head, part in order:
            role.append("idle" if part in ("idle", "against") else _ROLES[number % 2][head])
            kinds.append(heads[head])
        roles.append(tuple(role))
        hard.append(kinds)
        # hidden units in another order, with other scales: relu(s z)^2 / s^2 = relu(z)^2
        units = torch.randperm(config["d_mlp"], generator=generator)
        scale = _scales(config["d_mlp"], generator)
        inward = turn.mT @ weights[f"{block}mlp.W_in"]
        outward = weights[f"{block}mlp.W_out"] @ turn
        made[f"{block}mlp.W_in"] = (inward * scale)[:, units]
        made[f"{block}mlp.W_out"] = (outward / scale[:, None] ** 2)[units]
    config["hard"] = hard
    model = PlainTransformer(config)
    dtype = compiled.dtype
    model.load_state_dict({n: w.to(dtype).contiguous() for n, w in made.items()}, assign=True)
    return Disguised(model, tuple(roles), turn)


@dataclass(frozen=True)
class DisguisedCircuit:
    """A circuit with more heads than its recipe, and the key to it.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    roles : dict of str to str
        For each head, the slot of the recipe whose work it shares, or "idle".
    plain : Truth
        The truth about the recipe.

    See Also
    --------
    disguise_circuit : Makes one.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.interp.disguise_circuit(lf.Circuit(lf.recipes.lloyd(), 2, 3), seed=1)
    >>> [role for head, role in found.roles.items() if head.startswith("encoder_cross")]
    ['idle', 'encoder_cross', 'idle', 'encoder_cross']
    """

    circuit: Circuit
    roles: dict[str, str]
    plain: Truth

    def truth(self) -> Truth:
        """Return the graph of a layer with all heads: idle ones have no edge in the truth.

        Returns
        -------
        Truth
            Nodes are heads; an edge is in the truth if that of the roles is.

        See Also
        --------
        truth : The same of a recipe.

        Examples
        --------
        >>> import lloydformer as lf
        >>> found = lf.interp.disguise_circuit(lf.Circuit(lf.recipes.lloyd(), 2, 3)).truth()
        >>> len(found.nodes), len(found.edges), len(found.absent)
        (20, 42, 88)
        """
        known = {str(edge): edge.subspaces for edge in self.plain.edges}
        found, absent = list[Edge](), list[Edge]()
        for edge in candidate_edges(cast(Recipe, self.circuit.schedule[0])):
            source, target = (self.roles.get(n, n) for n in (edge.source, edge.target))
            carried = known.get(str(replace(edge, source=source, target=target)), ())
            (found if carried else absent).append(replace(edge, subspaces=carried))
        nodes = [node for node in self.plain.nodes if node.name not in self.roles.values()]
        for head, role in self.roles.items():
            of_role = [node for node in self.plain.nodes if node.name == role]
            variable = of_role[0].variable if of_role else "nothing: it cancels with another one"
            nodes.append(LayerNode(head, variable, of_role[0].subspaces if of_role else ()))
        return Truth(self.circuit.schedule[0].name, tuple(nodes), tuple(found), tuple(absent))


def disguise_circuit(
    circuit: Circuit, rotation: bool = True, extra_heads: int = 2, seed: int = 0
) -> DisguisedCircuit:
    """Return a circuit with the same results, whose heads do not show which of them does what.

    In each slot the head is split in two that share its work in a random ratio, `extra_heads` idle
    heads are added in pairs that cancel, and all of them are renumbered. Queries and keys of each
    head are turned by a random rotation; those of dot products have mixed scales as well. Gumbel
    attention stays one head, as a slot has one draw.

    Parameters
    ----------
    circuit : Circuit
        A circuit of a recipe whose truth is known.
    rotation : bool, default=True
        Whether to turn queries and keys.
    extra_heads : int, default=2
        Number of idle heads in each slot, even.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    DisguisedCircuit
        The circuit and its key.

    Raises
    ------
    ValueError
        If the number of idle heads is odd, or the truth about the recipe is not known.

    See Also
    --------
    disguise : Hides a standard transformer.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]], dtype=torch.float64)
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> found = lf.interp.disguise_circuit(circuit)
    >>> found.circuit(points, points[:2], n_layers=3).centers[-1].flatten().tolist()
    [0.5, 11.0]
    """
    check_count("extra_heads", extra_heads, least=0)
    require(extra_heads % 2 == 0, "extra_heads", extra_heads, "pass an even number: they cancel")
    known = truth(circuit.schedule[0])
    recipe = cast(Recipe, circuit.schedule[0])
    generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
    heads: dict[str, Any] = {}
    roles: dict[str, str] = {}
    idle: dict[str, Tensor] = {}  # values of idle heads
    for slot, slot_heads in recipe.slots.items():
        head, n_idle = slot_heads[slot], extra_heads
        value, share = cast(Projection, head.value), torch.rand((), generator=generator).item()
        values = [(0.25 + 0.5 * share) * value, (0.75 - 0.5 * share) * value]
        if isinstance(forward_of(head.activation), Gumbel):
            values, n_idle = [value], 0
        order = torch.randperm(len(values) + n_idle, generator=generator).tolist()
        names = [slot, *(f"{slot}_{number}" for number in range(1, len(order)))]
        heads[slot] = sum_of_heads(
            *(replace(head, value=values[i] if i < len(values) else value) for i in order)
        )
        # the two heads of an idle pair attend as the others of the slot, and write opposite values
        dim = circuit.space.dim
        drawn = torch.randn(n_idle // 2, dim, dim, generator=generator, dtype=torch.float64)
        opposite = [w for pair in drawn for w in (_IDLE * pair, -_IDLE * pair)]
        for name, i in zip(names, order, strict=True):
            roles[name] = slot if i < len(values) else "idle"
            if i >= len(values):
                idle[name] = opposite[i - len(values)]
    hidden = Circuit(
        replace(recipe, name=f"{recipe.name}_disguised", **heads),
        circuit.n_features,
        circuit.n_clusters,
        as_in_paper=circuit.as_in_paper,
    )
    for name in roles:
        module = cast(Attention, hidden.layers[0].get_submodule(name))
        if name in idle:
            module.get_buffer("value").copy_(idle[name])
        if rotation:
            _turn(module, generator)
    return DisguisedCircuit(hidden, roles, known)


def _turn(head: Attention, generator: torch.Generator) -> None:
    """Turn queries and keys of a head by the same rotation, which no score sees."""
    dim = head.space.dim
    turn, scale = _orthogonal(dim, generator), torch.ones(dim, dtype=torch.float64)
    if isinstance(head.head.score, DotProduct):
        scale = _scales(dim, generator)
    for name, weight in head.named_buffers():
        if name.startswith("query"):
            weight.copy_(turn @ (scale[:, None] * weight))
        if name.startswith("key"):
            weight.copy_(turn @ (weight / scale[:, None]))


@dataclass(frozen=True)
class _Heads:
    """The heads of a block: weights by letter, (heads, d_model, d_head), and W_O."""

    inward: dict[str, Tensor]
    outward: Tensor
    generator: torch.Generator

    def order(self, n_idle: int) -> list[tuple[int, str]]:
        """Return the heads in a random order: which one it is, and which part of it."""
        n = len(self.outward)
        heads = [(head, part) for head in range(n) for part in ("first", "second")]
        for pair in range(n_idle // 2):
            heads += [(pair % n, "idle"), (pair % n, "against")]
        places = torch.randperm(len(heads), generator=self.generator).tolist()
        return [heads[place] for place in places]

    def draw(self, order: list[tuple[int, str]], rotation: bool) -> dict[str, Tensor]:
        """Return the weights of the heads in this order."""
        share = torch.rand(len(self.outward), generator=self.generator, dtype=torch.float64)
        share = 0.25 + 0.5 * share
        # the two heads of an idle pair attend as a real one, and write opposite values
        idle = torch.randn(self.outward.shape, generator=self.generator, dtype=torch.float64)
        factors = {"first": share, "second": 1 - share}
        found: dict[str, list[Tensor]] = {name: [] for name in "QKVO"}
        for head, part in order:
            q, k, v = (self.inward[name][head] for name in "QKV")
            o = self.outward[head]
            if part in factors:
                o = o * factors[part][head]
            else:
                o = idle[head] if part == "idle" else -idle[head]
            if rotation:
                d_head = q.shape[1]
                # q a (k a^-T)^T = q k^T, for any invertible a
                turn, scale = _orthogonal(d_head, self.generator), _scales(d_head, self.generator)
                q, k = (q * scale) @ turn, (k / scale) @ turn
                turn, scale = _orthogonal(d_head, self.generator), _scales(d_head, self.generator)
                v, o = (v * scale) @ turn, turn.mT @ (o / scale[:, None])
            for name, weight in zip("QKVO", (q, k, v, o), strict=True):
                found[name].append(weight)
        return {name: torch.stack(heads) for name, heads in found.items()}


def _orthogonal(size: int, generator: torch.Generator) -> Tensor:
    """Return a random rotation, uniformly distributed."""
    drawn = torch.randn(size, size, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(drawn)
    return q * r.diagonal().sign()


def _scales(size: int, generator: torch.Generator) -> Tensor:
    """Return random positive factors."""
    drawn = 2 * torch.rand(size, generator=generator, dtype=torch.float64) - 1
    return _SCALES**drawn
