"""The circuit: runs a recipe, T layers for T iterations."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import NamedTuple, cast

import torch
from numpy import ndarray
from torch import Tensor, nn

from lloydformer.circuits.gradients import warn_without_gradient
from lloydformer.circuits.layer import Layer, LayerContext, Seed, layer_noise
from lloydformer.circuits.norms import BlockArgmax
from lloydformer.circuits.outside import Outside, has_noise, with_printed_ties
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.saved import fill_weights, make_quietly, read_circuit, write_circuit
from lloydformer.circuits.staged_layer import StagedLayer
from lloydformer.circuits.stages import AnyRecipe, as_schedule
from lloydformer.circuits.subspaces import POSITION
from lloydformer.circuits.trace import (
    Patch,
    Recorder,
    Replacement,
    Trace,
    check_patterns,
    intermediate_names,
)
from lloydformer.circuits.unrolled import Unrolled, check_ending, export_program, write_program
from lloydformer.numerics.checks import (
    FLOATS,
    as_problem,
    check_count,
    check_range,
    check_unit,
    check_zero_sum,
    require,
)
from lloydformer.numerics.scaling import fill_by_medians, median
from lloydformer.renamed import renamed_arguments

AnyLayer = Layer | StagedLayer


class Embedded(NamedTuple):
    """The tokens of a problem, and the origin that was subtracted from it."""

    encoder: Tensor
    decoder: Tensor
    origin: Tensor


class Circuit(nn.Module):
    """A transformer with hand-set weights whose layers run a clustering algorithm exactly.

    One layer is one iteration. Weights are buffers that follow the dtype and device of the
    points. Encoder self-attention is computed in full, so time and memory grow with n^2: a
    circuit is meant for inspection, checks and training. The estimators are the fast way.

    Parameters
    ----------
    recipe : Recipe, Staged, or list or tuple of them
        The recipe of every layer, or a schedule of recipes that is repeated. The recipes of a
        schedule must have the same tokens.
    n_features : int
        Number of features d of the points.
    n_clusters : int
        Number of centers k.
    trainable : bool, default=False
        Whether the weights are parameters, which start at the values of the recipe. If the
        recipe has a modulation (`Recipe.numbers`), only the modulation is trainable. Queries and
        keys of heads that select keys, as those of `lf.recipes.lloyd()` do, get no gradient: a
        `NoGradientWarning` names them. `lf.recipes.softened` and `lf.recipes.straight_through`
        return recipes whose queries and keys get one.
    seed : int, default=0
        Seed of the weights that the recipe leaves free, as `lloydformer.recipes.learned` does.
    as_in_paper : bool, default=False
        Whether to run without the numbers that attention does not compute (docs/walk.md): no
        origin is subtracted, scores are compared exactly, ties are averaged if the codes allow it,
        shares have no logarithms, and a separation that the recipe does not give is 0 (the paper
        has 'a large positive constant').

    Attributes
    ----------
    schedule : tuple of Recipe or Staged
        The recipes of the layers.
    layers : torch.nn.ModuleList
        One module for each recipe of the schedule. Layers with the same recipe share it: use
        `patch` to change something in one of them.
    tokens : Tokens
        How points and centers are embedded.
    space : Space
        The named subspaces of a token, with their sizes.

    Raises
    ------
    ValueError
        If `recipe` is not a recipe, or a size is not a positive integer.

    See Also
    --------
    Recipe : The description of a layer.
    Trace : The result of a run.
    CircuitClusterer : An estimator for any recipe, without the cost of n^2.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> trace = circuit(points, points[:2], n_layers=3)
    >>> trace.centers[-1].flatten().tolist()
    [0.5, 11.0]
    """

    @renamed_arguments(as_printed="as_in_paper")
    def __init__(
        self,
        recipe: AnyRecipe | Sequence[AnyRecipe],
        n_features: int,
        n_clusters: int,
        trainable: bool = False,
        seed: int = 0,
        as_in_paper: bool = False,
    ) -> None:
        super().__init__()
        self.as_in_paper = as_in_paper
        self.schedule = self._given = as_schedule(recipe)
        if as_in_paper:
            self.schedule = tuple(map(with_printed_ties, self.schedule))
        self.n_features = check_count("n_features", n_features)
        self.n_clusters = check_count("n_clusters", n_clusters)
        self.tokens = self.schedule[0].tokens
        # far from zero the residual stream loses digits in each layer (docs/errata.md, 8)
        self._centers_data = not as_in_paper and all(
            recipe.translation_invariant for recipe in self.schedule
        )
        self.space = self.tokens.space(n_features, n_clusters)
        generator = torch.Generator().manual_seed(check_count("seed", seed, least=0))
        self.layers = nn.ModuleList(
            Layer(recipe, self.space, generator, as_in_paper)
            if isinstance(recipe, Recipe)
            else StagedLayer(recipe, self.space)
            for recipe in self.schedule
        )
        self._patches: list[Patch] = []
        if trainable:
            for layer in cast(list[AnyLayer], list(self.layers)):
                part: nn.Module = layer if layer.numbers is None else layer.numbers
                # in torch's default dtype, as weights of other modules: buffers are float64
                for module in part.modules():
                    for name, buffer in list(module.named_buffers(recurse=False)):
                        delattr(module, name)
                        weight = nn.Parameter(buffer.to(torch.get_default_dtype()))
                        module.register_parameter(name, weight)
            warn_without_gradient(self)

    @renamed_arguments(keep="names_filter")
    def forward(
        self,
        points: Tensor | ndarray,
        centers: Tensor | ndarray,
        n_layers: int = 10,
        names_filter: Sequence[str] = (),
        seed: Seed = None,
        start: Mapping[str, Tensor | ndarray] | None = None,
    ) -> Trace:
        """Run the circuit; call it as `circuit(points, centers, ...)`.

        Parameters
        ----------
        points : torch.Tensor or numpy.ndarray of shape (n, d) or (b, n, d)
            The points of a problem, or of a batch of b problems.
        centers : torch.Tensor or numpy.ndarray of shape (k, d) or (b, k, d)
            The initial centers.
        n_layers : int, default=10
            Number of layers, one for each iteration.
        names_filter : str or sequence of str, default=()
            Names of intermediates that the trace keeps, or shell patterns (`"layers.3.*"`).
        seed : int, sequence of int or None, default=None
            Seed for recipes that draw noise. In a batch, problem i draws with seed + i, or with
            the i-th of several seeds.
        start : mapping of str to torch.Tensor or numpy.ndarray, or None, default=None
            Further parameters of the initial centers, for recipes whose centers have some:
            "weights" and "covariances" of `lloydformer.recipes.mixture`.

        Returns
        -------
        Trace
            Centers, assignments and the intermediates that were kept.

        Raises
        ------
        ValueError
            If points or centers are unsuitable, a pattern matches nothing, or a seed is missing.

        See Also
        --------
        Trace : The result.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
        >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
        >>> trace = circuit(points, points[:2], n_layers=2, names_filter="layers.0.encoder_cross.*")
        >>> trace["layers.0.encoder_cross.scores"][3].tolist()
        [-144.0, -121.0]
        """
        points, centers = self._check_problem(points, centers)
        check_count("n_layers", n_layers)
        modules = cast(list[AnyLayer], list(self.layers))
        layers = [modules[t % len(modules)] for t in range(n_layers)]
        names = intermediate_names(layers)
        patterns, patches = check_patterns(names_filter, names), tuple(self._patches)
        check_patterns([patch.pattern for patch in patches], names, "patch")
        x, c, origin = self.embed(points, centers, start=start)
        history, outside, depth = [centers], list[Outside](), 0
        with Recorder(patterns, patches).watch(layers) as recorder:
            for recorder.layer, layer in enumerate(layers):
                if recorder.layer and layer.recipe.embeds_again:
                    x, c, origin = self.embed(points, history[-1])
                # a staged layer counts as several, as the plain algorithm numbers its noise
                draw = layer_noise(seed, depth, points)
                depth += layer.recipe.depth(self.n_clusters)
                time = recorder.layer / max(1, n_layers - 1)
                x, c = layer(x, c, LayerContext(draw, time))
                history.append(self.space.read(c, POSITION) + origin)
                outside.append(_outside(layer, origin, recorder.take_outside(), seed))
        lost = (t for t, now in enumerate(history) if not torch.isfinite(now).all())
        if (first := next(lost, None)) is not None:
            warnings.warn(
                f"layer {first - 1}: a center is not a number. Its weights are all zero (0/0): "
                "linear attention on a cluster without weight, or a norm of a zero vector",
                RuntimeWarning,
                stacklevel=2,
            )
        return Trace(
            points=points,
            centers=torch.stack(history, dim=-3),
            assignments=torch.stack(recorder.assignments, dim=-3),
            origin=origin,
            names=names,
            kept=recorder.kept,
            outside=tuple(outside),
            scaled=getattr(self.tokens, "policy", None) == "ignore",
        )

    @contextmanager
    def patch(self, name: str, replacement: Replacement) -> Iterator[None]:
        """Replace an intermediate in the runs inside of a `with` block.

        Layers share their modules, so an ordinary hook acts in all of them. A patch acts in those
        that it names.

        Parameters
        ----------
        name : str
            A name of `Trace.names`, or a shell pattern (`"layers.3.*.attention"`).
        replacement : torch.Tensor or callable
            The new value, of the same shape, or a function from the old value to the new one.

        Yields
        ------
        None
            While the block runs, calls of the circuit are patched.

        Raises
        ------
        ValueError
            In the run: if `name` matches no intermediate, or the new value has another shape.

        See Also
        --------
        Trace.names : The names of all intermediates.

        Examples
        --------
        Swap the two centers between the first and the second layer:

        >>> import torch, lloydformer as lf
        >>> from lloydformer.circuits.subspaces import POSITION
        >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
        >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
        >>> def swap(tokens):
        ...     places = circuit.space.read(tokens, POSITION)
        ...     return circuit.space.write(tokens, POSITION, places.flip(0))
        >>> with circuit.patch("layers.1.decoder_tokens", swap):
        ...     trace = circuit(points, points[:2], n_layers=2)
        >>> trace.centers[-1].flatten().tolist()
        [11.0, 0.5]
        """
        patch = Patch(name, replacement)
        self._patches.append(patch)
        try:
            yield
        finally:
            self._patches.remove(patch)

    def unroll(self, n_layers: int = 10, seed: int | None = None) -> Unrolled:
        """Return the circuit as a module of tensors only: (points, centers) to (centers, labels).

        `torch.compile(fullgraph=True)`, `torch.vmap` and `torch.export` accept it. It shares the
        weights of the circuit, and checks nothing.

        Parameters
        ----------
        n_layers : int, default=10
            Number of layers, one for each iteration.
        seed : int or None, default=None
            Seed for recipes that draw noise.

        Returns
        -------
        Unrolled
            The module.

        Raises
        ------
        ValueError
            If a recipe is staged, or draws noise without a seed.

        See Also
        --------
        Circuit.export : Writes it to a file.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
        >>> unrolled = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2).unroll()
        >>> centers, labels = unrolled(points, points[:2])
        >>> labels.tolist()
        [0, 0, 1, 1]
        """
        return Unrolled(self, n_layers, seed)

    def export(
        self,
        path: str | PathLike[str] | None = None,
        n_layers: int = 10,
        dtype: torch.dtype = torch.float64,
        seed: int | None = None,
    ) -> torch.export.ExportedProgram:
        """Return the circuit as a program of `torch.export`, and write it to a file.

        The program maps (points, centers) to (centers, labels) for any number of points that is
        at least the number of clusters. Programs that run it need no lloydformer. Inputs are not
        checked.

        Parameters
        ----------
        path : str, PathLike or None, default=None
            A file to write: ``.pt2`` for `torch.export.load`, ``.onnx`` for runtimes of ONNX. The
            latter needs ``pip install "lloydformer[onnx]"``.
        n_layers : int, default=10
            Number of layers, one for each iteration.
        dtype : torch.dtype, default=torch.float64
            Precision of points and centers, torch.float32 or torch.float64.
        seed : int or None, default=None
            Seed for recipes that draw noise; the program draws the same in every run.

        Returns
        -------
        torch.export.ExportedProgram
            The program; `module()` makes it callable.

        Raises
        ------
        ValueError
            If a recipe is staged, or draws noise without a seed, or the file has another ending.

        See Also
        --------
        Circuit.unroll : The module that is exported.
        Circuit.save : Keeps the circuit itself.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> program = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2).export(n_layers=2)
        >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]], dtype=torch.float64)
        >>> centers, labels = program.module()(points, points[:2])
        >>> labels.tolist()
        [0, 0, 1, 1]
        """
        require(dtype in FLOATS, "dtype", dtype, "pass torch.float32 or torch.float64")
        if path is not None:
            check_ending(path)
        unrolled = self.unroll(n_layers, seed)
        program = export_program(unrolled, dtype, onnx=str(path).endswith(".onnx"))
        if path is not None:
            write_program(program, path)
        return program

    def save(self, path: str | PathLike[str]) -> None:
        """Write the circuit to one file: weights as safetensors, recipe and sizes as JSON.

        Parts of your own are written by their import path.

        Parameters
        ----------
        path : str or PathLike
            The file; its name ends in ``.safetensors``.

        Raises
        ------
        ValueError
            If the ending is another one, or a part cannot be imported by a reader.

        See Also
        --------
        Circuit.load : Reads the file.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> circuit = lf.Circuit(lf.recipes.soft(2.0), n_features=2, n_clusters=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     circuit.save(f"{folder}/soft.safetensors")
        ...     again = lf.Circuit.load(f"{folder}/soft.safetensors")
        >>> again.schedule == circuit.schedule
        True
        """
        given = {
            "recipes": list(self._given),
            "n_features": self.n_features,
            "n_clusters": self.n_clusters,
            "trainable": any(True for _ in self.parameters()),
            "as_printed": self.as_in_paper,  # the name in files, which stays
        }
        write_circuit(self, given, path)

    @classmethod
    def load(cls, path: str | PathLike[str], allow: Collection[str] = ()) -> "Circuit":
        """Return the circuit of a file that `save` has written.

        Nothing in the file is executed. Parts that are not of this package are imported only if
        you name them.

        Parameters
        ----------
        path : str or PathLike
            The file.
        allow : tuple of str, default=()
            Import paths of parts of your own, as ``"my_package.scores:Manhattan"``.

        Returns
        -------
        Circuit
            The circuit, with the weights of the file.

        Raises
        ------
        ValueError
            If the file holds no circuit, or a part that is not allowed.

        See Also
        --------
        Circuit.save : Writes the file.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.Circuit(lf.recipes.lloyd(), 2, 3).save(f"{folder}/lloyd.safetensors")
        ...     circuit = lf.Circuit.load(f"{folder}/lloyd.safetensors")
        >>> circuit.n_features, circuit.n_clusters
        (2, 3)
        """
        given, weights = read_circuit(path, allow)
        recipes, as_in_paper = given.pop("recipes"), given.pop("as_printed")
        circuit = make_quietly(cls, recipe=recipes, as_in_paper=as_in_paper, **given)
        fill_weights(circuit, weights)
        return circuit

    def embed(
        self,
        points: Tensor,
        centers: Tensor,
        assignments: Tensor | None = None,
        start: Mapping[str, Tensor | ndarray] | None = None,
    ) -> Embedded:
        """Return the tokens that the first layer receives.

        The data are centered if all recipes are translation invariant, unless `as_in_paper`.

        Parameters
        ----------
        points : torch.Tensor of shape (n, d) or (b, n, d)
            The points.
        centers : torch.Tensor of shape (k, d) or (b, k, d)
            The centers.
        assignments : torch.Tensor of shape (n, k) or (b, n, k), or None, default=None
            Assignments of an earlier layer; zero by default.
        start : mapping of str to torch.Tensor or numpy.ndarray, or None, default=None
            Further parameters of the centers, by name (see `forward`).

        Returns
        -------
        Embedded
            Encoder tokens, decoder tokens, and the origin that was subtracted.

        See Also
        --------
        lloydformer.circuits.tokens.Tokens : The embedding.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
        >>> points = torch.tensor([[-1.0], [0.0], [1.0]])
        >>> circuit.embed(points, points[[0, 2]]).decoder.tolist()  # position, one-hot code
        [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
        """
        origin = torch.zeros_like(points[..., :1, :])
        if self._centers_data:
            known = points if not self.tokens.has_missing else fill_by_medians(points)
            origin = median(known).unsqueeze(-2)
        if assignments is None:
            assignments = points.new_zeros(*points.shape[:-1], self.n_clusters)
        x, c = points - origin, centers - origin
        given = {name: torch.as_tensor(value).to(c) for name, value in (start or {}).items()}
        return Embedded(self.tokens.encoder(x, assignments), self.tokens.decoder(c, given), origin)

    def _check_problem(self, points: object, centers: object) -> tuple[Tensor, Tensor]:
        x, c = as_problem(points, centers, missing=self.tokens.has_missing)
        found = (x.shape[-1], c.shape[-2])
        if found != (self.n_features, self.n_clusters):
            raise ValueError(
                f"points, centers: found {found[0]} features and {found[1]} centers; this circuit "
                f"was made with n_features={self.n_features}, n_clusters={self.n_clusters}"
            )
        known = x if not self.tokens.has_missing else fill_by_medians(x)
        check_range("points", known)
        # together with the points: one center alone has no range
        check_range("centers", torch.cat([known, c], dim=-2))
        # of the points alone: the theorem (thm:sp-clus ip) allows any initial centers, as a point
        # chooses by the dot product and only new centers are normed
        # Learned weights need no unit vectors.
        for norm in {r.norm for r in self.schedule if r.norm and not r.free}:
            if isinstance(norm, BlockArgmax):
                continue
            check_unit("points", x)
            if norm.zero_sum:
                check_zero_sum("points", x)
        return x, c

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_patches": []}  # copies are not patched

    def extra_repr(self) -> str:
        """Return the sizes, which `repr` shows.

        Returns
        -------
        str
            Number of features, of clusters and of dimensions of a token.

        See Also
        --------
        torch.nn.Module.extra_repr : The method of PyTorch that this one implements.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3).extra_repr()
        'n_features=2, n_clusters=3, dim=5'
        """
        return f"n_features={self.n_features}, n_clusters={self.n_clusters}, dim={self.space.dim}"


def _outside(layer: AnyLayer, origin: Tensor, recorded: dict[str, Tensor], seed: Seed) -> Outside:
    """Return the numbers that the layer used and that attention does not compute.

    recorded: those that passed through the hook points of the layer.
    """
    noise: int | tuple[int, ...] | None = None
    if seed is not None and has_noise(layer.recipe):
        noise = tuple(map(int, seed)) if isinstance(seed, Iterable) else int(seed)
    shares = recorded.pop("share_tolerance", None)
    return Outside(
        origin,
        getattr(layer.recipe, "ties", None),
        share_tolerance=None if shares is None else shares.max().item(),
        log_shares=getattr(layer, "log_shares", False),
        noise=noise,
        **recorded,
    )
