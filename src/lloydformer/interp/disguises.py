r"""Hide the structure of a transformer in its weights, without changing its function.

A standard transformer has symmetries: the stream may be rotated, queries and keys of a head may be
multiplied by a matrix and the inverse of its transpose, values and outputs by a matrix and its
inverse, and heads may be split or renumbered. `disguise` draws all of these at random (the free
rotations are those of rem:inf-params), and keeps the key to them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.export.plain_transformer import PlainTransformer
from lloydformer.export.transformer import CompiledTransformer
from lloydformer.numerics.checks import check_count, require

# What the heads of the two blocks of a layer do.
_ROLES = (("erase the cluster", "assign"), ("erase the center", "update"))
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
