"""Items on separations, thresholds and quantiles."""

from math import ceil

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.activations import Context, NormMax, Softmax, Sparsemax
from lloydformer.circuits.activations.sparse import ends, inverse_temperature_that_keeps
from lloydformer.circuits.projections import Projection, on, separated
from lloydformer.circuits.scores import Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import plain
from lloydformer.verify.finding import Finding, Statement, erratum


def e_02_separation(rng: np.random.Generator) -> Finding:
    """delta in Q_3 and K_3 lowers other clusters by 2 delta^2; its root lowers by 2 delta."""
    deltas = [float(d) for d in 10 ** rng.uniform(0.1, 3, size=20)]
    lowered = [_lowering(on(POSITION) + d * on(ASSIGNMENT), 1.0) for d in deltas]
    printed = [abs(low / (2 * d) - 1) for low, d in zip(lowered, deltas, strict=True)]
    squares = [abs(low / (2 * d**2) - 1) for low, d in zip(lowered, deltas, strict=True)]
    root = on(POSITION) + separated(ASSIGNMENT)
    repaired = [abs(_lowering(root, d) / (2 * d) - 1) for d in deltas]
    leaks = [Softmax()(torch.tensor([[0.0, -lowered]]))[0, 1].item() for lowered in (20.0, 40.0)]
    return erratum(
        2, "error",
        "Q_3 = K_3 = I + delta I lowers scores by 2 delta^2, not 2 delta; use sqrt(delta)",
        printed, repaired + squares,
        "the paper's text fails {count} values of delta: it lowers by 2 delta^2; our repair holds",
        f"soft-max lowered by 20 leaks {leaks[0]:.0e}, by 40 {leaks[1]:.0e} per pair of points",
    )  # fmt: skip


def e_02_how_large(rng: np.random.Generator) -> Finding:
    """Above its bound a separation removes other clusters; at half of the bound it does not."""
    below, above = [], []
    for _ in range(30):
        own = torch.tensor(rng.exponential(size=int(rng.integers(3, 40))))
        gamma = float(10 ** rng.uniform(-1, 1))
        cases = (
            (NormMax(keep=1.0), own.max().item()),
            (Sparsemax(gamma), 1 / gamma + own.min().item()),
        )
        for activation, bound in cases:
            below.append(_leak(activation, own, 0.5 * bound, bound))
            above.append(_leak(activation, own, 1.001 * bound, bound))
    return erratum(
        2, "open", "'large' is a lowering above the largest own squared distance for trimmed, "
        "and of 1/gamma plus the smallest for sparsemax", below, above,
        "half of these bounds leaks in {count} clusters",
    )  # fmt: skip


def _leak(activation: NormMax | Sparsemax, own: Tensor, lowering: float, bound: float) -> float:
    """Return the total weight of other clusters' points that lie on the center."""
    others = torch.full((len(own),), lowering, dtype=own.dtype)
    scores = -torch.cat([own, others])[None]
    context = Context(gap=(bound + lowering) / 2 - own.min().item())
    return activation(scores, context)[0, len(own) :].sum().item()


def _lowering(projection: Projection, separation: float) -> float:
    """Return by how much a point's score is lower if it belongs to another cluster."""
    tokens, points = plain(), torch.zeros(2, 3, dtype=torch.float64)
    matrix = projection.matrix(tokens.space(3, 2), separation)
    keys = tokens.encoder(points, torch.eye(2, dtype=torch.float64)) @ matrix.mT
    queries = tokens.decoder(points) @ matrix.mT
    own, other = Euclidean()(queries, keys)[0]
    return (own - other).item()


def e_09_norm_max(rng: np.random.Generator) -> Finding:
    """No single gamma keeps 90 % of each of three clusters; one for each does."""
    printed, repaired, by_one = [], [], []
    for _ in range(30):
        clusters = [_scores(rng) for _ in range(3)]
        own = [_own_gamma(scores) for scores in clusters]
        printed.append(min(_worst_share(clusters, [g] * 3) for g in _candidates(clusters)))
        repaired.append(_worst_share(clusters, own))
        by_one += [_kept(scores, 1.0) / scores.shape[1] for scores in clusters]
    return erratum(
        9, "open", "alg:trim-kmeans needs a gamma of norm-max for each cluster",
        printed, repaired,
        "no single gamma keeps 90 % of three clusters in {count} problems; "
        "the best is off by up to {worst}",
        f"gamma = 1 keeps from {min(by_one):.2f} to {max(by_one):.2f} of a cluster",
    )  # fmt: skip


def _scores(rng: np.random.Generator) -> Tensor:
    """Return minus the squared distances of the points of a cluster, (1, m)."""
    m = int(rng.integers(5, 200))
    return -torch.tensor(rng.uniform(0.1, 3) * rng.exponential(size=(1, m)))


def _n_wanted(scores: Tensor) -> int:
    return ceil(0.9 * scores.shape[1] - 1e-9)


def _own_gamma(scores: Tensor) -> float:
    ordered = scores.sort(descending=True).values
    return inverse_temperature_that_keeps(ordered, _n_wanted(scores)).item()


def _candidates(clusters: list[Tensor]) -> list[float]:
    """Return a gamma from each interval on which no cluster keeps another number of points."""
    borders = [ends(scores.sort(descending=True).values)[0].numpy() for scores in clusters]
    levels = np.unique(np.concatenate([[0.0], *borders]))
    middles = [*(levels[1:] + levels[:-1]) / 2, levels[-1] + 1]
    return [1 / float(middle) for middle in middles]


def _worst_share(clusters: list[Tensor], gammas: list[float]) -> float:
    """Return by how much the share kept of a cluster is off at most."""
    return max(
        abs(_kept(scores, gamma) - _n_wanted(scores)) / scores.shape[1]
        for scores, gamma in zip(clusters, gammas, strict=True)
    )


def _kept(scores: Tensor, gamma: float) -> int:
    return int(NormMax(inverse_temperature=gamma)(scores).count_nonzero())


def e_15_quantile(rng: np.random.Generator) -> Finding:
    """Strictly below the interpolated quantile are ceil(q (m - 1)) points, not ceil(q m)."""
    printed, repaired, up_to = [], [], 0
    for m in range(1, 61):
        distances, q = rng.exponential(size=m), 0.95
        wanted, radius = ceil(q * m - 1e-9), np.quantile(distances, q)
        kept = NormMax(keep=q)(-torch.tensor(distances)[None]).count_nonzero().item()
        printed.append(float(abs((distances < radius).sum() - wanted)))
        repaired.append(float(abs(kept - wanted)))
        up_to += int((distances <= radius).sum() != wanted)
    return erratum(
        15, "open", "how alg:trim-kmeans takes a percentile",
        printed, repaired,
        "strictly below the interpolated quantile {count} clusters keep another number",
        f"up to that quantile, as the text prints, {up_to} of 60; a cluster of one point becomes "
        "empty if the comparison is strict",
    )  # fmt: skip


THRESHOLDS: tuple[Statement, ...] = (e_02_separation, e_02_how_large, e_09_norm_max, e_15_quantile)
