"""Exact interventions on circuits: patching of activations and edges, ablation, attribution.

All functions take an `InputPair` of a clean and a corrupted input, and a metric: a function of a
trace. An effect is the part of the metric's difference that an intervention restores: 0 for the
corrupted run, 1 for the clean one.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.layer import Seed
from lloydformer.circuits.trace import Trace
from lloydformer.interp.layer_graph import Edge, edge_names, edge_patch
from lloydformer.interp.tasks import InputPair

# A number of a trace, such as a coordinate of a center; a tensor without axes.
Metric = Callable[[Trace], Tensor]

# Intermediates that tools look at by default: what each head writes, and what its inputs are.
HEADS = ("*.queries", "*.keys", "*.values", "*.attention", "*.output")


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    found = [name for name in names if any(fnmatchcase(name, p) for p in patterns)]
    if not found:
        raise ValueError(f"patterns: found {tuple(patterns)}, which match no intermediate")
    return found


def _difference(clean: Trace, corrupted: Trace, metric: Metric) -> float:
    """Return the difference of the metric between two runs whose tokens can be exchanged."""
    if not torch.equal(clean.origin, corrupted.origin):
        raise ValueError(
            "pair: the two inputs have different origins, so their tokens cannot be exchanged; use "
            "a circuit with as_in_paper=True"
        )
    difference = (metric(clean) - metric(corrupted)).item()
    if difference == 0:
        raise ValueError("metric: it is the same for clean and corrupted inputs; use another one")
    return difference


def patch_activations(
    circuit: Circuit,
    pair: InputPair,
    metric: Metric,
    n_layers: int = 2,
    patterns: Sequence[str] = HEADS,
    seed: Seed = None,
) -> dict[str, float]:
    """Return what each intermediate of the clean run restores in the corrupted run.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    pair : InputPair
        Clean and corrupted inputs.
    metric : callable
        Takes a trace and returns a tensor with one number.
    n_layers : int, default=2
        Number of layers.
    patterns : sequence of str, default=HEADS
        Shell patterns of the names of intermediates.
    seed : int or None, default=None
        Seed for recipes that draw noise.

    Returns
    -------
    dict of str to float
        The effect of each intermediate: 1 restores the clean metric, 0 nothing.

    Raises
    ------
    ValueError
        If the metric does not differ, or no intermediate matches.

    See Also
    --------
    attribute : Approximates the same by gradients.
    patch_edges : By path instead of by node.

    Examples
    --------
    >>> import lloydformer as lf
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    >>> pair = lf.interp.pairs("label", n_pairs=1)[0]
    >>> found = lf.interp.patch_activations(
    ...     circuit, pair, lambda trace: trace.assignments[0, pair.place, pair.clean_value], 1
    ... )
    >>> found["layers.0.encoder_cross.queries"], found["layers.0.encoder_self.queries"]
    (1.0, 0.0)
    """
    clean = circuit(*pair.clean, n_layers, names_filter=tuple(patterns), seed=seed)
    run = circuit(*pair.corrupted, n_layers, seed=seed)
    scale, corrupted, effects = _difference(clean, run, metric), metric(run), dict[str, float]()
    for name in _matching(clean.names, patterns):
        with circuit.patch(name, clean[name]):
            patched = metric(circuit(*pair.corrupted, n_layers, seed=seed))
        effects[name] = (patched - corrupted).item() / scale
    return effects


def patch_edges(
    circuit: Circuit,
    pair: InputPair,
    metric: Metric,
    edges: Iterable[Edge],
    layer: int = 0,
    n_layers: int = 2,
    seed: Seed = None,
) -> dict[str, float]:
    """Return what each edge restores: its target sees the clean summand, all others do not.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    pair : InputPair
        Clean and corrupted inputs.
    metric : callable
        Takes a trace and returns a tensor with one number.
    edges : iterable of Edge
        The edges, for example `truth(recipe).edges`.
    layer : int, default=0
        The layer in which they are patched; not the last one.
    n_layers : int, default=2
        Number of layers.
    seed : int or None, default=None
        Seed for recipes that draw noise.

    Returns
    -------
    dict of str to float
        The effect of each edge, by its text.

    Raises
    ------
    ValueError
        If the metric does not differ between the two inputs.

    See Also
    --------
    patch_activations : By node instead of by path.

    Examples
    --------
    >>> import lloydformer as lf
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    >>> pair = lf.interp.pairs("label", n_pairs=1)[0]
    >>> found = lf.interp.patch_edges(
    ...     circuit, pair, lambda trace: trace.assignments[0, pair.place, pair.clean_value],
    ...     lf.interp.truth(lf.recipes.lloyd()).edges,
    ... )
    >>> [name for name, effect in found.items() if effect == 1]
    ['points -> encoder_cross.Q']
    """
    found = [*edges]
    needed = tuple({name for edge in found for name in edge_names(circuit, edge, layer)})
    clean = circuit(*pair.clean, n_layers, names_filter=needed, seed=seed)
    run = circuit(*pair.corrupted, n_layers, names_filter=needed, seed=seed)
    scale, corrupted, effects = _difference(clean, run, metric), metric(run), dict[str, float]()
    for edge in found:
        source = edge_names(circuit, edge, layer)[0]
        with circuit.patch(*edge_patch(circuit, edge, layer, run, run[source] - clean[source])):
            patched = metric(circuit(*pair.corrupted, n_layers, seed=seed))
        effects[str(edge)] = (patched - corrupted).item() / scale
    return effects


def ablate(
    circuit: Circuit,
    points: Tensor,
    centers: Tensor,
    n_layers: int = 2,
    patterns: Sequence[str] = ("*.output",),
    seed: Seed = None,
) -> dict[str, float]:
    """Return how far the last centers move if an intermediate is zero.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    points : torch.Tensor of shape (n, d)
        The points.
    centers : torch.Tensor of shape (k, d)
        The initial centers.
    n_layers : int, default=2
        Number of layers.
    patterns : sequence of str, default=("*.output",)
        Shell patterns of the names of intermediates.
    seed : int or None, default=None
        Seed for recipes that draw noise.

    Returns
    -------
    dict of str to float
        For each intermediate, the largest distance between a center and that of the intact run;
        infinity if a center is not a number.

    Raises
    ------
    ValueError
        If no intermediate matches.

    See Also
    --------
    ablate_edge : Removes what one node reads of another.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> lf.interp.ablate(circuit, points, points[:2], 1, ["*.decoder_*.output"])
    {'layers.0.decoder_cross.output': 4.0, 'layers.0.decoder_self.output': 4.0}
    """
    intact, moves = circuit(points, centers, n_layers, seed=seed), dict[str, float]()
    for name in _matching(intact.names, patterns):
        with circuit.patch(name, torch.zeros_like):
            last = circuit(points, centers, n_layers, seed=seed).centers[-1]
        away = (last - intact.centers[-1]).norm(dim=-1).max().item()
        moves[name] = away if away == away else float("inf")  # NaN is not equal to itself
    return moves


def attribute(
    circuit: Circuit,
    pair: InputPair,
    metric: Metric,
    n_layers: int = 2,
    patterns: Sequence[str] = HEADS,
    seed: Seed = None,
    steps: int = 1,
) -> dict[str, float]:
    """Approximate `patch_activations` by gradients: change of an intermediate times the slope.

    With several steps the slope is the mean over inputs on the way from corrupted to clean, as in
    integrated gradients. The slope of heads that select keys is 0, so their effects are not found.

    Parameters
    ----------
    circuit : Circuit
        The circuit.
    pair : InputPair
        Clean and corrupted inputs.
    metric : callable
        Takes a trace and returns a tensor with one number.
    n_layers : int, default=2
        Number of layers.
    patterns : sequence of str, default=HEADS
        Shell patterns of the names of intermediates.
    seed : int or None, default=None
        Seed for recipes that draw noise.
    steps : int, default=1
        Number of inputs at which the slope is measured.

    Returns
    -------
    dict of str to float
        The approximate effect of each intermediate.

    Raises
    ------
    ValueError
        If the metric does not differ, or no intermediate matches.

    See Also
    --------
    patch_activations : The exact effects.

    Examples
    --------
    >>> import lloydformer as lf
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    >>> pair = lf.interp.pairs("label", n_pairs=1)[0]
    >>> found = lf.interp.attribute(
    ...     circuit, pair, lambda trace: trace.assignments[0, pair.place, pair.clean_value], 1
    ... )
    >>> found["layers.0.encoder_cross.queries"]  # that of patching is 1
    0.0
    """
    clean = circuit(*pair.clean, n_layers, names_filter=tuple(patterns), seed=seed)
    corrupted = circuit(*pair.corrupted, n_layers, names_filter=tuple(patterns), seed=seed)
    scale = _difference(clean, corrupted, metric)
    names = _matching(clean.names, patterns)
    effects = dict.fromkeys(names, 0.0)
    for step in range(steps):
        part = step / steps
        inputs = [
            torch.lerp(bad, good, part)
            for bad, good in zip(pair.corrupted, pair.clean, strict=True)
        ]
        # a zero is added to each intermediate: its gradient is that of the intermediate
        zeros = {name: torch.zeros_like(clean[name], requires_grad=True) for name in names}
        with ExitStack() as patches, torch.enable_grad():
            for name, zero in zeros.items():
                patches.enter_context(
                    circuit.patch(name, lambda value, zero=zero: value + zero)  # type: ignore[misc]
                )
            value = metric(circuit(*inputs, n_layers, seed=seed))
        if not value.requires_grad:  # hard choices everywhere
            continue
        slopes = torch.autograd.grad(value, [*zeros.values()], allow_unused=True)
        for name, slope in zip(names, slopes, strict=True):
            if slope is not None:
                change = clean[name] - corrupted[name]
                effects[name] += (slope * change).sum().item() / steps / scale
    return effects
