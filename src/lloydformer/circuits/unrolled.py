"""Circuits as ordinary modules of a fixed number of layers: for torch.export, ONNX, compile, vmap.

A graph has no hooks, no checks of values and no trace. `Unrolled` runs the same layers without
them, and `export_program` and `write_onnx` write it for programs that do not know this package.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lloydformer.circuits.activations import TopK
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.heads import Attention
from lloydformer.circuits.layer import Layer, LayerContext, layer_noise
from lloydformer.circuits.outside import has_noise
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION
from lloydformer.numerics.checks import check_count

# Input and output names of an exported circuit; values of ONNX have names of their own, so that
# the new centers cannot be called "centers" as well.
INPUTS, OUTPUTS = ("points", "centers"), ("new_centers", "labels")


class Unrolled(nn.Module):
    """A circuit with a fixed number of layers, as a module (points, centers) -> (centers, labels).

    It computes what `Circuit` does, with the same modules, but without checks, patches and trace:
    `torch.compile(fullgraph=True)`, `torch.vmap` and `torch.export` accept it. Euclidean scores are
    one expression, so results may differ from those of the circuit in the last digits.

    Parameters
    ----------
    circuit : Circuit
        The circuit, whose modules and weights are shared.
    n_layers : int
        Number of layers.
    seed : int or None, default=None
        Seed of recipes that draw noise; every problem of `torch.vmap` draws the same.

    Raises
    ------
    ValueError
        If a recipe is staged, or draws noise without a seed.

    See Also
    --------
    Circuit.unroll : Makes one.
    Circuit.export : Writes one to a file.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> unrolled = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2).unroll(n_layers=3)
    >>> centers, labels = unrolled(points, points[:2])
    >>> centers.flatten().tolist(), labels.tolist()
    ([0.5, 11.0], [0, 0, 1, 1])
    """

    def __init__(self, circuit: nn.Module, n_layers: int, seed: int | None = None) -> None:
        super().__init__()
        self.circuit, self.seed = circuit, seed
        self.n_layers = check_count("n_layers", n_layers)
        self.columns: list[dict[str, slice]] = []
        for layer in cast(list[Layer], list(cast(Any, circuit).layers)):
            recipe = layer.recipe
            if not isinstance(recipe, Recipe):
                raise ValueError(
                    f"recipe: found {recipe.name!r}, whose stages depend on the numbers of tokens; "
                    "only circuits of a Recipe can be unrolled and exported"
                )
            if seed is None and has_noise(recipe):
                raise ValueError(f"seed: found None; {recipe.name!r} draws noise, pass an integer")
            heads = {n: m for n, m in layer.named_children() if isinstance(m, Attention)}
            self.columns.append({name: head.find_columns() for name, head in heads.items()})

    def forward(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        """Run the layers.

        Parameters
        ----------
        points : torch.Tensor of shape (n, d) or (b, n, d)
            The points; finite, and unit vectors if the recipe has a norm. They are not checked.
        centers : torch.Tensor of shape (k, d) or (b, k, d)
            The initial centers, of the same dtype.

        Returns
        -------
        centers : torch.Tensor of shape (k, d) or (b, k, d)
            The centers after the last layer.
        labels : torch.Tensor of shape (n,) or (b, n)
            The clusters of the points in the last layer, as `Trace.labels[-1]`.

        See Also
        --------
        Circuit.forward : Returns a trace.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> unrolled = lf.Circuit(lf.recipes.soft(), n_features=1, n_clusters=2).unroll(5)
        >>> problems = torch.tensor([[[0.0], [1.0], [9.0]], [[0.0], [7.0], [9.0]]])
        >>> torch.vmap(unrolled)(problems, problems[:, [0, 2]])[1].tolist()
        [[0, 0, 1], [0, 1, 1]]
        """
        circuit = cast(Any, self.circuit)
        x, c, origin = circuit.embed(points, centers)
        weights: Tensor | None = None
        for t in range(self.n_layers):
            number = t % len(circuit.layers)
            layer: Layer = circuit.layers[number]
            if t and layer.recipe.embeds_again:
                moved = circuit.space.read(c, POSITION) + origin
                x, c, origin = circuit.embed(points, moved)
            noise = layer_noise(self.seed, t, points)
            time = t / max(1, self.n_layers - 1)
            x, c, weights = layer.run(x, c, LayerContext(noise, time, self.columns[number]))
        labels = cast(Tensor, weights).argmax(dim=-1)
        return circuit.space.read(c, POSITION) + origin, labels


# Functions and methods of torch that may have a number beside a float64 tensor.
_WITH_NUMBERS = {
    *("add", "sub", "mul", "div", "true_divide", "rsub", "maximum", "minimum", "clamp", "pow"),
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__"),
    *("__rtruediv__", "__rdiv__", "__lt__", "__le__", "__gt__", "__ge__", "lt", "le", "gt", "ge"),
}


class ExactNumbers(TorchFunctionMode):
    """Turns numbers in float64 expressions into tensors.

    torch.onnx writes the number of `tensor * 1.001` in float32, which is off by 1e-8 of it.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        beside = next((a for a in args if isinstance(a, Tensor)), None)
        if (
            beside is not None
            and beside.dtype == torch.float64
            and getattr(func, "__name__", "") in _WITH_NUMBERS
        ):
            exact = beside.new_tensor
            args = tuple(exact(a) if isinstance(a, float) else a for a in args)
            given = {n: exact(a) if isinstance(a, float) else a for n, a in given.items()}
        return func(*args, **given)


class _ForOnnx(nn.Module):
    """An unrolled circuit whose numbers are tensors."""

    def __init__(self, unrolled: Unrolled) -> None:
        super().__init__()
        self.unrolled = unrolled

    def forward(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        with ExactNumbers():
            return self.unrolled(points, centers)


def export_program(
    unrolled: Unrolled, dtype: torch.dtype, onnx: bool = False
) -> torch.export.ExportedProgram:
    """Return the program of torch.export, for any number of points that is not below k.

    onnx: a program from which torch.onnx makes a graph in full precision.
    """
    circuit = cast(Any, unrolled.circuit)
    k, d = circuit.n_clusters, circuit.n_features
    activations = [
        forward_of(head.activation) for recipe in circuit.schedule for head in recipe.heads.values()
    ]
    # top-m attention takes the m best of n points, or all of fewer: a graph has one of the two
    least = max([2, k, *(a.m for a in activations if isinstance(a, TopK))])
    generator = torch.Generator().manual_seed(0)
    # a number of points that is no other size, so that no size is mistaken for it
    n = 2 * least + k + d + circuit.space.dim + 1
    points = torch.randn(n, d, generator=generator, dtype=torch.float64).to(dtype)
    training = unrolled.training
    try:
        unrolled.eval()  # no dropout in the graph
        return torch.export.export(
            _ForOnnx(unrolled) if onnx else unrolled,
            (points, points[:k].clone()),
            dynamic_shapes=({0: torch.export.Dim("n", min=least)}, None),
        )
    finally:
        unrolled.train(training)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise ValueError unless the name ends in .pt2 or .onnx, before the work begins."""
    if Path(path).suffix not in (".pt2", ".onnx"):
        raise ValueError(f"path: found {os.fspath(path)!r}; use a name that ends in .pt2 or .onnx")


def write_program(program: torch.export.ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Write the program as .pt2 (torch.export) or .onnx, by the ending of the name."""
    target = Path(path)
    if target.suffix == ".pt2":
        _write_beside(target, lambda file: torch.export.save(program, file))
        return
    try:
        import onnxscript  # noqa: F401  # torch.onnx needs it
    except ImportError:
        raise ValueError(
            'path: ONNX files need onnx and onnxscript: pip install "lloydformer[onnx]"; or write '
            "a .pt2 file"
        ) from None
    # it warns that torchvision is not installed, whose operators are of no use here
    chatter = logging.getLogger("torch.onnx._internal.exporter._registration")
    disabled, chatter.disabled = chatter.disabled, True
    try:
        written = torch.onnx.export(
            program, dynamo=True, input_names=INPUTS, output_names=OUTPUTS, verbose=False
        )
    finally:
        chatter.disabled = disabled
    assert written is not None
    _write_beside(target, lambda file: written.save(file, external_data=False))


def _write_beside(target: Path, write: Callable[[str], object]) -> None:
    """Write a temporary file in the same folder and rename it: the target is whole at any time."""
    beside = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        write(str(beside))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
