"""The trace: what a circuit did, layer by layer, and every intermediate that was asked for."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property, partial

from jaxtyping import Float, Int
from torch import Tensor, nn

from lloydformer.numerics.objectives import kmeans_objective


@dataclass(frozen=True)
class Trace:
    """The run of a circuit over T layers. Where the points are a batch, its axis comes first.

    `trace["layers.3.encoder_cross.attention"]` is an intermediate of layer 3, if it was kept;
    `trace.names` lists those that could have been. Tokens are in the circuit's coordinates:
    position `x - origin`.
    """

    points: Float[Tensor, "*b n d"]
    centers: Float[Tensor, "*b s k d"]
    """The centers before each layer and after the last one."""
    assignments: Float[Tensor, "*b t n k"]
    """The attention that assigns the points in each layer: the encoder's cross-attention."""
    origin: Float[Tensor, "*b 1 d"]
    names: tuple[str, ...] = field(repr=False)
    kept: dict[str, Tensor] = field(repr=False)

    @property
    def n_layers(self) -> int:
        return self.assignments.shape[-3]

    @cached_property
    def labels(self) -> Int[Tensor, "*b t n"]:
        """The cluster of each point in each layer: the first of the largest assignments."""
        return self.assignments.argmax(dim=-1)

    @cached_property
    def objective(self) -> Float[Tensor, "*b s"]:
        """The k-means objective of the centers before each layer and after the last one."""
        points = self.points.unsqueeze(-3).expand(*self.centers.shape[:-2], -1, -1)
        return kmeans_objective(points, self.centers)

    def __getitem__(self, name: str) -> Tensor:
        if name in self.kept:
            return self.kept[name]
        if name in self.names:
            raise KeyError(f'{name!r} was not kept: run the circuit with keep=("{name}",)')
        near = get_close_matches(name, self.names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise KeyError(f"{name!r} is no intermediate of this circuit{hint}")

    def __repr__(self) -> str:
        *batch, t, n, k = self.assignments.shape
        where = f"batch of {batch[0]}, " if batch else ""
        return (
            f"Trace({where}{t} layers, {n} points, {k} centers, {self.points.shape[-1]} features, "
            f"{len(self.kept)} of {len(self.names)} intermediates kept)"
        )


@dataclass
class Recorder:
    """Reads intermediates by ordinary forward hooks on the named points of the layers.

    It keeps those whose names match a pattern of the shell (`layers.3.*`), and the assignments
    of every layer. A module may serve as many layers: `layer` says which one is running.
    """

    patterns: tuple[str, ...]
    layer: int = 0
    kept: dict[str, Tensor] = field(default_factory=dict)
    assignments: list[Tensor] = field(default_factory=list)

    @contextmanager
    def watching(self, layers: Iterable[nn.Module]) -> Iterator["Recorder"]:
        with ExitStack() as hooks:
            for layer in set(layers):
                for name, point in points_of(layer):
                    read = partial(self._read, name, name == layer.assigning)
                    hooks.enter_context(point.register_forward_hook(read))
            yield self

    def _read(
        self, point: str, assigning: bool, module: nn.Module, inputs: object, output: Tensor
    ) -> None:
        name = f"layers.{self.layer}.{point}"
        if assigning:
            self.assignments.append(output)
        if any(fnmatchcase(name, pattern) for pattern in self.patterns):
            self.kept[name] = output


def points_of(layer: nn.Module) -> list[tuple[str, nn.Module]]:
    """The named points of a layer module: the places that intermediates pass through."""
    return [(name, m) for name, m in layer.named_modules() if isinstance(m, nn.Identity)]


def names_of(layers: Iterable[nn.Module]) -> tuple[str, ...]:
    """The names of all intermediates of a run through these layers."""
    return tuple(
        f"layers.{t}.{name}" for t, layer in enumerate(layers) for name, _ in points_of(layer)
    )
