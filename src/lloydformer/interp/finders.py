"""Methods that find circuits: activation patching, attribution patching, edge attribution, ACDC.

They see nothing but a `FindingProblem`: how a metric changes with the strengths of the edges. So
they run on a layer of a circuit (`layer_problem.py`), and in the tests on functions whose answer
is known. Each returns a score for each edge; `area_under_curve` compares scores with the truth.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

# Effects below this part of the metric's difference count as 0. Rounding gives edges without effect
# about 1e-16; in a float32 circuit it would be 1e-7, so that a smaller effect could not be seen.
FLOOR = 1e-6
# Thresholds of ACDC. Each takes about as many runs as there are edges, so these are few.
THRESHOLDS = tuple(10.0**power for power in range(-6, 1))
# Points of the path of integrated gradients.
STEPS = 10
# Runs of the network in one call, so that a large graph needs no large memory.
_RUNS = 256


@runtime_checkable
class FindingProblem(Protocol):
    """Protocol of a network whose edges can see corrupted values.

    Parameters
    ----------
    *args, **kwargs
        Not used: a protocol has no constructor.

    Attributes
    ----------
    n_edges, n_pairs : int
        Numbers of edges, and of pairs of a clean and a corrupted input.
    order : sequence of int
        The edges from the output of the network to its input.

    See Also
    --------
    LayerProblem : A layer of a circuit.

    Examples
    --------
    >>> import lloydformer as lf
    >>> pairs = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=1)
    >>> problem = lf.interp.LayerProblem(lf.Circuit(lf.recipes.lloyd(), 2, 3), pairs)
    >>> isinstance(problem, lf.interp.FindingProblem)
    True
    """

    n_edges: int
    n_pairs: int
    order: Sequence[int]

    def metric(self, strengths: Tensor) -> Tensor:
        """Return the metric of runs with these strengths, (b, pairs), from (b, pairs, edges).

        Parameters
        ----------
        strengths : torch.Tensor of shape (b, n_pairs, n_edges)
            0 where the target of an edge sees what its source writes in this run, 1 where it sees
            what the source writes in the corrupted run; a mixture between.

        Returns
        -------
        torch.Tensor of shape (b, n_pairs)
            1 for the clean run; differentiable in the strengths where the network is.

        See Also
        --------
        score_edges : Calls it.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> pairs = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=2)
        >>> problem = lf.interp.LayerProblem(lf.Circuit(lf.recipes.lloyd(), 2, 3), pairs)
        >>> problem.metric(torch.zeros(1, 2, problem.n_edges).double()).tolist()
        [[1.0, 1.0]]
        """
        ...


def _run(problem: FindingProblem, strengths: Tensor) -> Tensor:
    """Return the metric, (b, pairs), without gradients; many runs are split over several calls."""
    with torch.no_grad():
        size = max(1, _RUNS // problem.n_pairs)
        return torch.cat([problem.metric(part) for part in torch.split(strengths, size)])


def _slopes(problem: FindingProblem, strengths: Tensor) -> Tensor:
    """Return the derivative of the metric by each strength, of the shape of the strengths."""
    found = []
    for part in torch.split(strengths, max(1, _RUNS // problem.n_pairs)):
        given = part.clone().requires_grad_()
        with torch.enable_grad():
            value = problem.metric(given).sum()
        slope = torch.autograd.grad(value, given)[0] if value.requires_grad else part * 0
        found.append(slope.nan_to_num())  # a derivative that is not a number tells nothing
    return torch.cat(found)


def _patch(problem: FindingProblem) -> Tensor:
    """Let one edge after the other see corrupted values."""
    one = torch.eye(problem.n_edges, dtype=torch.float64)[:, None]
    one = one.expand(-1, problem.n_pairs, -1)
    change = _run(problem, one) - _run(problem, torch.zeros_like(one[:1]))
    # a network that gives no number any more is broken
    return change.abs().nan_to_num(1.0).mean(dim=1)


def _attribute(problem: FindingProblem) -> Tensor:
    """Approximate patching by the derivative at the clean run."""
    clean = torch.zeros(1, problem.n_pairs, problem.n_edges, dtype=torch.float64)
    return _slopes(problem, clean)[0].abs().mean(dim=0)


def _integrate(problem: FindingProblem) -> Tensor:
    """Take the mean of the derivative on the straight way on which all edges are corrupted."""
    way = (torch.arange(STEPS, dtype=torch.float64) + 0.5) / STEPS
    strengths = way[:, None, None].expand(-1, problem.n_pairs, problem.n_edges)
    return _slopes(problem, strengths).mean(dim=0).abs().mean(dim=0)


def _remove_greedily(problem: FindingProblem) -> Tensor:
    """Remove edges from output to input while the metric changes by less than a threshold.

    The score of an edge is the part of the thresholds at which it stays.
    """
    limits = torch.tensor(THRESHOLDS, dtype=torch.float64)
    removed = torch.zeros(len(limits), problem.n_pairs, problem.n_edges, dtype=torch.float64)
    metric = _run(problem, removed)
    for edge in problem.order:
        tried = removed.clone()
        tried[..., edge] = 1.0
        # most thresholds have removed the same edges so far
        states, which = torch.unique(tried[:, 0], dim=0, return_inverse=True)
        value = _run(problem, states[:, None].expand(-1, problem.n_pairs, -1))[which]
        change = (value - metric).abs().nan_to_num(torch.inf).mean(dim=1)
        goes = (change < limits)[:, None]
        removed = torch.where(goes[..., None], tried, removed)
        metric = torch.where(goes, value, metric)
    return 1 - removed[:, 0].mean(dim=0)


METHODS: dict[str, Callable[[FindingProblem], Tensor]] = {
    "activation patching": _patch,
    "edge attribution": _attribute,
    "integrated gradients": _integrate,
    "ACDC": _remove_greedily,
}


def score_edges(problem: FindingProblem, method: str) -> Tensor:
    """Return how much each edge matters, by a method that finds circuits.

    Parameters
    ----------
    problem : FindingProblem
        The network.
    method : {"activation patching", "edge attribution", "integrated gradients", "ACDC"}
        - "activation patching": the exact effect of each edge alone; one run for each.
        - "edge attribution": the derivative at the clean run; one run and its gradient.
        - "integrated gradients": attribution patching whose derivative is the mean over ten points
          of the way from clean to corrupted values.
        - "ACDC": edges are removed from the output to the input, each if the metric changes by less
          than a threshold; the score is the part of 7 thresholds, 1e-6 to 1, at which the
          edge stays.

    Returns
    -------
    torch.Tensor of shape (n_edges,)
        Scores, 0 or more; the mean of their sizes over the pairs. Below 1e-6 they are 0.

    Raises
    ------
    ValueError
        If there is no such method.

    See Also
    --------
    area_under_curve : Compares the scores with the truth.

    Examples
    --------
    >>> import lloydformer as lf
    >>> pairs = lf.interp.resampled_pairs(lf.recipes.lloyd(), n_pairs=2)
    >>> problem = lf.interp.LayerProblem(lf.Circuit(lf.recipes.lloyd(), 2, 3), pairs)
    >>> edge = [str(edge) for edge in problem.edges].index("points -> encoder_cross.Q")
    >>> exact = lf.interp.score_edges(problem, "activation patching")
    >>> slope = lf.interp.score_edges(problem, "edge attribution")
    >>> bool(exact[edge] > 0.01), slope[edge].item()  # a hard choice has no slope
    (True, 0.0)
    """
    if method not in METHODS:
        raise ValueError(f"method: found {method!r}; there are {', '.join(map(repr, METHODS))}")
    scores = METHODS[method](problem)
    return torch.where(scores < FLOOR, 0.0, scores)


def area_under_curve(scores: Tensor, in_circuit: Sequence[bool]) -> float | None:
    """Return the area under the curve of true over false positives, of all thresholds.

    It is the probability that an edge of the circuit has a higher score than another edge; equal
    scores count half.

    Parameters
    ----------
    scores : torch.Tensor of shape (n_edges,)
        The scores.
    in_circuit : sequence of bool
        Which edges are in the circuit.

    Returns
    -------
    float or None
        1 for perfect scores, 0.5 for scores that tell nothing. None if all edges are in the
        circuit, or none is.

    See Also
    --------
    score_edges : Makes scores.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> lf.interp.area_under_curve(torch.tensor([0.9, 0.0, 0.0]), [True, True, False])
    0.75
    """
    known = torch.tensor(list(in_circuit), dtype=torch.bool)
    inside, outside = scores[known], scores[~known]
    if not len(inside) or not len(outside):
        return None
    higher = (inside[:, None] > outside).double() + 0.5 * (inside[:, None] == outside).double()
    return higher.mean().item()
