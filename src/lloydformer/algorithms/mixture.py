"""EM of mixtures by definition (Dempster, Laird and Rubin, 1977), in the log domain.

Densities are computed by differences and a linear solve, one component after the other, and sums in
long double. Circuits and plans compute the same by dot products of statistics and by matrix
products.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

# Logarithms are taken of numbers not below this, so that log 0 stays finite: a component without
# points, and a column of a Bernoulli or Poisson component that is always 0.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class MixtureState:
    """The parameters of a mixture of k components.

    Attributes
    ----------
    weights : array of shape (k,)
        The share of each component; they sum to 1.
    means : array of shape (k, d)
        The means; probabilities of Bernoulli components, rates of Poisson components.
    covariances : array of shape (k, d, d) or None
        The covariance matrices of Gaussian components, whatever their restriction.
    """

    weights: Float[ndarray, " k"]
    means: Float[ndarray, "k d"]
    covariances: Float[ndarray, "k d d"] | None = None


@dataclass(frozen=True)
class MixtureIteration:
    """The result of one iteration.

    Attributes
    ----------
    state : MixtureState
        The parameters after it.
    lower_bound : float
        The mean log-likelihood of a row under the parameters before it.
    responsibilities : array of shape (n, k)
        The probability of each component, given the row.
    """

    state: MixtureState
    lower_bound: float
    responsibilities: Float[ndarray, "n k"]


@dataclass(frozen=True)
class Mixture:
    r"""An EM iteration: responsibilities of the components, then their parameters.

    $r_{ij} \propto \pi_j p_j(x_i)$, and the parameters of component j maximise
    $\sum_i w_i r_{ij} \log \pi_j p_j(x_i)$. The regularisation is added to the variances.

    Attributes
    ----------
    covariance : {"full", "tied", "diag", "spherical", "shared"} or float
        The restriction of the covariance matrices: none, one matrix for all components, diagonal,
        a multiple of the identity for each component, one such multiple for all of them, or this
        variance, which never changes.
    family : {"gaussian", "bernoulli", "poisson"}
        The distribution of a component; columns of the last two are independent within it.
    weights : {"free", "equal"}
        With "equal", every component has the weight 1/k.
    regularisation : float
        Added to the variances, if they are estimated.
    """

    covariance: str | float = "full"
    family: str = "gaussian"
    weights: str = "free"
    regularisation: float = 1e-6

    def run(
        self,
        points: Float[ndarray, "n d"],
        state: MixtureState,
        n_iterations: int,
        row_weights: Float[ndarray, " n"] | None = None,
    ) -> list[MixtureIteration]:
        """Return the results of some iterations."""
        found = list[MixtureIteration]()
        for _ in range(n_iterations):
            found.append(self.iterate(points, state, row_weights))
            state = found[-1].state
        return found

    def iterate(
        self,
        points: Float[ndarray, "n d"],
        state: MixtureState,
        row_weights: Float[ndarray, " n"] | None = None,
    ) -> MixtureIteration:
        """Return the result of one iteration."""
        counts = np.ones(len(points)) if row_weights is None else np.asarray(row_weights, float)
        joint = self.log_joint(points, state).astype(np.longdouble)
        largest = joint.max(axis=1, keepdims=True)
        likelihoods = largest[:, 0] + np.log(np.exp(joint - largest).sum(axis=1))
        logs = joint - likelihoods[:, None]
        bound = float((counts * likelihoods).sum() / counts.sum())
        return MixtureIteration(
            self._maximise(points, logs, counts), bound, np.exp(logs).astype(float)
        )

    def log_joint(
        self, points: Float[ndarray, "n d"], state: MixtureState
    ) -> Float[ndarray, "n k"]:
        r"""Return $\log \pi_j p_j(x_i)$."""
        k = len(state.means)
        weights = np.full(k, 1 / k) if self.weights == "equal" else state.weights
        densities = [self._log_density(points, state, j) for j in range(k)]
        return np.stack(densities, axis=1) + np.log(np.maximum(weights, TINY))

    def _log_density(self, points: ndarray, state: MixtureState, j: int) -> ndarray:
        """Return the logarithms of a component's density at the rows, (n,)."""
        mean = state.means[j]
        if self.family == "bernoulli":
            yes, no = np.log(np.maximum(mean, TINY)), np.log(np.maximum(1 - mean, TINY))
            return (points * yes + (1 - points) * no).sum(axis=1)
        if self.family == "poisson":
            factorials = np.array([[math.lgamma(x + 1) for x in row] for row in points.tolist()])
            return (points * np.log(np.maximum(mean, TINY)) - mean - factorials).sum(axis=1)
        assert state.covariances is not None
        away, covariance = points - mean, state.covariances[j]
        squares = (away * np.linalg.solve(covariance, away.T).T).sum(axis=1)
        log_det = np.linalg.slogdet(2 * np.pi * covariance)[1]
        return -(squares + log_det) / 2

    def _maximise(self, points: ndarray, logs: ndarray, counts: ndarray) -> MixtureState:
        """Return the parameters that maximise the expected log-likelihood.

        logs: the logarithms of the responsibilities, (n, k). Those of a component far from all
        points are too small for a float, but their ratios are not.
        """
        counted = counts > 0
        rows, logs = points[counted].astype(np.longdouble), logs[counted]
        logs = logs + np.log(counts[counted].astype(np.longdouble))[:, None]
        largest = logs.max(axis=0)
        shares = np.exp(logs - largest)  # (n, k)
        masses = np.exp(largest) * shares.sum(axis=0)
        shares = shares / shares.sum(axis=0)
        # relative to a point: shares sum to 1 up to rounding, which would shift means of data far
        # from zero
        origin = rows[0]
        means = origin + shares.T @ (rows - origin)
        state = MixtureState((masses / masses.sum()).astype(float), means.astype(float))
        if self.family != "gaussian":
            return state
        away = rows[:, None] - means  # (n, k, d)
        covariances = np.einsum("nk,nkp,nkq->kpq", shares, away, away)
        return replace(
            state, covariances=self._restrict(covariances, masses / masses.sum()).astype(float)
        )

    def _restrict(self, covariances: ndarray, weights: ndarray) -> ndarray:
        """Return the covariance matrices of the kind `covariance`, with the regularisation."""
        k, d, _ = covariances.shape
        identity = np.eye(d)
        if not isinstance(self.covariance, str):
            return np.broadcast_to(self.covariance * identity, covariances.shape)
        if self.covariance in ("tied", "shared"):
            pooled = (weights[:, None, None] * covariances).sum(axis=0)
            covariances = np.broadcast_to(pooled, (k, d, d))
        if self.covariance in ("spherical", "shared"):
            variances = np.trace(covariances, axis1=1, axis2=2) / d
            covariances = variances[:, None, None] * identity
        if self.covariance == "diag":
            covariances = covariances * identity
        return covariances + self.regularisation * identity
