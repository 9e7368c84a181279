"""Errors in separations, thresholds and quantiles."""

from math import ceil

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.activations import Context, NormMax, Softmax, Sparsemax
from lloydformer.circuits.activations.sparse import inverse_temperature_that_keeps
from lloydformer.circuits.projections import Projection, on, separated
from lloydformer.circuits.scores import Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import plain
from lloydformer.verify.finding import Finding, Statement, erratum


def e_02_separation(rng: np.random.Generator) -> Finding:
    """delta in Q_3 and K_3 lowers other clusters by 2 delta^2; its root lowers by 2 delta."""
    deltas = [float(d) for d in 10 ** rng.uniform(0.1, 3, size=20)]
    printed = [abs(_lowering(on(POSITION) + d * on(ASSIGNMENT), 1.0) / (2 * d) - 1) for d in deltas]
    root = on(POSITION) + separated(ASSIGNMENT)
    repaired = [abs(_lowering(root, d) / (2 * d) - 1) for d in deltas]
    leaks = [Softmax()(torch.tensor([[0.0, -lowered]]))[0, 1].item() for lowered in (20.0, 40.0)]
    return erratum(
        2, "Q_3 = K_3 = I + delta I lowers scores by 2 delta^2, not 2 delta; use sqrt(delta)",
        printed, repaired,
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
        2, "trimmed needs a lowering above the largest own squared distance, sparsemax of "
        "1/gamma plus the smallest", below, above, "as printed: half of the bound",
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
    """One gamma keeps a different fraction of every cluster; one for each keeps the right one."""
    kept_by_one, printed, repaired = [], [], []
    for _ in range(30):
        m = int(rng.integers(5, 200))
        count = ceil(0.9 * m - 1e-9)
        scores = -torch.tensor(rng.uniform(0.1, 3) * rng.exponential(size=(1, m)))
        own = inverse_temperature_that_keeps(scores.sort(descending=True).values, count).item()
        kept_by_one.append(_kept(scores, 1.0) / m)
        printed.append(abs(kept_by_one[-1] - count / m))
        repaired.append(abs(_kept(scores, own) - count) / m)
    return erratum(
        9, "one gamma of norm-max gives every cluster its own fraction; use a gamma each",
        printed, repaired,
        f"gamma = 1 keeps from {min(kept_by_one):.2f} to {max(kept_by_one):.2f} of a cluster",
    )  # fmt: skip


def _kept(scores: Tensor, gamma: float) -> int:
    return int(NormMax(inverse_temperature=gamma)(scores).count_nonzero())


def e_15_quantile(rng: np.random.Generator) -> Finding:
    """Strictly below the interpolated quantile are ceil(q (m - 1)) points, not ceil(q m)."""
    printed, repaired = [], []
    for m in range(1, 61):
        distances, q = rng.exponential(size=m), 0.95
        below = int((distances < np.quantile(distances, q)).sum())
        kept = NormMax(keep=q)(-torch.tensor(distances)[None]).count_nonzero().item()
        printed.append(float(abs(below - ceil(q * m - 1e-9))))
        repaired.append(float(abs(kept - ceil(q * m - 1e-9))))
    return erratum(
        15, "points strictly below the interpolated quantile are one too few", printed, repaired,
        "a cluster of one point becomes empty",
    )  # fmt: skip


THRESHOLDS: tuple[Statement, ...] = (e_02_separation, e_02_how_large, e_09_norm_max, e_15_quantile)
