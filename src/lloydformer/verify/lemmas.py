"""The lemmas on scores, activations and norms."""

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.activations import LimitingSoftmax, Softmax, Sparsemax
from lloydformer.circuits.norms import LayerNorm, zero_sum
from lloydformer.circuits.projections import lifting
from lloydformer.circuits.subspaces import HALF, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.distances import squared_distances
from lloydformer.verify.finding import Finding, Statement, equality
from lloydformer.verify.problems import CONTINUOUS, draw

N_PROBLEMS = 40


def _problem(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    problem = draw(rng, CONTINUOUS[rng.integers(2)])
    return torch.tensor(problem.points), torch.tensor(problem.centers)


def block_lloyd(rng: np.random.Generator) -> Finding:
    """X sigma(sigma(DP(C, X))^T) holds the centers of Lloyd's next iteration."""

    def deviation() -> float:
        points, centers = _problem(rng)
        limit = LimitingSoftmax()
        shares = limit(-squared_distances(points, centers))  # (n, k)
        moved = limit(shares.mT) @ points  # (k, d)
        nearest = torch.cdist(points, centers, compute_mode="donot_use_mm_for_euclid_dist").argmin(
            1
        )
        means = torch.stack([points[nearest == j].mean(dim=0) for j in range(len(centers))])
        return (moved - means).abs().max().item()

    return equality("lem block lloyd", "two limiting soft-maxes give Lloyd's next centers",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def perm(rng: np.random.Generator) -> Finding:
    """-|x - y|^2 = l(x) pi l(y)."""

    def deviation() -> float:
        points, centers = _problem(rng)
        tokens = Tokens((POSITION, SQUARED_NORM, HALF))
        space = tokens.space(points.shape[1], 1)
        lifted_points = tokens.encoder(points, points.new_zeros(len(points), 1))
        products = lifted_points @ lifting(POSITION).matrix(space) @ tokens.decoder(centers).mT
        scale = squared_distances(points, centers).max()
        return ((products + squared_distances(points, centers)).abs().max() / scale).item()

    return equality("lem perm", "dot products of lifted tokens are minus squared distances",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def lnorm(rng: np.random.Generator) -> Finding:
    """LN(z; 0, 1/sqrt d, 0) = z / |z| for zero-sum z."""

    def deviation() -> float:
        z = zero_sum(_problem(rng)[0])
        return (LayerNorm()(z) - z / z.norm(dim=1, keepdim=True)).abs().max().item()

    return equality("lem lnorm", "LayerNorm of a zero-sum vector is its direction",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def ys_lnorm(rng: np.random.Generator) -> Finding:
    """LN(X sigma(Y_S^T)) maximises the sum of dot products over the sphere."""

    def deviation() -> float:
        points, centers = (zero_sum(p / p.norm(dim=1, keepdim=True)) for p in _problem(rng))
        limit = LimitingSoftmax()
        shares = limit(points @ centers.mT)
        moved = LayerNorm()(limit(shares.mT) @ points)
        sums = torch.stack([points[shares[:, j] == 1].sum(dim=0) for j in range(len(centers))])
        return ((moved * sums).sum(dim=1) - sums.norm(dim=1)).abs().max().item() / len(points)

    return equality("lem YS lnorm", "the normed mean attains the largest sum of dot products",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def zero_padding(rng: np.random.Generator) -> Finding:
    """DP([C; 0], [X; 0]) = DP(C, X)."""

    def deviation() -> float:
        points, centers = _problem(rng)
        padded = [torch.nn.functional.pad(rows, (0, 5)) for rows in (points, centers)]
        return (squared_distances(*padded) - squared_distances(points, centers)).abs().max().item()

    return equality("eq zeropad", "coordinates that are zero do not change distances",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def normalisers_shift(rng: np.random.Generator) -> Finding:
    """NAct(p + delta) = NAct(p) (sec:methods:new:robust)."""

    def deviation() -> float:
        scores, shift = torch.tensor(rng.normal(size=(3, 50))), float(rng.normal())
        acts = (Softmax(), Sparsemax(), LimitingSoftmax())
        return max((act(scores + shift) - act(scores)).abs().max().item() for act in acts)

    return equality("sec:methods:new:robust", "adding a constant to all scores changes nothing",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


def identity_selection(rng: np.random.Generator) -> Finding:
    """sigma_inf(DP(X, X)) = I_n for distinct points."""

    def deviation() -> float:
        points, _ = _problem(rng)
        attention = LimitingSoftmax()(-squared_distances(points, points))
        return (attention - torch.eye(len(points))).abs().max().item()

    return equality("proof of thm:l2-clus eu", "self-attention of distinct points is the identity",
                    [deviation() for _ in range(N_PROBLEMS)])  # fmt: skip


LEMMAS: tuple[Statement, ...] = (
    block_lloyd, zero_padding, identity_selection, perm, lnorm, ys_lnorm, normalisers_shift,
)  # fmt: skip
