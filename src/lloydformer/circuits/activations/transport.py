"""Activations that bound how many queries a key attends to: Sinkhorn attention, and its limit."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.circuits.activations.contract import (
    NOTHING,
    Activation,
    Amount,
    Context,
    Reach,
    Scores,
    TemperedActivation,
)
from lloydformer.numerics.checks import check_count
from lloydformer.numerics.transport import Sizes, assign_within, read_sizes, resolve_sizes


def _refuse_lowering() -> Amount:
    raise ValueError(
        "activation: bounds on sizes hold for all queries together, and a separation cannot keep "
        "clusters apart in them; use Sparsemax, Softmax, TopK or NormMax in a decoder"
    )


def _describe(size_min: Sizes, size_max: Sizes) -> str:
    texts = (" ".join(f"{size:g}" for size in sizes) for sizes in (size_min, size_max))
    low, high = texts
    return f"{low or 0}..{high}"


@dataclass(frozen=True)
class LimitingSinkhorn(Activation):
    r"""The limit of Sinkhorn attention: one key for each query, and bounds on what a key gets.

    Solves $\max_P \langle A, P \rangle$ over $P \in \{0, 1\}^{n \times k}$ with rows that sum to 1
    and columns that sum to at least `size_min` and at most `size_max`: a transport problem.

    Parameters
    ----------
    size_min, size_max : tuple of int or float, default=()
        Numbers of queries, or fractions of all queries (float): none, one for all keys, or one for
        each.

    See Also
    --------
    Sinkhorn : The same at a finite temperature.
    LimitingSoftmax : Without bounds, where no two scores are equal.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import LimitingSinkhorn
    >>> scores = torch.tensor([[0.0, -1.0], [0.0, -2.0], [0.0, -9.0], [0.0, -8.0]])
    >>> LimitingSinkhorn((2,), (2,))(scores).tolist()
    [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    """

    size_min: Sizes = ()
    size_max: Sizes = ()
    short = "TA"

    def __post_init__(self) -> None:
        for name in ("size_min", "size_max"):
            sizes = getattr(self, name)
            if sizes != ():
                object.__setattr__(self, name, read_sizes(name, sizes))

    @property
    def symbol(self) -> str:
        return f"∞ {_describe(self.size_min, self.size_max)}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        n, k = scores.shape[-2:]
        lower, upper = resolve_sizes(self.size_min, self.size_max, n, k)
        flat = scores.detach().double().cpu().reshape(-1, n, k)
        # An exact solver in NumPy: its decisions have no gradient, as those of argmax.
        labels = [torch.from_numpy(assign_within(-one.numpy(), lower, upper)[0]) for one in flat]
        keys = torch.stack(labels).reshape(*scores.shape[:-1], 1).to(scores.device)
        return torch.zeros_like(scores).scatter(-1, keys, 1.0)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return _refuse_lowering()


@dataclass(frozen=True)
class Sinkhorn(TemperedActivation):
    r"""Sinkhorn attention: $P_{ij} = \exp(\gamma a_{ij} + u_i + v_j)$ with bounds on columns.

    Solves $\max_P \gamma \langle A, P \rangle - \sum_{ij} P_{ij} \log P_{ij}$ over $P \ge 0$ with
    rows that sum to 1 and columns that sum to at least `size_min` and at most `size_max`, by turns:
    $u_i$ normalises a row, and $v_j$ takes a column to the nearest size that is allowed. After
    `n_rounds` of both rows sum to 1, and columns are within their bounds but for what convergence
    has left.

    Parameters
    ----------
    inverse_temperature : float, default=1.0
        The inverse temperature $\gamma$, positive.
    size_min, size_max : tuple of int or float, default=()
        Numbers of queries, or fractions of all queries (float): none, one for all keys, or one for
        each.
    n_rounds : int, default=100
        Number of rounds.

    See Also
    --------
    LimitingSinkhorn : The limit for an infinite inverse temperature.
    Softmax : Without bounds.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.activations import Sinkhorn
    >>> scores = torch.tensor([[0.0, -1.0], [0.0, -2.0], [0.0, -9.0], [0.0, -8.0]])
    >>> Sinkhorn(1.0, (2,), (2,))(scores).sum(dim=0).round(decimals=4).tolist()
    [2.0, 2.0]
    """

    size_min: Sizes = ()
    size_max: Sizes = ()
    n_rounds: int = 100
    short = "SiA"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("size_min", "size_max"):
            sizes = getattr(self, name)
            if sizes != ():
                object.__setattr__(self, name, read_sizes(name, sizes))
        check_count("n_rounds", self.n_rounds)

    @property
    def symbol(self) -> str:
        return f"{self.inverse_temperature:g} {_describe(self.size_min, self.size_max)}"

    def __call__(self, scores: Scores, context: Context = NOTHING) -> Scores:
        n, k = scores.shape[-2:]
        bounds = resolve_sizes(self.size_min, self.size_max, n, k)
        # log 0 = -inf: a column without a lower bound is never taken up.
        lower, upper = (torch.from_numpy(sizes).to(scores).log() for sizes in bounds)
        logits = self.inverse_temperature * scores
        scale = torch.zeros_like(scores[..., :1, :])  # v
        for _ in range(self.n_rounds):
            rows = (logits + scale).logsumexp(dim=-1, keepdim=True)  # -u
            scale = log_scales((logits - rows).logsumexp(dim=-2, keepdim=True), lower, upper)
        return (logits + scale).softmax(dim=-1)

    def lowering(self, reach: Reach, eps: float) -> Amount:
        return _refuse_lowering()


def log_scales(log_sums: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the logarithms of the factors that take sums to the nearest numbers within bounds.

    All arguments are logarithms.
    """
    return torch.minimum(torch.maximum(log_sums, lower), upper) - log_sums
