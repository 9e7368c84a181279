r"""Recipes compiled to a standard transformer: one stream, soft-max attention, an MLP.

A layer of a recipe becomes two blocks with two heads each:

- "erase" attends to the token itself and subtracts what is to be replaced: the code of the cluster
  in the first block, position and squared norm in the second one.
- "assign" (first block): a point attends to the centers with score $\gamma (2 x^\top c - \lVert c
  \rVert^2)$, which is $-\gamma \lVert x - c \rVert^2$ up to a constant of the point, and adds their
  codes. A center attends to itself.
- "update" (second block): a center attends to the points and adds their positions. A point attends
  to itself.

The MLP of the second block writes the squared norm again, $\sum_j [x_j]_+^2 + [-x_j]_+^2$. Which
type of key a head wants is a term of its score, high enough that the weight of all others is 0 in
floating point.
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Linear, Softmax
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import forward_only
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.export.plain_transformer import PlainTransformer
from lloydformer.numerics.checks import FLOATS, as_problem, check_count, require, require_positive
from lloydformer.numerics.clusters import squared_distances

# Inverse temperature of the update, for codes that are 1 in a point's own cluster: points of other
# clusters have exp(-64) = 1.6e-28 of the weight of own ones, and an error e of the codes changes
# weights by a factor of 1 + 64 e only.
_SHARPNESS = 64.0
# exp(-800) is 0 in float64, and exp(-120) in float32.
_NO_WEIGHT = {torch.float64: 800.0, torch.float32: 120.0}
# Default of gamma times the squared radius. Scores have rounding errors of about eps times 4 of it,
# 1e-9 and 5e-3. Other centers have a share of 1e-16 where the margin is 4e-5, or 4e-3, of the
# squared radius.
_SHARP = {torch.float64: 1e6, torch.float32: 1e4}


@dataclass(frozen=True)
class CompiledTransformer:
    """The weights of a recipe as a standard transformer.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    config : dict
        The sizes that `PlainTransformer` needs, as JSON values.
    weights : dict of str to torch.Tensor
        Its weights.
    radius : float
        The largest length of a point or a center for which the weights are made.
    inverse_temperature : float
        The gamma of the heads that select keys.
    limit : bool
        Whether these heads have the limit of soft-max instead.

    See Also
    --------
    compile_transformer : Makes one.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> compiled = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, n_layers=3)
    >>> points = torch.tensor([[-0.9], [-0.8], [0.5], [0.7]], dtype=torch.float64)
    >>> centers, labels = compiled.model()(points, points[:2])
    >>> [round(center, 6) for center in centers.flatten().tolist()], labels.tolist()
    ([-0.85, 0.6], [0, 0, 1, 1])
    """

    recipe: Recipe
    config: dict[str, Any]
    weights: dict[str, Tensor]
    radius: float
    inverse_temperature: float
    limit: bool

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights.

        See Also
        --------
        compile_transformer : Its parameter `dtype`.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.compile_transformer(lf.recipes.lloyd(), 1, 2, 1).dtype
        torch.float64
        """
        return self.weights["codes"].dtype

    def model(self) -> PlainTransformer:
        """Return the model in plain torch, with these weights.

        Returns
        -------
        PlainTransformer
            A `torch.nn.Module` that maps (points, centers) to (centers, labels).

        See Also
        --------
        CompiledTransformer.save : Writes the weights for a program without this package.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.compile_transformer(lf.recipes.lloyd(), 2, 3, n_layers=2).model()
        >>> len(model.blocks), tuple(model.blocks[0].attention.W_Q.shape)
        (4, (2, 8, 7))
        """
        model = PlainTransformer(self.config)
        model.load_state_dict(self.weights, assign=True)
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the weights as safetensors; `export/plain_transformer.py` reads them alone.

        Parameters
        ----------
        path : str or PathLike
            The file; its name ends in ``.safetensors``.

        Raises
        ------
        ValueError
            If the name ends otherwise.

        See Also
        --------
        CompiledTransformer.model : The model in this process.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> from lloydformer.export.plain_transformer import read
        >>> compiled = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, n_layers=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     compiled.save(f"{folder}/lloyd.safetensors")
        ...     model = read(f"{folder}/lloyd.safetensors")
        >>> len(model.blocks)
        6
        """
        ends = os.fspath(path).endswith(".safetensors")
        require(ends, "path", os.fspath(path), "use a name that ends in .safetensors")
        # tensors that share memory cannot be written: layers have the same weights
        weights = {name: weight.clone() for name, weight in self.weights.items()}
        beside = Path(path).with_name(f".{os.getpid()}-{Path(path).name}")
        try:
            save_file(weights, beside, {"plain_transformer": json.dumps(self.config)})
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    def bound(self, points: Tensor, centers: Tensor) -> Tensor:
        r"""Return upper bounds of the distance of any center to that of `Circuit`, by layer.

        The circuit is run on these data. A point whose nearest center is nearer than the others by
        a margin m of squared distance gives them a share of at most $(k - 1) e^{-\gamma m}$ in
        all; this, the temperature of the update and rounding move the centers, and moved
        centers make margins smaller. Where that is not enough to be sure of an assignment, the
        bound is the diameter 2r of the data.

        Parameters
        ----------
        points : torch.Tensor of shape (n, d)
            The points.
        centers : torch.Tensor of shape (k, d)
            The initial centers.

        Returns
        -------
        torch.Tensor of shape (n_layers + 1,)
            The bounds; 0 for the initial centers.

        Raises
        ------
        ValueError
            If a point or a center is longer than `radius`.

        See Also
        --------
        compile_transformer : Its parameter `inverse_temperature` sets the bound.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> compiled = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, n_layers=2)
        >>> points = torch.tensor([[-0.9], [-0.8], [0.5], [0.7]], dtype=torch.float64)
        >>> bool((compiled.bound(points, points[:2]) < 1e-6).all())
        True
        """
        x, c = as_problem(points, centers)
        longest = max(x.norm(dim=-1).max().item(), c.norm(dim=-1).max().item())
        require(
            longest <= self.radius * (1 + 1e-12),
            "points",
            longest,
            f"their length is at most radius={self.radius:g}; scale them, or compile with another",
        )
        circuit = Circuit(self.recipe, x.shape[-1], c.shape[-2])
        trace = circuit(x.double(), c.double(), n_layers=len(self.config["hard"]) // 2)
        errors = [0.0]
        for before, labels in zip(trace.centers[:-1], trace.labels, strict=True):
            errors.append(self._step(trace.points, before, labels, errors[-1], longest))
        return torch.tensor(errors, dtype=torch.float64)

    def _step(self, x: Tensor, c: Tensor, labels: Tensor, error: float, r: float) -> float:
        """Return the bound after a layer, from that before it, for exact centers and labels."""
        n, k = len(x), len(c)
        gamma, sharp = self.inverse_temperature, _SHARPNESS
        eps, width = torch.finfo(self.dtype).eps, self.config["d_model"]
        # rounding error of a score: sums of `width` products, which are at most `largest`
        noise = 8 * width * eps
        largest = 16 * gamma * self.radius**2 + 2 * _NO_WEIGHT[self.dtype]
        squares = squared_distances(x, c)
        own = squares.gather(1, labels[:, None])[:, 0]
        others = squares.scatter(1, labels[:, None], torch.inf).amin(dim=1)
        margin = (others - own).min().item() - 2 * (4 * r * error + error * error)
        share = _exp(math.log(max(k - 1, 1)) - gamma * margin + 2 * noise * largest)
        if k == 1:
            share = 0.0
        if self.limit:
            share = 0.0 if gamma * margin > 2 * noise * largest else 1.0
        if share >= 0.25:
            return 2 * r
        # rounding of a mean: n products, and two sums with the old position
        rounding = 4 * (n + width) * eps * r
        soft = _soft_update(self.recipe)
        if soft is not None:
            gain, separation = soft
            scale = gain * (16 * self.radius**2 + 4 * separation) + 2 * _NO_WEIGHT[self.dtype]
            change = gain * (4 * r * error + 8 * separation * share) + 2 * noise * scale
            return min(2 * r, r * (_exp(change) - 1) + rounding)
        codes = self.weights["codes"].double()
        near = codes[labels] @ codes.mT  # (n, k): products of codes, largest for own points
        best = near.amax(dim=0)
        most = codes.square().sum(dim=1).max().item()
        is_own = near == best
        gap = (best - near.masked_fill(is_own, -torch.inf).amax(dim=0)).min().item()
        # a code that is off by 2 * share in all changes its products by 2 * share * most
        slack = sharp * 4 * most * share + 2 * noise * (sharp * most + 2 * _NO_WEIGHT[self.dtype])
        leak = n * _exp(-sharp * gap + slack)
        change = _exp(slack) - 1
        if self.limit:
            leak = change = 0.0
        moved = r * change + 2 * r * leak + rounding
        if self.recipe.norm is not None:
            weights = is_own.double() / is_own.sum(dim=0)
            shortest = (weights.mT @ x).norm(dim=-1).min().item()
            moved = 2 * moved / shortest + 8 * width * eps if shortest > 0 else 2 * r
        return min(2 * r, moved)


def compile_transformer(
    recipe: AnyRecipe,
    n_features: int,
    n_clusters: int,
    n_layers: int,
    *,
    radius: float = 1.0,
    inverse_temperature: float | None = None,
    limit: bool = False,
    dtype: torch.dtype = torch.float64,
) -> CompiledTransformer:
    r"""Compile a recipe to a standard transformer: one stream, soft-max attention, an MLP.

    The model has two blocks for each layer, and is the same algorithm up to a bound that
    `CompiledTransformer.bound` states for given data. Recipes whose heads have other activations
    than (limiting) soft-max are refused: norm-max, sparsemax, Gumbel and linear attention.

    Parameters
    ----------
    recipe : Recipe
        `lloyd`, `lloyd_dot`, `lloyd_binary`, `spherical`, or `robust` and `robust_lifted` with
        activation "softmax" and a separation; or a variant with the same activations.
    n_features : int
        Number of features d.
    n_clusters : int
        Number of centers k.
    n_layers : int
        Number of layers of the recipe.
    radius : float, default=1.0
        Largest length of a point or center. Subtract the mean of the data first. Larger scores
        than those of this radius could let tokens of the wrong type have weight.
    inverse_temperature : float or None, default=None
        The factor $\gamma$ of squared distances in heads that select keys. None is 1e6 over the
        squared radius (1e4 in float32).
    limit : bool, default=False
        Whether heads that select keys have the limit of soft-max: all weight on the best keys.
    dtype : torch.dtype, default=torch.float64
        Precision of the weights.

    Returns
    -------
    CompiledTransformer
        The weights, with `model()`, `save()` and `bound()`.

    Raises
    ------
    ValueError
        If the recipe needs another activation, with the reason.

    See Also
    --------
    Circuit.export : The circuit itself, with two streams and Euclidean scores.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> recipe = lf.recipes.robust(2.0, "softmax", separation=20.0)
    >>> compiled = lf.compile_transformer(recipe, n_features=2, n_clusters=3, n_layers=4)
    >>> compiled.config["d_model"], compiled.config["d_head"]
    (8, 7)
    """
    if reason := why_not(recipe):
        raise ValueError(f"recipe: {recipe.name!r} has no standard transformer: {reason}")
    assert isinstance(recipe, Recipe)  # by `why_not`
    d, k = check_count("n_features", n_features), check_count("n_clusters", n_clusters)
    check_count("n_layers", n_layers)
    require(dtype in FLOATS, "dtype", dtype, "pass torch.float32 or torch.float64")
    require_positive("radius", radius)
    gamma = _SHARP[dtype] / radius**2 if inverse_temperature is None else inverse_temperature
    require_positive("inverse_temperature", gamma)
    codes = recipe.tokens.codes.table(k)
    m = codes.shape[1]
    config: dict[str, Any] = {
        "n_features": d,
        "n_clusters": k,
        "code_size": m,
        "d_model": d + m + 3,
        "d_head": d + m + 2,
        "d_mlp": 2 * d,
    }
    soft = _soft_update(recipe)
    norm = {RMSNorm: "rms", LayerNorm: "layer"}.get(type(recipe.norm)) if recipe.norm else None
    config["hard"] = [[limit, limit], [limit, limit and soft is None]] * n_layers
    config["norms"] = [None, norm] * n_layers
    eye = torch.eye(config["d_model"], dtype=torch.float64)
    weights = {"codes": codes, "W_E": eye, "W_U": eye.clone()}
    blocks = _blocks(recipe, config, gamma, radius, dtype)
    for number in range(2 * n_layers):
        for name, weight in blocks[number % 2].items():
            weights[f"blocks.{number}.{name}"] = weight
    weights = {name: weight.to(dtype) for name, weight in weights.items()}
    return CompiledTransformer(recipe, config, weights, float(radius), float(gamma), limit)


def why_not(recipe: object) -> str:
    """Return why a recipe has no standard transformer; nothing if it has one."""
    if not isinstance(recipe, Recipe):
        return "its stages have several sets of tokens and an axis of proposals"
    if recipe.free or recipe.numbers is not None:
        return "its weights are learned, for Euclidean scores and other activations"
    assigns = forward_of(recipe.encoder_cross.activation)
    updates = forward_of(recipe.decoder_cross.activation)
    if isinstance(updates, Linear):
        return (
            "linear attention divides shares by their sum over the points; soft-max has "
            "exponentials of scores, so it would need the logarithms of shares in the stream"
        )
    for slot, activation in (("encoder_cross", assigns), ("decoder_cross", updates)):
        if not isinstance(activation, Softmax | LimitingSoftmax):
            kind = type(activation).__name__
            return f"{slot} has {kind}, which soft-max is not at any temperature"
    if isinstance(updates, Softmax) and recipe.given_separation is None:
        return "its separation is chosen from the data; give one, as separation=20.0"
    if not any(forward_only(recipe) == replace(r, name=recipe.name) for r in _possible(recipe)):
        return (
            "its heads are none of lloyd, lloyd_dot, lloyd_binary, spherical, robust or "
            "robust_lifted, whose proofs the weights follow"
        )
    return ""


def _possible(recipe: Recipe) -> Iterator[Recipe]:
    """Yield the recipes that have a standard transformer, with the parameters of this one."""
    yield recipes.lloyd_binary()
    soft = _soft_update(recipe)
    for ties in ("first", "average"):
        yield recipes.lloyd(ties)
        yield recipes.lloyd_dot(ties)
        yield recipes.spherical("rms", ties)
        yield recipes.spherical("layer", ties)
        if soft is not None:
            for make in (recipes.robust, recipes.robust_lifted):
                yield make(soft[0], "softmax", soft[1], ties)


def _soft_update(recipe: Recipe) -> tuple[float, float] | None:
    """Return inverse temperature and separation of an update by soft-max; None if hard."""
    activation = forward_of(recipe.decoder_cross.activation)
    if not isinstance(activation, Softmax):
        return None
    return activation.inverse_temperature, float(recipe.given_separation or 0.0)


def _blocks(
    recipe: Recipe, config: dict[str, Any], gamma: float, radius: float, dtype: torch.dtype
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the weights of the two blocks of a layer."""
    d, m = config["n_features"], config["code_size"]
    dim, d_head = config["d_model"], config["d_head"]
    position, square, code = range(d), d, range(d + 1, d + 1 + m)  # of the stream
    is_point, is_center = dim - 2, dim - 1
    in_head, code_in_head = range(d), range(d, d + m)  # of queries and keys
    square_in_head, flag = d_head - 2, d_head - 1
    # the scores of two keys for one query differ by less, for tokens within the radius
    reach = 8 * radius**2
    wide = d_head**0.5  # attention divides by it

    def empty() -> dict[str, Tensor]:
        weights = {name: torch.zeros(2, dim, d_head) for name in ("W_Q", "W_K", "W_V")}
        weights["W_O"] = torch.zeros(2, d_head, dim)
        # no copy of a weight may be a view of another one, so that they can be written
        return {name: weight.double() for name, weight in weights.items()}

    def read(head: int, places: Sequence[int], slots: Sequence[int], factor: float) -> None:
        """Add factor times the product of query and key at these places to the score."""
        for place, slot in zip(places, slots, strict=True):
            block["W_Q"][head, place, slot] = factor * wide
            block["W_K"][head, place, slot] = 1.0

    def read_square(head: int, factor: float) -> None:
        """Add factor times the squared norm of the key to the score."""
        block["W_Q"][head, [is_point, is_center], square_in_head] = factor * wide
        block["W_K"][head, square, square_in_head] = 1.0

    def want(head: int, key_type: int, largest: float) -> None:
        """Let a head attend to keys of one type, where other scores differ by `largest`."""
        block["W_Q"][head, [is_point, is_center], flag] = (largest + _NO_WEIGHT[dtype]) * wide
        block["W_K"][head, key_type, flag] = 1.0

    def erase(head: int, places: Sequence[int]) -> None:
        """Let a head attend to the token itself, and subtract its numbers at these places."""
        # of the tokens that a token sees, the only one of its own type is itself
        read(head, [is_point, is_center], [flag, flag - 1], _NO_WEIGHT[dtype])
        move(head, places, -1.0)

    def move(head: int, places: Sequence[int], sign: float) -> None:
        """Let a head add the numbers of its keys at these places, times the sign."""
        for slot, place in enumerate(places):
            block["W_V"][head, place, slot] = 1.0
            block["W_O"][head, slot, place] = sign

    first = block = empty()
    erase(0, code)
    read(1, position, in_head, 2 * gamma)
    if recipe.norm is None:  # all unit vectors have the same
        read_square(1, -gamma)
    want(1, is_center, gamma * reach)
    move(1, code, 1.0)
    second = block = empty()
    erase(0, [*position, square])
    soft = _soft_update(recipe)
    if soft is None:
        read(1, code, code_in_head, _SHARPNESS)
        want(1, is_point, 2 * _SHARPNESS * m)
    else:
        # -|x - c|^2 - separation |y - e|^2, but for constants of the center
        gain, separation = soft
        read(1, position, in_head, 2 * gain)
        read_square(1, -gain)
        read(1, code, code_in_head, 2 * gain * separation)
        want(1, is_point, gain * (reach + 4 * separation))
    move(1, position, 1.0)
    blocks = []
    for attention in (first, second):
        named = {f"attention.{name}": weight for name, weight in attention.items()}
        named["mlp.W_in"] = torch.zeros(dim, 2 * d, dtype=torch.float64)
        named["mlp.W_out"] = torch.zeros(2 * d, dim, dtype=torch.float64)
        blocks.append(named)
    # the squared norm of every token, from its position: [x]_+^2 + [-x]_+^2
    for slot in in_head:
        blocks[1]["mlp.W_in"][slot, slot], blocks[1]["mlp.W_in"][slot, d + slot] = 1.0, -1.0
    blocks[1]["mlp.W_out"][:, square] = 1.0
    return blocks[0], blocks[1]


def _exp(value: float) -> float:
    """Return e to this power; infinite beyond the range of a float."""
    return math.exp(value) if value < 700 else math.inf
