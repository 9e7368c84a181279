r"""Soft assignment and its gradients, a block of rows at a time: no n x k numbers are kept.

With $s_{ij} = |x_i - c_j|^2$ the shares are $p_{ij} = \mathrm{softmax}_j(-\gamma s_{ij})$, and the
free energy of a point is $e_i = -\frac{1}{\gamma} \log \sum_j e^{-\gamma s_{ij}}$. If a result
depends on the shares with derivatives $q_{ij}$ and on the energies with $a_i$, then

$$g_{ij} = \frac{\partial}{\partial s_{ij}} = p_{ij} (a_i - \gamma (q_{ij} - \bar q_i)),
\qquad \bar q_i = \sum_j p_{ij} q_{ij}.$$

The derivative by $\gamma$ is $-\frac{1}{\gamma^2} \sum_{ij} g_{ij} \log p_{ij}$. The shares are
computed again when gradients are asked for.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

_CELLS = 1 << 22
"""Shares that are computed together."""


def blocks(n: int, k: int) -> Iterator[slice]:
    """Ranges of rows whose shares are computed together."""
    size = max(1, _CELLS // max(k, 1))
    return (slice(start, start + size) for start in range(0, n, size))


def around_centers(x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Points and centers less the mean of the centers: data far from zero lose no digits."""
    middle = c.mean(dim=0)
    return x - middle, c - middle


def scores_of(x: Tensor, c: Tensor) -> Tensor:
    """|x - c|^2 - |x|^2, (m, k), of points and centers around zero."""
    return torch.addmm(c.square().sum(dim=1), x, c.mT, alpha=-2)


def shares(x: Tensor, c: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Shares (m, k) and free energies (m,) of some points."""
    x, c = around_centers(x, c)
    scores = scores_of(x, c)
    least = scores.amin(dim=1, keepdim=True)
    exponents = -gamma * (scores - least)
    log_sums = exponents.logsumexp(dim=1, keepdim=True)
    energies = (least - log_sums / gamma)[:, 0] + x.square().sum(dim=1)
    return (exponents - log_sums).exp(), energies


def through_scores(p: Tensor, by_share: Tensor, by_energy: Tensor, gamma: Tensor) -> Tensor:
    """Derivatives (m, k) by squared distances, from those by shares (m, k) and energies (m,)."""
    mean = (p * by_share).sum(dim=1, keepdim=True)
    return p * (by_energy[:, None] - gamma * (by_share - mean))


def through_temperature(p: Tensor, by_score: Tensor, gamma: Tensor) -> Tensor:
    """The derivative () by the inverse temperature, from those by squared distances (m, k)."""
    logs = p.clamp(min=torch.finfo(p.dtype).tiny).log()  # where a share is 0, so is the derivative
    return -(by_score * logs).sum() / gamma / gamma


def through_distances(by_score: Tensor, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Derivatives by points (m, d) and centers (k, d), from those by squared distances (m, k)."""
    x, c = around_centers(x, c)
    by_point = by_score.sum(dim=1, keepdim=True) * x - by_score @ c
    by_center = by_score.sum(dim=0)[:, None] * c - by_score.mT @ x
    return 2 * by_point, 2 * by_center
