"""Distances of points to centers, the objective, and sums, means and shares of clusters."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

# Distances that are computed at a time, so that they stay in cache: 4,000 x 4,000 distances with 8
# columns take 0.33 s (float64, one thread), with 2**16 or 2**20 at a time 0.4 to 0.5 s, and 1.6 s
# if all are computed at once.
_BLOCK = 1 << 18

# On a GPU, sums of up to this many labels are a product with one-hot labels. Chosen by hand: that
# matrix has a row for each label, so more labels take too much memory.
_MOST_ONE_HOT = 4096

# Logarithms of shares below this count as this, so that twice it and differences are still finite;
# all points then weigh the same for a center.
LOWEST = -1e300


def is_traced() -> bool:
    """Return whether torch.export, torch.compile or torch.func is making a graph of this call.

    Then no decision may depend on the values of tensors.
    """
    # torch has no public name for the second question; `vmap` and `grad` enter a level each
    return torch.compiler.is_compiling() or torch._C._functorch.maybe_current_level() is not None


def squared_distances(
    queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b q m"]:
    """Return all |q - k|^2, by differences: equal rows have distance 0 exactly, at any shift.

    The expansion |q|^2 - 2 qk + |k|^2 is faster but not exact (docs/errata.md, 8).
    """
    if is_traced():
        # One expression: a graph cannot know which columns are 0, nor loop over blocks of an
        # unknown number of rows. It needs memory for q m d numbers.
        return (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(dim=-1)
    # columns that are 0 in both add exactly 0; projected tokens have many of them
    used = [(tokens != 0).flatten(0, -2).any(dim=0) for tokens in (queries, keys)]
    queries, keys = (tokens[..., used[0] | used[1]] for tokens in (queries, keys))
    blocks = []
    for block in torch.split(queries, max(1, _BLOCK // max(1, keys.shape[-2])), dim=-2):
        total = block.new_zeros(()).expand(*block.shape[:-1], keys.shape[-2])
        for q, k in zip(block.unbind(-1), keys.unbind(-1), strict=True):
            difference = q.unsqueeze(-1) - k.unsqueeze(-2)  # (q, m)
            total = torch.addcmul(total, difference, difference)
        blocks.append(total)
    return torch.cat(blocks, dim=-2)


def kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    r"""Return the k-means objective, $\sum_i \min_j \lVert x_i - c_j \rVert^2$ (eq:kmeans-dc)."""
    return squared_distances(points, centers).amin(dim=-1).sum(dim=-1)


def observed_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"], *, scaled: bool
) -> Float[Tensor, "*b"]:
    """Return the k-means objective over the observed values; NaN is a missing one.

    scaled: multiply the squared distances of a point by d over its number of observed values.
    """
    observed = (~points.isnan()).unsqueeze(-2)  # (n, 1, d)
    differences = points.nan_to_num(nan=0.0).unsqueeze(-2) - centers.unsqueeze(-3)
    least = (differences * observed).square().sum(dim=-1).amin(dim=-1)
    factors = points.shape[-1] / observed.sum(dim=-1).squeeze(-1) if scaled else 1.0
    return (least * factors).sum(dim=-1)


def log_kmeans_objective(
    points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b"]:
    """Return the natural logarithm of the k-means objective, as in the paper's tables."""
    return torch.log(kmeans_objective(points, centers))


def add_by_label(
    values: Float[Tensor, "m *rest"], labels: Int[Tensor, " m"], n_labels: int
) -> Float[Tensor, "k *rest"]:
    """Return the sum of the values of each label.

    On a GPU `index_add_` adds in an arbitrary order, so the last bits change from call to call.
    A product is deterministic, and so is `index_put_`, which sorts first.
    """
    if values.device.type != "cpu" and n_labels <= _MOST_ONE_HOT:
        every = torch.arange(n_labels, device=labels.device)
        return (labels == every[:, None]).to(values.dtype) @ values
    total = values.new_zeros(n_labels, *values.shape[1:])
    if values.device.type == "cpu":
        return total.index_add_(0, labels, values)
    return total.index_put_((labels,), values, accumulate=True)


def means_or(
    sums: Float[Tensor, "*b k d"],
    masses: Float[Tensor, "*b k"],
    otherwise: Float[Tensor, "*b k d"],
) -> Float[Tensor, "*b k d"]:
    """Divide the sum of each cluster by its mass; return `otherwise` where the mass is 0.

    The leading axes are a batch of problems. Not meant for gradients: the division by 0 is
    computed and then discarded.
    """
    mass = masses.unsqueeze(-1)  # (*b, k, 1)
    return torch.where(mass > 0, sums / mass, otherwise)


def log_shares(
    scores: Float[Tensor, "*b n k"], inverse_temperature: float
) -> tuple[Float[Tensor, "*b n k"], Float[Tensor, "*b n"]]:
    """Return the logarithms of soft-max shares, and -1/gamma log sum exp(-gamma score)."""
    # relative to the least score: gamma times a large score would lose the digits of the others
    least = scores.amin(dim=-1, keepdim=True)
    exponents = -inverse_temperature * (scores - least)
    mass = exponents.logsumexp(dim=-1, keepdim=True)
    free = (least - mass / inverse_temperature).squeeze(-1)
    return (exponents - mass).clamp(min=LOWEST), free


def scaled_shares(
    logs: Float[Tensor, "*b n k"], weights: Float[Tensor, "*b n"] | None
) -> tuple[Float[Tensor, "*b k"], Float[Tensor, "*b n k"]]:
    """Return the largest logarithm of each cluster, and w times the shares over its exponential.

    Shares can be too small for a float where their ratios are not. Points of weight 0 do not count.
    """
    if weights is not None:
        logs = logs.masked_fill((weights == 0).unsqueeze(-1), -torch.inf)
    level = logs.amax(dim=-2).clamp(min=2 * LOWEST)  # finite if no point has a weight
    shares = (logs - level.unsqueeze(-2)).exp()
    return level, shares if weights is None else shares * weights.unsqueeze(-1)
