"""Normalisation of the position subspace, which keeps centers on the unit sphere."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.numerics.checks import check_count, require


@runtime_checkable
class Norm(Protocol):
    """Protocol of a normalisation. It acts on positions only.

    Attributes
    ----------
    symbol : str
        The sign in equations.
    zero_sum : bool
        Whether points must have coordinates that sum to zero.
    """

    symbol: str
    zero_sum: bool

    def __call__(self, positions: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class RMSNorm:
    r"""RMS norm: $z / \lVert z \rVert$, as rem:lnorm-rmsnorm defines it.

    Torch's `rms_norm` divides by the root mean square, so it needs the gain $1/\sqrt d$ to be this
    projection onto the unit sphere. For a zero vector it is 0/0, not a number.

    Parameters
    ----------
    epsilon : float, default=0.0
        Added to the mean square before the root.

    See Also
    --------
    LayerNorm : Subtracts the mean of the coordinates first.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.norms import RMSNorm
    >>> RMSNorm()(torch.tensor([[3.0, -4.0]]))
    tensor([[ 0.6000, -0.8000]])
    """

    epsilon: float = 0.0
    symbol = "RMS"
    zero_sum = False

    def __call__(self, positions: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        d = positions.shape[-1]
        mean_square = positions.square().mean(dim=-1, keepdim=True)
        return positions / (mean_square + self.epsilon).sqrt() / d**0.5


@dataclass(frozen=True)
class LayerNorm:
    r"""Layer norm: $(z - \mathbb{E} z) / \sqrt{\mathrm{Var} z + \epsilon} / \sqrt d$ (def:lnorm).

    For vectors whose coordinates sum to zero and $\epsilon = 0$ this is $z / \lVert z \rVert$ (lem
    lnorm). Points must have this property; `zero_sum` gives it to any points.

    Parameters
    ----------
    epsilon : float, default=0.0
        Added to the variance before the root.

    See Also
    --------
    RMSNorm : Needs no zero sums.
    zero_sum : Maps any points to vectors with zero sums.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.norms import LayerNorm
    >>> LayerNorm()(torch.tensor([[1.0, -1.0]]))
    tensor([[ 0.7071, -0.7071]])
    """

    epsilon: float = 0.0
    symbol = "LN"
    zero_sum = True

    def __call__(self, positions: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        # the variance is the mean square of what is left without the mean
        return RMSNorm(self.epsilon)(positions - positions.mean(dim=-1, keepdim=True))


@dataclass(frozen=True)
class BlockArgmax:
    """Replace each block of codes by the one-hot code of its largest entry, the first on ties.

    Numbers, which come before the blocks, stay.

    Parameters
    ----------
    n_numbers : int
        Number of columns that stay.
    sizes : tuple of int
        The sizes of the blocks.

    See Also
    --------
    lloydformer.recipes.prototypes : The recipe with this norm.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.norms import BlockArgmax
    >>> BlockArgmax(1, (2, 3))(torch.tensor([[7.0, 0.6, 0.4, 0.2, 0.4, 0.4]]))
    tensor([[7., 1., 0., 0., 1., 0.]])
    """

    n_numbers: int = 0
    sizes: tuple[int, ...] = (2, 2)
    symbol = "argmax"
    zero_sum = False

    def __post_init__(self) -> None:
        check_count("n_numbers", self.n_numbers, least=0)
        for size in self.sizes:
            check_count("sizes", size)
        require(bool(self.sizes), "sizes", self.sizes, "pass the size of at least one block")

    def __call__(self, positions: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
        width = self.n_numbers + sum(self.sizes)
        found = positions.shape[-1]
        repair = f"circuits of these blocks have n_features={width}"
        require(found == width, "n_features", found, repair)
        numbers, *blocks = torch.split(positions, [self.n_numbers, *self.sizes], dim=-1)
        # torch's argmax has no rule for ties: the first of the largest is where they begin
        codes = [
            ((block == block.amax(dim=-1, keepdim=True)).cumsum(dim=-1).cumsum(dim=-1) == 1)
            for block in blocks
        ]
        return torch.cat([numbers, *(code.to(positions) for code in codes)], dim=-1)


def zero_sum(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n e"]:
    """Map points isometrically to vectors whose coordinates sum to zero, for LayerNorm.

    Row j of its matrix is e_1 + ... + e_j - j e_{j+1}, divided by its length. The rows are
    orthonormal and each sums to zero.

    Parameters
    ----------
    points : torch.Tensor of shape (n, d) or (b, n, d)
        The points.

    Returns
    -------
    torch.Tensor of shape (n, d + 1) or (b, n, d + 1)
        The same points with one more coordinate; distances and dot products are unchanged.

    See Also
    --------
    LayerNorm : Needs these vectors.
    lloydformer.recipes.spherical : Its norm "layer" needs these vectors.

    Examples
    --------
    >>> import torch
    >>> from lloydformer.circuits.norms import zero_sum
    >>> zero_sum(torch.tensor([[1.0]]))
    tensor([[ 0.7071, -0.7071]])
    """
    # in float64, and rounded to the points' dtype at the end
    d = points.shape[-1]
    steps = torch.ones(d, d + 1, dtype=torch.float64).tril()
    steps.diagonal(offset=1).copy_(-torch.arange(1, d + 1))
    basis = steps / steps.norm(dim=1, keepdim=True)
    return points @ basis.to(points)
