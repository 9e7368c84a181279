"""EM of mixtures: scores, log-sum-exp, responsibilities and sums in one pass over a block.

A fold reads each row once and keeps nothing of size n x k. The parameters between two iterations
are a `Components`; `MixturePlan.improve` is one iteration.

As in the circuit, scores are products of statistics and natural parameters, and sums are products
of responsibilities and statistics: two matrix products for a block. They lose digits where a
component is much narrower than its distance from the origin; such blocks are compared and summed by
differences from each mean (`Components.choose_way`).
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.mixture import LOG_2_PI, TINY, MixtureKind
from lloydformer.data.rows import DenseRows, Rows, SparseRows
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.clusters import scaled_shares
from lloydformer.numerics.noise import uniform
from lloydformer.plans.contract import Plan, Step
from lloydformer.plans.session import (
    Columns,
    PointBlock,
    Session,
    SumFold,
    Task,
    weighted_sum,
)

# The sum of responsibilities of a component, below which they are computed again from their
# logarithms. Responsibilities have all their digits down to 1e-308, and at this size none that
# matters has been rounded to 0.
FAINT = 1e-280
LOG_TINY = math.log(TINY)
# Largest bounds of the rounding error of the logarithm of a density. In float64, iterations are
# then right to about 1e-10; in float32, where errors of rows are averaged, lower bounds to 1e-6.
MOST_ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-3}
# Numbers of the statistics of rows that are processed together: 2 MB in float64, so that they stay
# in the cache of a core or near it. But parts get no shorter than 64 rows.
STATISTICS, FEWEST_ROWS = 1 << 18, 64
# Full covariances of so many columns are compared and summed by differences, whatever the rounding:
# there are more products of columns than a cache holds (d 128: 655 ms by differences, 770 by
# products, for 20,000 rows and 20 components in float64 on one core; d 32: 500 and 390).
WIDE = 64
# Responsibilities below this, relative to the largest of the component in a part, are left out of
# sums by differences: those of all rows together are below the rounding of the sum.
NEGLIGIBLE = 1e-20


class IllDefinedError(ValueError):
    """A covariance matrix that is not positive definite."""

    def __init__(self) -> None:
        # the words of scikit-learn, which users search for
        super().__init__(
            "Fitting the mixture model failed because some components have ill-defined empirical "
            "covariance (for instance caused by singleton or collapsed samples). Try to decrease "
            "the number of components, increase reg_covar, or scale the input data."
        )


@dataclass(frozen=True)
class Components:
    """The parameters of k components in float64, relative to the origin of the rows.

    Attributes
    ----------
    kind : MixtureKind
        The member of the family.
    log_weights : Tensor of shape (k,)
        Logarithms of the weights, which may be too small for a float.
    means : Tensor of shape (k, d)
        Means; probabilities or rates of other families.
    covariances : Tensor
        In scikit-learn's shape: (k, d, d), (d, d), (k, d) or (k,); of "shared" () and of a fixed
        variance (). Not a number for other families.
    factors : Tensor
        Triangular matrices F with F F^T the inverse of the covariance, in the same shape.
    """

    kind: MixtureKind
    log_weights: Tensor
    means: Tensor
    covariances: Tensor
    factors: Tensor

    @classmethod
    def create(
        cls, kind: MixtureKind, log_weights: Tensor, means: Tensor, covariances: Tensor | None
    ) -> "Components":
        """Return the components with these parameters.

        Raises
        ------
        IllDefinedError
            If a covariance matrix is not positive definite.
        """
        if covariances is None:
            given = kind.covariance if kind.is_fixed else math.nan
            covariances = torch.tensor(given, dtype=torch.float64, device=means.device)
        return cls(kind, log_weights, means, covariances, _factors(kind, covariances))

    @classmethod
    def around(cls, kind: MixtureKind, means: Tensor, variance: float = 1.0) -> "Components":
        """Return round components of this variance, with equal weights."""
        k, d = means.shape
        log_weights, covariances = means.new_full((k,), -math.log(k)), None
        if kind.is_estimated:
            identity = torch.eye(d).to(means)
            ones = {
                "full": identity.expand(k, d, d),
                "tied": identity,
                "diag": torch.ones_like(means),
                "spherical": means.new_ones(k),
                "shared": means.new_ones(()),
            }
            covariances = variance * ones[str(kind.covariance)]
        return cls.create(kind, log_weights, means, covariances)

    @cached_property
    def log_normalisers(self) -> Tensor:
        """Terms added to minus half the squared distances in units of the covariance: (k,)."""
        k, d = self.means.shape
        equal = torch.full_like(self.log_weights, -math.log(k))
        log_weights = self.log_weights if self.kind.weights == "free" else equal
        log_weights = log_weights.clamp(min=LOG_TINY)
        if self.kind.family == "bernoulli":
            return log_weights + (1 - self.means).clamp(min=TINY).log().sum(dim=1)
        if self.kind.family == "poisson":
            return log_weights - self.means.sum(dim=1)
        if self.kind.covariance in ("full", "tied"):
            log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        elif self.kind.covariance == "diag":
            log_det = self.factors.log().sum(dim=1)
        else:
            log_det = d * self.factors.log()
        return log_weights + log_det - 0.5 * d * LOG_2_PI

    @cached_property
    def natural(self) -> tuple[Tensor, Tensor]:
        """The natural parameters: those of `statistic`, (k, s), and constants, (k,)."""
        means, factors, kind = self.means, self.factors, self.kind
        if kind.family != "gaussian":
            linear = means.clamp(min=TINY).log()
            if kind.family == "bernoulli":
                linear = linear - (1 - means).clamp(min=TINY).log()
            return linear, self.log_normalisers
        if kind.covariance in ("full", "tied"):
            precisions = factors @ factors.mT
            linear = (precisions @ means.unsqueeze(-1)).squeeze(-1)
            quadratic = means.new_zeros(len(means), 0)
            if kind.covariance == "full":
                # an entry off the diagonal stands for two of the matrix
                upper = precisions.triu(1) + 0.5 * precisions.diagonal(dim1=1, dim2=2).diag_embed()
                first, second = torch.triu_indices(*upper.shape[1:]).to(means.device)
                quadratic = -upper[:, first, second]
        else:
            precisions = factors.square()
            of_columns = precisions if precisions.ndim == 2 else precisions.reshape(-1, 1)
            linear = of_columns * means
            width = means.shape[1] if kind.covariance == "diag" else 1
            quadratic = (-0.5 * of_columns).expand(len(means), width)
        constants = self.log_normalisers - 0.5 * (linear * means).sum(dim=1)
        return torch.cat([linear, quadratic], dim=1), constants

    @cached_property
    def sharpness(self) -> float:
        """Upper bound of the largest eigenvalue of a precision matrix; 0 without covariances."""
        if self.kind.family != "gaussian":
            return 0.0
        squares = self.factors.square()
        if self.kind.covariance in ("full", "tied"):
            squares = squares.sum(dim=(-2, -1))
        return squares.max().item()

    def choose_way(self, points: Tensor) -> tuple[bool, torch.dtype]:
        """Return how rows (m, d) are compared: by products or by differences, in which precision.

        Products of statistics lose the square of the digits that differences lose.
        """
        if self.sharpness == 0:
            return True, points.dtype
        farthest = torch.linalg.vecdot(points, points).max().item()
        farthest = max(farthest, self.means.square().sum(dim=1).max().item())
        reach = farthest * self.sharpness  # of squared distances in units of the covariance
        wide = self.kind.covariance == "full" and points.shape[1] >= WIDE
        for dtype in dict.fromkeys((points.dtype, torch.float64)):
            eps, most = torch.finfo(dtype).eps, MOST_ROUNDING[dtype]
            if not wide and eps * reach <= most:
                return True, dtype
            if (wide or dtype == torch.float64) and eps * reach**0.5 <= 0.1 * most:
                return False, dtype
        return False, torch.float64

    def log_joint(self, rows: Rows) -> Tensor:
        r"""Return $\log \pi_j p_j(x_i)$, (m, k), in float64.

        For Poisson components without $\log x!$, which is the same for all of them.
        """
        rows = rows.double()
        if isinstance(rows, DenseRows) and not self.choose_way(rows.points)[0]:
            return self.compare_by_differences(rows.points)
        return self.compare_by_products(self.statistic(rows))

    def compare_by_products(self, statistic: Tensor | SparseRows) -> Tensor:
        """Return the same, as products of the statistics of rows, in their precision."""
        theta, constants = self.natural
        if isinstance(statistic, SparseRows):
            return statistic.products(theta.T).add_(constants)
        # (k, m), whose rows are long: skinny products take half of the time so
        theta, constants = theta.to(statistic.dtype), constants.to(statistic.dtype)
        joint = torch.addmm(constants[:, None], theta, statistic)
        if self.kind.covariance == "tied":
            white = self.factors.T.to(statistic.dtype) @ statistic
            joint.sub_(white.square_().sum(dim=0), alpha=0.5)
        return joint.T

    def compare_by_differences(self, points: Tensor) -> Tensor:
        """Return the same for dense rows in their precision, component by component."""
        found = points.new_empty(len(points), len(self.means))
        means, factors = self.means.to(points.dtype), self.factors.to(points.dtype)
        for j, mean in enumerate(means):
            away = points - mean
            if self.kind.covariance in ("full", "tied"):
                away = away @ (factors if factors.ndim == 2 else factors[j])
            else:
                away *= factors if factors.ndim == 0 else factors[j]
            found[:, j] = torch.linalg.vecdot(away, away)
        return found.mul_(-0.5).add_(self.log_normalisers.to(points.dtype))

    @property
    def width(self) -> int:
        """The number of statistics of a row."""
        d = self.means.shape[1]
        if self.kind.family != "gaussian" or self.kind.covariance == "tied":
            return d
        own = {"full": d * (d + 1) // 2, "diag": d}
        return d + own.get(str(self.kind.covariance), 1)

    def statistic(self, rows: Rows, buffer: Tensor | None = None) -> Tensor | SparseRows:
        """Return the sufficient statistic of rows: columns, and squares or products of columns.

        Dense rows give a tensor (s, m), in the first columns of the buffer if there is one; sparse
        rows stay sparse.
        """
        kind = self.kind
        lifts = kind.family == "gaussian" and kind.covariance != "tied"
        if isinstance(rows, SparseRows):
            squared = rows.squared() if kind.covariance == "diag" else None
            return rows.beside(squared) if lifts else rows
        assert isinstance(rows, DenseRows)
        m, d = rows.points.shape
        if buffer is None:
            buffer = rows.points.new_empty(self.width, m)
        found = buffer[:, :m]
        columns = found[:d].copy_(rows.points.T)
        if not lifts:
            return found
        if kind.covariance == "diag":
            torch.mul(columns, columns, out=found[d:])
        elif kind.covariance == "full":
            place = d
            for p in range(d):  # the order of `torch.triu_indices`
                torch.mul(columns[p:], columns[p], out=found[place : place + d - p])
                place += d - p
        else:
            found[d] = torch.linalg.vecdot(rows.points, rows.points)
        return found

    def select(self, which: Tensor) -> "Components":
        """Return some of the components."""
        covariances, factors = self.covariances, self.factors
        if self.kind.covariance in ("full", "diag", "spherical"):
            covariances, factors = covariances[which], factors[which]
        log_weights, means = self.log_weights[which], self.means[which]
        return Components(self.kind, log_weights, means, covariances, factors)


def _factors(kind: MixtureKind, covariances: Tensor) -> Tensor:
    """Return F with F F^T the inverse of each covariance, upper triangular as scikit-learn's."""
    if kind.family != "gaussian":
        return covariances
    if kind.covariance not in ("full", "tied"):
        if not bool((covariances > 0).all()):
            raise IllDefinedError
        return covariances.rsqrt()
    lower, failed = torch.linalg.cholesky_ex(covariances)
    if bool(failed.any()):
        raise IllDefinedError
    identity = torch.eye(lower.shape[-1]).to(lower).expand_as(lower)
    return torch.linalg.solve_triangular(lower, identity, upper=False).mT.contiguous()


class MixtureStatistics(NamedTuple):
    """Sums over rows in float64, relative to the means of the components that they belong to.

    Attributes
    ----------
    masses : Tensor of shape (k,)
        Sums of the responsibilities r, times the weights of the rows.
    sums : Tensor of shape (k, d)
        Sums of r (x - m).
    squares : Tensor
        Sums of r (x - m) (x - m)^T (k, d, d) of "full", of its diagonal (k, d) of "diag", of its
        trace (k,) of "spherical"; 0 (k,) of others, which do not need them.
    """

    masses: Tensor
    sums: Tensor
    squares: Tensor


def sum_products(
    shares: Tensor, statistic: Tensor | SparseRows, components: Components
) -> MixtureStatistics:
    """Return the statistics for shares (m, k), by one product with those of the rows."""
    kind, means = components.kind, components.means
    masses, d = shares.sum(dim=0).double(), means.shape[1]
    if isinstance(statistic, SparseRows):
        found = statistic.weighted_sums(shares)
    else:
        found = (shares.T @ statistic.T).double()
    sums, seconds = found[:, :d], found[:, d:]
    moved = sums - masses[:, None] * means
    squares = torch.zeros_like(masses)
    if kind.family != "gaussian":
        return MixtureStatistics(masses, moved, squares)
    # sum r (x - m)(x - m)^T = sum r x x^T - (sum r (x - m)) m^T - m (sum r x)^T
    if kind.covariance == "full":
        matrices = means.new_zeros(*means.shape, d)
        first, second = torch.triu_indices(d, d).to(means.device)
        matrices[:, first, second] = seconds
        matrices[:, second, first] = seconds
        squares = matrices - moved[:, :, None] * means[:, None] - means[:, :, None] * sums[:, None]
    elif kind.covariance == "diag":
        squares = seconds - moved * means - means * sums
    elif kind.covariance == "spherical":
        squares = seconds[:, 0] - ((moved + sums) * means).sum(dim=1)
    return MixtureStatistics(masses, moved, squares)


def sum_differences(shares: Tensor, points: Tensor, components: Components) -> MixtureStatistics:
    """Return the statistics for shares (m, k) and rows of one precision, component by component."""
    means = components.means
    covariance = components.kind.covariance if components.kind.family == "gaussian" else None
    masses, sums = shares.sum(dim=0).double(), torch.empty_like(means)
    own = {"full": (*means.shape, means.shape[1]), "diag": means.shape}
    squares = means.new_zeros(own.get(str(covariance), means.shape[:1]))
    counted = shares > NEGLIGIBLE * shares.amax(dim=0)
    for j, mean in enumerate(means.to(points.dtype)):
        share, rows = shares[:, j], points
        used = counted[:, j].nonzero()[:, 0]
        if len(used) < len(points) // 2:  # copying half of the rows costs as much as it saves
            share, rows = share[used], points[used]
        away = rows - mean
        weighted = away * share[:, None]
        sums[j] = weighted.sum(dim=0)
        if covariance == "full":
            squares[j] = weighted.T @ away
        elif covariance == "diag":
            squares[j] = (weighted * away).sum(dim=0)
        elif covariance == "spherical":
            squares[j] = (weighted * away).sum()
    return MixtureStatistics(masses, sums, squares)


def weighted_statistics(shares: Tensor, rows: Rows, components: Components) -> MixtureStatistics:
    """Return the statistics for any shares (m, k) in float64, which need not be those of E-steps.

    By differences where rows allow that, as the components may not have covariances yet.
    """
    rows = rows.double()
    if isinstance(rows, DenseRows):
        return sum_differences(shares, rows.points, components)
    return sum_products(shares, components.statistic(rows), components)


def responsibilities(joint: Tensor) -> tuple[Tensor, Tensor]:
    """Return the soft-max of each row in place of its logarithms, and the log-sum-exp (m,)."""
    largest = joint.amax(dim=1, keepdim=True)
    shares = joint.sub_(largest).exp_()
    totals = shares.sum(dim=1, keepdim=True)
    return shares.div_(totals), totals.log_().add_(largest)[:, 0]


def _counts(block: PointBlock) -> Tensor | None:
    return None if block.weights is None else block.weights.double()


@dataclass(frozen=True)
class MixtureSums(SumFold):
    """The statistics of an iteration (`MixtureStatistics`), and the sum of w log p(x)."""

    components: Components
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows, counts, components = block.rows, _counts(block), self.components
        if isinstance(rows, SparseRows):
            lifted = components.statistic(rows.double())
            shares, likelihood = _share(components.compare_by_products(lifted), counts)
            return *sum_products(shares, lifted, components), likelihood
        assert isinstance(rows, DenseRows)
        wide = components.kind.covariance == "full" and components.means.shape[1] >= WIDE
        width = 2 * components.means.shape[1] if wide else components.width
        size = max(FEWEST_ROWS, STATISTICS // width)
        buffers = dict[torch.dtype, Tensor]()  # new memory for each part would cost more than sums
        found: tuple[Tensor, ...] | None = None
        for start in range(0, block.size, size):
            part = DenseRows(rows.points[start : start + size], None)
            by_products, dtype = components.choose_way(part.points)
            # float32 rows stay so where that is precise enough: it takes half of the time
            part = part if dtype == part.points.dtype else part.double()
            statistic: Tensor | SparseRows | None = None
            if by_products:
                if dtype not in buffers:
                    buffers[dtype] = part.points.new_empty(width, min(size, block.size))
                statistic = components.statistic(part, buffers[dtype])
                joint = components.compare_by_products(statistic)
            else:
                joint = components.compare_by_differences(part.points)
            own = None if counts is None else counts[start : start + size]
            shares, likelihood = _share(joint, own)
            if statistic is not None:
                sums = sum_products(shares, statistic, components)
            else:
                sums = sum_differences(shares, part.points, components)
            new = (*sums, likelihood)
            found = new if found is None else self.merge(found, new)
        assert found is not None, "a block has rows"
        return found


def _share(joint: Tensor, counts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return responsibilities times the weights of the rows, and the sum of w log p(x)."""
    shares, likelihoods = responsibilities(joint)
    likelihood = weighted_sum(likelihoods, counts)
    return shares if counts is None else shares.mul_(counts[:, None].to(shares.dtype)), likelihood


@dataclass(frozen=True)
class FaintSums:
    """The statistics of components whose responsibilities are too small for a float.

    They are divided by the largest responsibility of each component, whose logarithm comes first.
    """

    components: Components
    which: Tensor
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows = block.rows.double()
        logs = self.components.log_joint(rows).log_softmax(dim=1)[:, self.which]
        level, shares = scaled_shares(logs, _counts(block))
        return level, *weighted_statistics(shares, rows, self.components.select(self.which))

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # as in an online soft-max: the larger level wins, and the other sums are scaled to it
        level = torch.maximum(first[0], second[0])
        sums = []
        for one, two in zip(first[1:], second[1:], strict=True):
            shape = (-1, *[1] * (one.ndim - 1))
            scale = [(part[0] - level).exp().view(shape) for part in (first, second)]
            sums.append(scale[0] * one + scale[1] * two)
        return level, *sums


@dataclass(frozen=True)
class LabelSums(SumFold):
    """The statistics of components that own the rows with their label."""

    components: Components
    writes: ClassVar[Columns] = ()
    writes_from: ClassVar[Columns] = ("labels",)

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, counts = len(self.components.means), _counts(block)
        shares = torch.nn.functional.one_hot(block.labels.long(), k).double()
        if counts is not None:
            shares = shares * counts[:, None]
        return weighted_statistics(shares, block.rows, self.components)


@dataclass(frozen=True)
class RandomSums(SumFold):
    """The statistics for random responsibilities, each row's proportional to uniform numbers."""

    components: Components
    seed: int
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        counts, k = _counts(block), len(self.components.means)
        numbers = torch.arange(block.start, block.start + block.size)
        shares = uniform(self.seed, 0, "encoder_cross", k, numbers).T.to(self.components.means)
        shares = shares / shares.sum(dim=1, keepdim=True)
        if counts is not None:
            shares = shares * counts[:, None]
        return weighted_statistics(shares, block.rows, self.components)


class Totals(NamedTuple):
    """Sums over all rows that do not change from iteration to iteration.

    Attributes
    ----------
    weight : Tensor of shape ()
        The sum of the weights.
    rows : Tensor of shape (d,)
        The sum of w x; of "tied" and "shared" alone.
    squares : Tensor of shape (d, d) or ()
        The sum of w x x^T of "tied", of w |x|^2 of "shared".
    log_factorials : Tensor of shape ()
        The sum of w log x!, which Poisson components leave out of their scores.
    """

    weight: Tensor
    rows: Tensor
    squares: Tensor
    log_factorials: Tensor


@dataclass(frozen=True)
class TotalMoments(SumFold):
    """The sums of `Totals`; those that the member does not need are 0."""

    kind: MixtureKind
    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        weights = _counts(block)
        if weights is None:
            weights = torch.ones(block.size, dtype=torch.float64, device=block.labels.device)
        zero = weights.new_zeros(())
        found = Totals(weights.sum(), zero, zero, zero)
        if self.kind.family == "poisson":
            return found._replace(log_factorials=weights @ log_factorials(block.rows.double()))
        if not self.kind.is_pooled:
            return found
        rows = block.rows.double()
        found = found._replace(rows=rows.weighted_sums(weights[:, None])[0])
        if self.kind.covariance == "shared":
            return found._replace(squares=weights @ rows.squared_norms())
        assert isinstance(rows, DenseRows)
        return found._replace(squares=(rows.points * weights[:, None]).T @ rows.points)


def log_factorials(rows: Rows) -> Tensor:
    """Return the sum of log x! of each row, (m,), for rows in float64."""
    if isinstance(rows, SparseRows):
        matrix = rows.matrix.copy()
        matrix.data = torch.lgamma(torch.from_numpy(matrix.data) + 1).numpy()  # log 0! is 0
        return torch.from_numpy(np.asarray(matrix.sum(axis=1)).ravel())
    assert isinstance(rows, DenseRows)
    return torch.lgamma(rows.points + 1).sum(dim=1)


@dataclass(frozen=True)
class MixtureLabels(SumFold):
    """Labels every row by its most probable component; returns the sum of w log p(x)."""

    components: Components
    writes: ClassVar[Columns] = ("labels",)

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        joint = self.components.log_joint(block.rows)
        block.labels.copy_(joint.argmax(dim=1))
        return (weighted_sum(joint.logsumexp(dim=1), _counts(block)),)


@dataclass(frozen=True)
class MixtureRows(Task):
    """Something of each row: its responsibilities, its log-likelihood, or its component.

    The result is (n, k) or (n,) in the precision of the rows, or (n,) int32.

    Attributes
    ----------
    components : Components
        The parameters.
    asked : {"shares", "likelihoods", "labels"}
        What is returned.
    """

    components: Components
    asked: Literal["shares", "likelihoods", "labels"]
    writes: ClassVar[Columns] = ()

    def compute(self, rows: Rows) -> Tensor:
        """Return it for some rows, in float64 or int64, without kernels."""
        rows = rows.double()
        joint = self.components.log_joint(rows)
        if self.asked == "labels":
            return joint.argmax(dim=1)
        if self.asked == "shares":
            return joint.softmax(dim=1)
        found = joint.logsumexp(dim=1)
        is_poisson = self.components.kind.family == "poisson"
        return found - log_factorials(rows) if is_poisson else found


@dataclass(frozen=True)
class MixturePlan(Plan):
    """One iteration of EM: `improve`. Its state is a `Components`, more than centers.

    Attributes
    ----------
    kind : MixtureKind
        The member of the family.
    regularisation : float
        Added to estimated variances.
    """

    kind: MixtureKind = field(default_factory=MixtureKind)
    regularisation: float = 1e-6
    stops_on = "never"
    empties = "keep"
    has_plain_inertia = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        raise ValueError(
            "recipe: found a mixture, whose components have weights and covariances besides their "
            "centers; use GaussianMixture, BernoulliMixture or PoissonMixture"
        )

    def measure(self, session: Session) -> Totals:
        """Return the sums that do not change from iteration to iteration: one pass."""
        return Totals(*session.fold(TotalMoments(self.kind)))

    def regularise(self, covariances: Tensor) -> Tensor:
        """Return covariances with the regularisation on their diagonals."""
        if self.kind.covariance in ("full", "tied"):
            identity = torch.eye(covariances.shape[-1]).to(covariances)
            return covariances + self.regularisation * identity
        return covariances + self.regularisation

    def improve(
        self, session: Session, components: Components, totals: Totals
    ) -> tuple[Components, float]:
        """Run one iteration.

        Returns
        -------
        Components
            The new parameters.
        float
            The mean log-likelihood of a row under the parameters before the iteration.
        """
        *sums, likelihood = session.fold(MixtureSums(components))
        found = MixtureStatistics(*sums)
        log_masses = found.masses.log()
        faint = (found.masses < FAINT).nonzero()[:, 0]
        if len(faint):
            level, *scaled = session.fold(FaintSums(components, faint))
            log_masses[faint] = level + scaled[0].log()
            for whole, part in zip(found, scaled, strict=True):
                whole[faint] = part
        bound = (likelihood - totals.log_factorials) / totals.weight
        return self.estimate(components, found, log_masses, totals), bound.item()

    def estimate(
        self,
        components: Components,
        found: MixtureStatistics,
        log_masses: Tensor,
        totals: Totals,
    ) -> Components:
        """Return the parameters that maximise the expected log-likelihood: the M-step.

        log_masses: logarithms of the sums of responsibilities. The statistics of a component,
        its mass among them, may have any common factor.
        """
        kind, d = self.kind, found.sums.shape[1]
        log_weights = (log_masses - log_masses.logsumexp(dim=0)).clamp(min=LOG_TINY)
        moved = found.sums / found.masses[:, None]
        means = components.means + moved
        if not kind.is_estimated:
            return Components.create(kind, log_weights, means, None)
        if kind.covariance == "full":
            covariances = found.squares / found.masses[:, None, None]
            covariances = covariances - moved[:, :, None] * moved[:, None, :]
            covariances = (covariances + covariances.mT) / 2
        elif kind.covariance == "diag":
            covariances = (found.squares / found.masses[:, None] - moved.square()).clamp(min=0)
        elif kind.covariance == "spherical":
            squares = found.squares / found.masses - moved.square().sum(dim=1)
            covariances = (squares / d).clamp(min=0)
        else:
            # what is left of the whole when the part between the means is taken away
            weights = (log_masses - log_masses.logsumexp(dim=0)).exp()
            whole = totals.squares / totals.weight
            if kind.covariance == "tied":
                covariances = whole - (means * weights[:, None]).T @ means
            else:
                between = weights @ means.square().sum(dim=1)
                covariances = ((whole - between) / d).clamp(min=0)
        return Components.create(kind, log_weights, means, self.regularise(covariances))
