"""Relocations of a mixture: split all components, merge pairs, keep what is better.

EM moves components little by little, so that two of them may share one group of rows forever while
another component covers two groups. A round makes two of every component, lets a few iterations of
EM sort them out, and merges pairs until there are k again; EM follows. The pairs are chosen by an
upper bound of the loss (Runnalls, "Kullback-Leibler approach to Gaussian mixture reduction", 2007),
which needs no pass over the rows.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.mixture import MixtureKind
from lloydformer.plans.mixture import LOG_TINY, Components

# Iterations of EM with 2 k components before they are merged, and the distance of the two halves
# of a component from its mean, in standard deviations. Those of the study in docs/mixtures.md.
SORTING, HALF = 8, 0.7
# A round is kept if it raises the mean log-likelihood by more than this, or than `tol` if that is
# larger: starts end when they gain less.
GAIN = 1e-6
# Rounds in a row without gain after which the search ends, by the parameter `effort`.
PATIENCE = {"low": 0, "medium": 2, "high": 4, "best": 10}
# Starts of the race before a search, if `n_init` is 1.
STARTS = 6


def split(components: Components, rng: np.random.RandomState, *, longest: bool) -> Components:
    """Return two halves of every component, whose mean and covariance together are its own.

    longest: along the longest axis; otherwise along a random one.
    """
    kind, means, covariances = components.kind, components.means, components.covariances
    k, d = means.shape
    noise = torch.from_numpy(rng.normal(size=(k, d))).to(means)
    if kind.covariance in ("full", "tied"):
        own = covariances.expand(k, d, d)
        if longest:
            values, vectors = torch.linalg.eigh(own)
            axis = vectors[:, :, -1] * values[:, -1:].sqrt()
        else:
            # one standard deviation long, in a random direction of the whitened space
            noise = noise / noise.norm(dim=1, keepdim=True)
            axis = (torch.linalg.cholesky(own) @ noise.unsqueeze(-1)).squeeze(-1)
        step = HALF * axis
        # a covariance that all components share has no part to take away
        less = own - step[:, :, None] * step[:, None, :] if kind.covariance == "full" else None
    elif kind.covariance == "diag":
        chances = covariances if longest else covariances * noise.exp()
        column = chances.argmax(dim=1, keepdim=True)
        step = torch.zeros_like(means)
        step.scatter_(1, column, HALF * covariances.gather(1, column).sqrt())
        less = covariances - step.square()
    else:
        step = HALF * covariances.sqrt().reshape(-1, 1) * noise / noise.norm(dim=1, keepdim=True)
        less = covariances * (1 - HALF**2 / d) if kind.covariance == "spherical" else None
    log_weights = torch.cat([components.log_weights] * 2) - math.log(2)
    both = covariances if less is None else torch.cat([less, less])
    return Components.create(kind, log_weights, torch.cat([means + step, means - step]), both)


@dataclass
class PairMerging:
    """Components that are merged by pairs, in NumPy; `alive` are those that are left."""

    kind: MixtureKind
    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    alive: np.ndarray

    def merge(self, i: int, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weight, mean and covariance of component i merged with each of the others."""
        weights = self.weights[i] + self.weights[others]
        one, two = self.weights[i] / weights, self.weights[others] / weights
        away = self.means[i] - self.means[others]  # (m, d)
        means = one[:, None] * self.means[i] + two[:, None] * self.means[others]
        if self.kind.covariance == "tied":
            return weights, means, self.covariances
        between = {
            "full": away[:, :, None] * away[:, None, :],
            "diag": away**2,
            "spherical": (away**2).mean(axis=1),
        }[str(self.kind.covariance)]
        shape = (-1, *[1] * (between.ndim - 1))
        within = (
            one.reshape(shape) * self.covariances[i]
            + two.reshape(shape) * (self.covariances[others])
        )
        return weights, means, within + (one * two).reshape(shape) * between

    def log_det(self, covariances: np.ndarray) -> np.ndarray:
        """Return the logarithms of the determinants."""
        if self.kind.covariance == "full":
            return np.linalg.slogdet(covariances)[1]
        if self.kind.covariance == "diag":
            return np.log(covariances).sum(axis=1)
        return self.means.shape[1] * np.log(covariances)

    def price(self, i: int, others: np.ndarray) -> np.ndarray:
        """Return an upper bound of twice the loss of log-likelihood of a row, by each merger."""
        weights, _, covariances = self.merge(i, others)
        if self.kind.covariance == "tied":
            away = self.means[i] - self.means[others]
            squares = (away @ np.linalg.inv(self.covariances) * away).sum(axis=1)
            return self.weights[i] * self.weights[others] / weights * squares
        return (
            weights * self.log_det(covariances)
            - self.weights[i] * self.log_det(self.covariances[[i]])[0]
            - self.weights[others] * self.log_det(self.covariances[others])
        )


def merge_down(components: Components, k: int) -> Components:
    """Return k components: the pair that costs least is merged, again and again."""
    kind, device = components.kind, components.means.device
    state = PairMerging(
        kind,
        components.log_weights.exp().clamp(min=1e-12).cpu().numpy().copy(),
        components.means.cpu().numpy().copy(),
        components.covariances.cpu().numpy().copy(),
        np.ones(len(components.means), dtype=bool),
    )
    count = len(state.weights)
    costs = np.full((count, count), np.inf)
    for i in range(count - 1):
        costs[i, i + 1 :] = state.price(i, np.arange(i + 1, count))
    while state.alive.sum() > k:
        i, j = divmod(int(costs.argmin()), count)
        weight, mean, covariance = state.merge(i, np.array([j]))
        state.weights[i], state.means[i] = weight[0], mean[0]
        if kind.covariance != "tied":
            state.covariances[i] = covariance[0]
        state.alive[j] = False
        costs[j, :] = costs[:, j] = np.inf
        others = np.flatnonzero(state.alive & (np.arange(count) != i))
        costs[np.minimum(i, others), np.maximum(i, others)] = state.price(i, others)
    kept = state.alive
    covariances = state.covariances if kind.covariance == "tied" else state.covariances[kept]

    def as_tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    log_weights = as_tensor(np.log(state.weights[kept] / state.weights[kept].sum()))
    means = as_tensor(state.means[kept])
    return Components.create(kind, log_weights.clamp(min=LOG_TINY), means, as_tensor(covariances))
