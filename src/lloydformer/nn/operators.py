r"""Soft assignment as operators of torch: `lloydformer::soft_assign`, `lloydformer::soft_sums`.

With $s_{ij} = |x_i - c_j|^2$ the shares are $p_{ij} = \mathrm{softmax}_j(-\gamma s_{ij})$, and the
free energy of a point is $e_i = -\frac{1}{\gamma} \log \sum_j e^{-\gamma s_{ij}}$. If a result
depends on the shares with derivatives $q_{ij}$ and on the energies with $a_i$, then

$$g_{ij} = \frac{\partial}{\partial s_{ij}} = p_{ij} (a_i - \gamma (q_{ij} - \bar q_i)),
\qquad \bar q_i = \sum_j p_{ij} q_{ij}.$$

The derivative by $\gamma$ is $-\frac{1}{\gamma^2} \sum_{ij} g_{ij} \log p_{ij}$.

Everything is computed for a block of rows at a time, and the shares are computed again for the
gradients: no n x k numbers are kept. The operators are registered with `torch.library`, so
`torch.compile` keeps them in its graph. Gradients are taken once: they cannot be differentiated
again.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

# Shares that are computed together: 16 MiB in float32. Chosen by hand.
_CELLS = 1 << 22

# Half precision is computed in single precision, and rounded once at the end.
_PRECISE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def to_precise(*tensors: Tensor) -> list[Tensor]:
    """Return the tensors in the precision that is computed in."""
    return [tensor.to(_PRECISE.get(tensor.dtype, tensor.dtype)) for tensor in tensors]


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Return the ranges of rows whose shares are computed together."""
    size = max(1, _CELLS // max(k, 1))
    return (slice(start, start + size) for start in range(0, n, size))


def center(x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return points and centers less the mean of the centers: data far from zero lose no digits."""
    middle = c.mean(dim=0)
    return x - middle, c - middle


def relative_distances(x: Tensor, c: Tensor) -> Tensor:
    """Return |x - c|^2 - |x|^2, (m, k), of points and centers around zero."""
    return torch.addmm(c.square().sum(dim=1), x, c.mT, alpha=-2)


def _shares(x: Tensor, c: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Return the shares (m, k) and free energies (m,) of some points."""
    x, c = center(x, c)
    scores = relative_distances(x, c)
    # Less the smallest score the largest exponent is 0, so nothing overflows for any gamma.
    least = scores.amin(dim=1, keepdim=True)
    exponents = -gamma * (scores - least)
    log_sums = exponents.logsumexp(dim=1, keepdim=True)
    energies = (least - log_sums / gamma)[:, 0] + x.square().sum(dim=1)
    return (exponents - log_sums).exp(), energies


def _through_scores(p: Tensor, by_share: Tensor, by_energy: Tensor, gamma: Tensor) -> Tensor:
    """Return derivatives (m, k) by squared distances, from those by shares and energies (m,)."""
    mean = (p * by_share).sum(dim=1, keepdim=True)
    return p * (by_energy[:, None] - gamma * (by_share - mean))


def _through_temperature(p: Tensor, by_score: Tensor, gamma: Tensor) -> Tensor:
    """Return the derivative () by the inverse temperature, from those by squared distances."""
    logs = p.clamp(min=torch.finfo(p.dtype).tiny).log()  # where a share is 0, so is the derivative
    return -(by_score * logs).sum() / gamma / gamma


def _through_distances(by_score: Tensor, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return derivatives by points (m, d) and centers (k, d), from those by squared distances."""
    x, c = center(x, c)
    by_point = by_score.sum(dim=1, keepdim=True) * x - by_score @ c
    by_center = by_score.sum(dim=0)[:, None] * c - by_score.mT @ x
    return 2 * by_point, 2 * by_center


@torch.library.custom_op("lloydformer::soft_assign", mutates_args=())
def _assign(points: Tensor, centers: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Return mixtures (n, d) of the centers by the shares of each point, and energies (n,)."""
    x, c = to_precise(points, centers)
    mixtures, energies = torch.empty_like(x), x.new_empty(len(x))
    for rows in row_blocks(len(x), len(c)):
        p, energies[rows] = _shares(x[rows], c, gamma)
        torch.mm(p, c, out=mixtures[rows])
    return mixtures.to(points.dtype), energies.to(points.dtype)


@torch.library.custom_op("lloydformer::soft_assign_backward", mutates_args=())
def _assign_backward(
    by_mixture: Tensor,
    by_energy: Tensor,
    points: Tensor,
    centers: Tensor,
    gamma: Tensor,
    learned: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return derivatives by points, centers and, if it is learned, the inverse temperature."""
    m, a, x, c = to_precise(by_mixture, by_energy, points, centers)
    by_point, by_center, by_gamma = torch.empty_like(x), torch.zeros_like(c), x.new_zeros(())
    for rows in row_blocks(len(x), len(c)):
        p, _ = _shares(x[rows], c, gamma)
        g = _through_scores(p, m[rows] @ c.mT, a[rows], gamma)
        by_point[rows], more = _through_distances(g, x[rows], c)
        by_center += more + p.mT @ m[rows]  # by the distances, and as parts of the mixtures
        if learned:
            by_gamma += _through_temperature(p, g, gamma)
    return by_point.to(points.dtype), by_center.to(centers.dtype), by_gamma.to(gamma)


@torch.library.custom_op("lloydformer::soft_sums", mutates_args=())
def _sums(
    points: Tensor, centers: Tensor, weights: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return sums (k, d) of w p x, masses (k,) of w p, and the sum () of w times the energies.

    They stay in single precision for points in half precision, where they would overflow.
    """
    x, c, w = to_precise(points, centers, weights)
    sums, masses, energy = torch.zeros_like(c), c.new_zeros(len(c)), c.new_zeros(())
    for rows in row_blocks(len(x), len(c)):
        p, energies = _shares(x[rows], c, gamma)
        weighted = p * w[rows, None]
        sums += weighted.mT @ x[rows]
        masses += weighted.sum(dim=0)
        energy += energies @ w[rows]
    return sums, masses, energy


@torch.library.custom_op("lloydformer::soft_sums_backward", mutates_args=())
def _sums_backward(
    by_sum: Tensor,
    by_mass: Tensor,
    by_energy: Tensor,
    points: Tensor,
    centers: Tensor,
    weights: Tensor,
    gamma: Tensor,
    learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return derivatives by points, centers, weights and, if learned, the inverse temperature."""
    s, m, a, x, c, w = to_precise(by_sum, by_mass, by_energy, points, centers, weights)
    by_point, by_center, by_weight = torch.empty_like(x), torch.zeros_like(c), torch.empty_like(w)
    by_gamma = x.new_zeros(())
    for rows in row_blocks(len(x), len(c)):
        p, energies = _shares(x[rows], c, gamma)
        # q_ij is the derivative by w_i p_ij, which enters mass j and, times x_i, sum j.
        q, own = torch.addmm(m, x[rows], s.mT), w[rows]
        by_weight[rows] = (p * q).sum(dim=1) + a * energies
        g = _through_scores(p, own[:, None] * q, a * own, gamma)
        by_point[rows], more = _through_distances(g, x[rows], c)
        by_point[rows] += own[:, None] * (p @ s)
        by_center += more
        if learned:
            by_gamma += _through_temperature(p, g, gamma)
    by_given = (by_point.to(points.dtype), by_center.to(centers.dtype), by_weight.to(weights.dtype))
    return *by_given, by_gamma.to(gamma)


# Shapes and precisions of the results, with which `torch.compile` traces a graph.
@_assign.register_fake
def _(points: Tensor, centers: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(points), points.new_empty(points.shape[0])


@_sums.register_fake
def _(points: Tensor, centers: Tensor, weights: Tensor, gamma: Tensor) -> Any:
    k, (c,) = centers.shape[0], to_precise(centers)
    return torch.empty_like(c), c.new_empty(k), c.new_empty(())


# Derivatives are like the inputs, which come between the derivatives by outputs and `learned`.
_assign_backward.register_fake(lambda *given: tuple(map(torch.empty_like, given[2:-1])))
_sums_backward.register_fake(lambda *given: tuple(map(torch.empty_like, given[3:-1])))


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that torch calls for the gradients of an operator's inputs."""

    def gradients(ctx: Any, *by_output: Tensor) -> Any:
        # The last input is the inverse temperature, whose gradient takes a pass of its own.
        given = (*(by.contiguous() for by in by_output), *ctx.saved_tensors)
        return backward(*given, ctx.needs_input_grad[-1])

    return gradients


_assign.register_autograd(_differentiate(_assign_backward), setup_context=_save_inputs)
_sums.register_autograd(_differentiate(_sums_backward), setup_context=_save_inputs)


def soft_assign(
    points: Tensor, centers: Tensor, inverse_temperature: float | Tensor = 1.0
) -> tuple[Tensor, Tensor]:
    r"""Return each point as a mixture of centers, and its free energy; differentiable.

    The share of center j in point i is $p_{ij} = \mathrm{softmax}_j(-\gamma |x_i - c_j|^2)$, the
    mixture $\sum_j p_{ij} c_j$, the free energy $-\frac{1}{\gamma} \log \sum_j e^{-\gamma |x_i -
    c_j|^2}$, which is at most the squared distance to the nearest center. Shares are not kept: the
    backward pass computes them again, so memory does not grow with n k.

    Parameters
    ----------
    points : Tensor of shape (..., d)
        In any floating-point precision.
    centers : Tensor of shape (k, d)
        In the precision and on the device of the points.
    inverse_temperature : float or Tensor of shape (), default=1.0
        $\gamma$, above 0. A tensor gets a gradient too; the value of one on a GPU is not checked.

    Returns
    -------
    mixtures : Tensor of shape (..., d)
        A soft version of "the nearest center".
    energies : Tensor of shape (...)
        The mean of them is a loss for deep clustering.

    See Also
    --------
    SoftAssign : A module whose centers are parameters.
    soft_sums : Sums of the points by their shares.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> x, c = torch.tensor([[0.0], [4.0]]), torch.tensor([[0.0], [3.0]])
    >>> mixtures, energies = lf.nn.soft_assign(x, c, inverse_temperature=100.0)
    >>> mixtures.flatten().tolist(), energies.tolist()
    ([0.0, 3.0], [0.0, 1.0])
    """
    if torch.is_autocast_enabled(points.device.type):
        # Autocast would compute the products inside in half precision, and distances as
        # differences of products need more.
        with torch.autocast(points.device.type, enabled=False):
            return soft_assign(*_of_one_precision(points, centers), inverse_temperature)
    _check(points, centers, inverse_temperature)
    flat = points.reshape(-1, points.shape[-1])
    mixtures, energies = _assign(flat, centers.contiguous(), _gamma(inverse_temperature, points))
    return mixtures.view(points.shape), energies.view(points.shape[:-1])


def soft_sums(
    points: Tensor,
    centers: Tensor,
    inverse_temperature: float | Tensor = 1.0,
    sample_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum the points by their shares: one pass of soft k-means; differentiable.

    `sums / masses[:, None]` are the next centers, so an unrolled soft k-means is a few calls of
    this function. Memory does not grow with n k, as in `soft_assign`.

    Parameters
    ----------
    points : Tensor of shape (n, d)
        In any floating-point precision.
    centers : Tensor of shape (k, d)
        In the precision and on the device of the points.
    inverse_temperature : float or Tensor of shape (), default=1.0
        As in `soft_assign`.
    sample_weight : Tensor of shape (n,), default=None
        Weight of each point. None: every point has weight 1.

    Returns
    -------
    sums : Tensor of shape (k, d)
        The sum of the points by their shares and weights. All results are float32 for points in
        half precision, in which sums would overflow.
    masses : Tensor of shape (k,)
        The sum of shares times weights.
    energy : Tensor of shape ()
        The sum of weights times free energies: the objective of soft k-means.

    See Also
    --------
    soft_assign : Each point as a mixture of centers.
    SoftKMeans : Soft k-means as an estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> x, c = torch.tensor([[0.0], [1.0], [9.0]]), torch.tensor([[0.0], [8.0]])
    >>> sums, masses, energy = lf.nn.soft_sums(x, c, inverse_temperature=100.0)
    >>> (sums / masses[:, None]).flatten().tolist(), energy.item()
    ([0.5, 9.0], 2.0)
    """
    if torch.is_autocast_enabled(points.device.type):
        with torch.autocast(points.device.type, enabled=False):
            given = _of_one_precision(points, centers)
            return soft_sums(*given, inverse_temperature, sample_weight)
    _check(points, centers, inverse_temperature)
    if points.dim() != 2:
        raise ValueError(f"points: found shape {tuple(points.shape)}; pass (n, d)")
    weights = points.new_ones(len(points)) if sample_weight is None else sample_weight
    if weights.shape != points.shape[:1]:
        raise ValueError(
            f"sample_weight: found shape {tuple(weights.shape)} for {len(points)} points; pass one "
            "weight for each"
        )
    weights = weights.to(points.dtype)
    gamma = _gamma(inverse_temperature, points)
    return _sums(points.contiguous(), centers.contiguous(), weights, gamma)


def _of_one_precision(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in the wider one of their precisions, which is at least float32."""
    wider = torch.promote_types(torch.promote_types(points.dtype, centers.dtype), torch.float32)
    return points.to(wider), centers.to(wider)


def _gamma(inverse_temperature: float | Tensor, points: Tensor) -> Tensor:
    """Return the inverse temperature as a tensor, in the precision that is computed in."""
    dtype = _PRECISE.get(points.dtype, points.dtype)
    if isinstance(inverse_temperature, Tensor):
        return inverse_temperature.to(dtype)
    return torch.tensor(inverse_temperature, dtype=dtype)  # on the CPU: no copy to wait for


def check_temperature(inverse_temperature: float | Tensor) -> None:
    """Raise `ValueError` unless it is a finite number above 0.

    For a tensor on a GPU only the shape is checked: reading its value would wait for the GPU.
    """
    found: float | Tensor = inverse_temperature
    if isinstance(found, Tensor):
        if found.dim() != 0:
            raise ValueError(
                f"inverse_temperature: found a tensor of shape {tuple(found.shape)}; pass a number "
                "or a tensor of shape ()"
            )
        if torch.compiler.is_compiling() or found.device.type != "cpu":
            return
        found = found.item()
    if not 0 < found < math.inf:
        raise ValueError(f"inverse_temperature: found {found!r}; pass a number above 0")


def _check(points: Tensor, centers: Tensor, inverse_temperature: float | Tensor) -> None:
    check_temperature(inverse_temperature)
    if centers.dim() != 2 or centers.shape[0] == 0:
        raise ValueError(f"centers: found shape {tuple(centers.shape)}; pass (k, d), k at least 1")
    if points.dim() < 1 or points.shape[-1] != centers.shape[1]:
        raise ValueError(
            f"points: found shape {tuple(points.shape)} for centers of {centers.shape[1]} "
            "features; the last axis must be as long"
        )
    if points.dtype != centers.dtype or not points.is_floating_point():
        raise ValueError(
            f"centers: found dtype {centers.dtype} with points of {points.dtype}; convert one of "
            "them"
        )
