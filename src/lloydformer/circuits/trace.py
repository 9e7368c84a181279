"""The trace: centers and assignments of every layer, and the intermediates that were kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from html import escape

from jaxtyping import Float, Int
from torch import Tensor, nn

from lloydformer.circuits.display import trace_html
from lloydformer.circuits.outside import Outside
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.clusters import kmeans_objective, observed_objective

# The new value of an intermediate, or a function of the old one.
Replacement = Tensor | Callable[[Tensor], Tensor]

# Hook points of a layer through which numbers of `Outside` pass, and their names there.
_OUTSIDE = {
    "separation": "separation",
    "gap": "gap",
    "encoder_cross.tolerance": "tolerance",
    "decoder_cross.tolerance": "share_tolerance",
}


@dataclass(frozen=True, eq=False)
class Patch:
    """Replaces the intermediates whose names match a shell pattern."""

    pattern: str
    replacement: Replacement

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Return the new value, with the shape, dtype and device of the old one."""
        new = self.replacement(value) if callable(self.replacement) else self.replacement
        if not isinstance(new, Tensor) or new.shape != value.shape:
            found = f"shape {tuple(new.shape)}" if isinstance(new, Tensor) else repr(new)
            raise ValueError(
                f"patch {name!r}: found {found}; pass a tensor of shape {tuple(value.shape)}, or a "
                "function that returns one"
            )
        return new.to(value)


@dataclass(frozen=True)
class Trace:
    """The run of a circuit over T layers.

    For a batch of problems, the first axis of every tensor is that of the batch. Tokens among the
    intermediates are in the circuit's coordinates: their position is `x - origin`.

    Parameters
    ----------
    points : torch.Tensor of shape (n, d)
        The points.
    centers : torch.Tensor of shape (T + 1, k, d)
        The centers before each layer and after the last one.
    assignments : torch.Tensor of shape (T, n, k)
        The encoder's cross-attention of each layer, which assigns the points to centers.
    origin : torch.Tensor of shape (1, d)
        The vector that the circuit subtracted from points and centers.
    names : tuple of str
        The names of all intermediates of the run.
    kept : dict of str to torch.Tensor
        The intermediates that were kept, by name.
    outside : tuple of Outside
        The numbers that each layer used and that attention does not compute: origin, separation,
        tolerances, rule for ties, noise.
    scaled : bool
        Whether the objective of a point with missing values is scaled to that of a whole point.

    Attributes
    ----------
    n_layers : int
        The number of layers T.
    labels : torch.Tensor of shape (T, n)
        The cluster of each point in each layer.
    objective : torch.Tensor of shape (T + 1,)
        The k-means objective of `centers`.

    See Also
    --------
    Circuit : Its call returns a trace.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> trace = circuit(points, points[:2], n_layers=2, names_filter=("*.attention",))
    >>> trace
    Trace(2 layers, 4 points, 2 centers, 1 features, 8 of 64 intermediates kept)
    >>> trace.labels.tolist()
    [[0, 1, 1, 1], [0, 0, 1, 1]]
    >>> trace.objective.tolist()
    [80.0, 17.0, 8.5]
    """

    points: Float[Tensor, "*b n d"]
    centers: Float[Tensor, "*b s k d"]
    assignments: Float[Tensor, "*b t n k"]
    origin: Float[Tensor, "*b 1 d"]
    names: tuple[str, ...] = field(repr=False)
    kept: dict[str, Tensor] = field(repr=False)
    outside: tuple[Outside, ...] = field(default=(), repr=False)
    scaled: bool = field(default=False, repr=False)

    @property
    def n_layers(self) -> int:
        """The number of layers T.

        See Also
        --------
        Trace.assignments : Has one matrix for each layer.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [1.0]])
        >>> lf.Circuit(lf.recipes.lloyd(), 1, 2)(points, points, n_layers=3).n_layers
        3
        """
        return self.assignments.shape[-3]

    @cached_property
    def labels(self) -> Int[Tensor, "*b t n"]:
        """The cluster of each point in each layer: the first of the largest assignments.

        See Also
        --------
        Trace.assignments : The attention that the labels are the maximum of.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [1.0], [5.0]])
        >>> trace = lf.Circuit(lf.recipes.lloyd(), 1, 2)(points, points[[0, 2]], n_layers=1)
        >>> trace.labels.tolist()
        [[0, 0, 1]]
        """
        return self.assignments.argmax(dim=-1)

    @cached_property
    def objective(self) -> Float[Tensor, "*b s"]:
        """The k-means objective of the centers before each layer and after the last one.

        See Also
        --------
        Trace.centers : The centers that it belongs to.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [2.0], [5.0]])
        >>> trace = lf.Circuit(lf.recipes.lloyd(), 1, 2)(points, points[[0, 2]], n_layers=1)
        >>> trace.objective.tolist()
        [4.0, 2.0]
        """
        points = self.points.unsqueeze(-3).expand(*self.centers.shape[:-2], -1, -1)
        if points.isnan().any():
            return observed_objective(points, self.centers, scaled=self.scaled)
        return kmeans_objective(points, self.centers)

    def __getitem__(self, name: str) -> Tensor:
        """Return an intermediate by its name.

        Parameters
        ----------
        name : str
            One of `names`, for example `"layers.3.encoder_cross.attention"`.

        Returns
        -------
        torch.Tensor
            The intermediate.

        Raises
        ------
        KeyError
            If it was not kept, or the circuit has no intermediate of this name.

        See Also
        --------
        Circuit.forward : Its parameter `names_filter` selects the intermediates.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [1.0], [5.0]])
        >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
        >>> trace = circuit(points, points[[0, 2]], n_layers=1, names_filter="*.scores")
        >>> trace["layers.0.encoder_cross.scores"][1].tolist()
        [-1.0, -16.0]
        """
        if name in self.kept:
            return self.kept[name]
        if name in self.names:
            raise KeyError(f'{name!r} was not kept: run the circuit with names_filter=("{name}",)')
        near = get_close_matches(name, self.names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise KeyError(f"{name!r} is not an intermediate of this circuit{hint}")

    def __repr__(self) -> str:
        *batch, t, n, k = self.assignments.shape
        prefix = f"batch of {batch[0]}, " if batch else ""
        return (
            f"Trace({prefix}{t} layers, {n} points, {k} centers, {self.points.shape[-1]} features, "
            f"{len(self.kept)} of {len(self.names)} intermediates kept)"
        )

    def _repr_html_(self) -> str:
        """Return a figure of the run for notebooks; of a batch, the words of `repr`."""
        if self.points.ndim == 3:
            return f"<pre>{escape(repr(self))}</pre>"
        return trace_html(self.points, self.centers, self.labels[-1], self.objective, repr(self))


@dataclass
class Recorder:
    """Reads and patches intermediates by forward hooks on the hook points of the layers.

    It keeps those whose names match a shell pattern (`layers.3.*`), the assignments of every
    layer, and the numbers of `Outside` of the running layer. One module may run as several
    layers: `layer` is the number of the running one.
    """

    patterns: tuple[str, ...]
    patches: tuple[Patch, ...] = ()
    layer: int = 0
    kept: dict[str, Tensor] = field(default_factory=dict)
    assignments: list[Tensor] = field(default_factory=list)
    outside: dict[str, Tensor] = field(default_factory=dict)

    @contextmanager
    def watch(self, layers: Iterable[nn.Module]) -> Iterator["Recorder"]:
        """Register the hooks; they are removed at the end of the `with` block."""
        with ExitStack() as hooks:
            for layer in set(layers):  # one module may run as several layers, with one hook each
                for name, point in hook_points(layer):
                    hook = partial(self._record, name, name == layer.assigning)
                    hooks.enter_context(point.register_forward_hook(hook))
            yield self

    def take_outside(self) -> dict[str, Tensor]:
        """Return the numbers of `Outside` that the running layer has used, and forget them."""
        outside, self.outside = self.outside, {}
        return outside

    def _record(
        self, point: str, assigning: bool, module: nn.Module, inputs: object, output: Tensor
    ) -> Tensor:
        """Return the output of a hook point after patches, and keep it where it is wanted."""
        name = f"layers.{self.layer}.{point}"
        for patch in self.patches:
            if fnmatchcase(name, patch.pattern):
                output = patch(name, output)
        if assigning:
            self.assignments.append(output)
        if point in _OUTSIDE:
            self.outside[_OUTSIDE[point]] = output
        if any(fnmatchcase(name, pattern) for pattern in self.patterns):
            self.kept[name] = output
        return output


def hook_points(layer: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the hook points of a layer: the identity modules that intermediates pass through."""
    return [(name, m) for name, m in layer.named_modules() if isinstance(m, nn.Identity)]


def intermediate_names(layers: Iterable[nn.Module]) -> tuple[str, ...]:
    """Return the names of all intermediates of a run through these layers."""
    return tuple(
        f"layers.{t}.{name}" for t, layer in enumerate(layers) for name, _ in hook_points(layer)
    )


def check_patterns(
    names_filter: Sequence[str], names: Sequence[str], argument: str = "names_filter"
) -> tuple[str, ...]:
    """Return the patterns as a tuple; raise ValueError if one matches no intermediate."""
    patterns = (names_filter,) if isinstance(names_filter, str) else tuple(names_filter)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = get_close_matches(pattern, names, n=1)
            raise ValueError(
                f"{argument}: found {pattern!r}, which matches none of {len(names)} intermediates; "
                f"try {near[0] if near else names[0]!r}"
            )
    return patterns
