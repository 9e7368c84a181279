"""What each fold and task of the native engine must find: NumPy in float64, by differences.

Each check runs a fold and compares its summary, and what it writes for each point, with plain
formulas. Tolerances are bounds of the rounding in the precision of the data: eps times the number
of operations, and the rounding of rows when they are read (`Problem.error`).
"""

import math

import numpy as np
import torch
from kernel_distances import Distances, U, by_label, close
from kernel_problems import Problem
from scipy.special import logsumexp

from lloydformer.circuits.mixture import MixtureKind
from lloydformer.numerics.noise import gumbel, row_uniform
from lloydformer.plans.assign import (
    Farthest,
    Moments,
    NearestCosines,
    NearestDistances,
    NearestSums,
)
from lloydformer.plans.means import LloydIterations
from lloydformer.plans.medoids import MedoidDraw, NearestRows
from lloydformer.plans.minibatch import MinibatchSums
from lloydformer.plans.mixture import Components, MixtureLabels, MixtureRows, MixtureSums
from lloydformer.plans.relocating import ClusterErrors, Halves, NoiseDraws, Relocation, TwoNearest
from lloydformer.plans.robust import (
    HighestScores,
    RobustSums,
    SoftmaxWeights,
    SparsemaxWeights,
    SumsAboveThreshold,
)
from lloydformer.plans.seeding import NewSeed, Oversampling, PlusPlusSeeds, Potential
from lloydformer.plans.soft import SoftSums
from lloydformer.plans.symmetric import AttentionSums, Heads, NearestCosts
from lloydformer.plans.trimmed import DistanceHistogram, TrimmedSums


class Checks:
    """Every fold and task, on one problem."""

    def __init__(self, given: Problem, session) -> None:
        self.given, self.session = given, session
        self.w, self.k, self.n = given.weights, given.k, given.n
        self.size = np.abs(given.rows).max(axis=1) + given.error  # of the numbers of a row
        self.sums_error = 64 * self.n * U * float(self.w @ self.size) + float(self.w @ given.error)
        self.mass_error = 64 * self.n * U * float(self.w.sum())

    def column(self, name: str) -> np.ndarray:
        return self.session.state.column(name).numpy()

    def run(self) -> None:
        if self.given.extreme:
            self.lloyd(), self.measure(), self.seeding(), self.seeds(), self.iterations()
            self.oversample(), self.minibatch(), self.farthest()
            return
        self.moments(), self.lloyd(), self.measure(), self.cosines(), self.shares()
        self.nearest_costs(), self.attention(), self.trimmed(), self.robust()
        self.seeding(), self.seeds(), self.iterations(), self.relocation(), self.splits()
        self.draws(), self.closest(), self.oversample(), self.minibatch(), self.farthest()
        self.mixtures()

    def moments(self) -> None:
        x, there = self.given.rows, self.w > 0
        squares = (x**2).sum(axis=1)
        off = 4 * np.sqrt(squares * self.given.d) * self.given.error + 64 * U * self.n * squares
        off = off + 2 * self.given.d * self.given.error**2
        weighted, count, plain, sums = (v.numpy() for v in self.session.fold(Moments()))
        close(weighted, self.w @ squares, 2 * (self.w @ off) + 1e-300, "moments: w |x|^2")
        assert count == there.sum()
        close(plain, squares[there].sum(), 2 * off[there].sum() + 1e-300, "moments: |x|^2")
        error = 64 * self.n * U * self.size[there].sum() + self.given.error[there].sum()
        close(sums, x[there].sum(axis=0), error, "moments: x")

    def lloyd(self) -> None:
        """Iterations, so that bounds are in use; each is compared."""
        centers = self.given.centers
        self.session.forget()
        before = np.full(self.n, np.iinfo(np.int32).min)
        for _ in range(8):
            sums, masses, changed = self.session.fold(NearestSums(centers))
            labels = self.column("labels").copy()
            away = Distances(self.given, centers)
            away.check_exact_labels(labels)
            expected = by_label(self.w[:, None] * self.given.rows, labels, self.k)
            own = by_label(self.w, labels, self.k)
            # Running sums may lose twenty binary digits of what a cluster has.
            lost = 64 * self.n * U + 2.0**21 * U
            error = lost * own * self.size.max() + by_label(
                self.w * self.given.error, labels, self.k
            )
            close(sums, expected, error[:, None] + 1e-300, "nearest: sums")
            close(masses, own, lost * own + 1e-300, "nearest: masses")
            assert changed == ((labels != before) & (self.w > 0)).sum()
            assert np.array_equal(self.column("previous"), labels)
            before, moved = labels, sums / masses.clamp(min=1e-300)[:, None]
            if self.given.data.directions:
                moved = sums / sums.norm(dim=1, keepdim=True).clamp(min=1e-300)
            centers = torch.where(torch.from_numpy(own <= 0)[:, None], centers, moved.to(centers))

    def measured(self, fold) -> tuple[Distances, np.ndarray]:
        self.session.forget()
        summary = self.session.fold(fold)
        away, labels = Distances(self.given, self.given.centers), self.column("labels")
        away.check_exact_labels(labels)
        rows = np.arange(self.n)
        own, off = away.squares[rows, labels], away.by_differences[rows, labels]
        close(self.column("distances"), own, off, "measure: distances")
        close(summary[0], self.w @ own, self.w @ off + self.n * U * (self.w @ own) * 64, "measure")
        mass = by_label(self.w, labels, self.k)
        if isinstance(fold, NearestCosines):
            error = self.mass_error + by_label(self.w * (off + 64 * U * own), labels, self.k)
            close(summary[1], mass - by_label(self.w * own, labels, self.k) / 2, error, "cosines")
        else:
            close(summary[1], mass, self.mass_error, "measure: masses")
        return away, labels

    def measure(self) -> None:
        self.measured(NearestDistances(self.given.centers))

    def farthest(self) -> None:
        """The farthest rows with weight, and no other row is farther by more than rounding."""
        away, labels = self.measured(NearestDistances(self.given.centers))
        every, there = np.arange(self.n), np.flatnonzero(self.w > 0)
        own, off = away.squares[every, labels], away.by_differences[every, labels]
        m = int(self.given.rng.integers(1, self.n + 3))
        found = self.session.fold(Farthest(self.given.centers, m))
        rows, far = found.rows.numpy(), found.distances.numpy()
        assert len(np.unique(rows)) == len(rows) == min(m, len(there))
        assert np.isin(rows, there).all()
        close(far, own[rows], off[rows], "farthest: distances")
        assert np.array_equal(np.lexsort((rows, -far)), np.arange(len(rows)))
        left = np.setdiff1d(there, rows)
        if len(left) and len(rows):
            assert (own[left] - off[left] <= far[-1]).all()
        assert np.array_equal(found.labels, labels[rows])
        assert np.array_equal(found.weights, self.w[rows])
        close(found.points, self.given.rows[rows], self.given.error[rows, None], "farthest: rows")

    def cosines(self) -> None:
        self.measured(NearestCosines(self.given.centers))

    def shares(self) -> None:
        away, eps = Distances(self.given, self.given.centers), self.given.eps
        steepest = 0.02 / max(float(away.expanded.max()), 1e-300)  # so that rounding stays small
        usual = 1 / max(float(np.median(away.squares)), 1e-300)
        gamma = float(min(steepest, usual * 10.0 ** self.given.rng.uniform(-2, 2)))
        level, sums, masses, energy, changed = self.session.fold(
            SoftSums(self.given.centers, gamma)
        )
        z = -gamma * away.squares
        top = z.max(axis=1, keepdims=True)
        p = np.exp(z - top)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        off = np.expm1(3 * gamma * away.expanded) + 300 * eps
        weighted, scale = self.w[:, None] * p, level.exp().numpy()
        error = (weighted * off).sum(axis=0) + 1e-30 * self.w.sum()
        close(masses.numpy() * scale, weighted.sum(axis=0), error, "shares: masses")
        error = ((weighted * off) * self.size[:, None]).sum(axis=0) + self.sums_error
        error += 1e-30 * self.w @ self.size
        found = sums.numpy() * scale[:, None]
        close(found, weighted.T @ self.given.rows, error[:, None], "shares: sums")
        free = -(top[:, 0] + np.log(total[:, 0])) / gamma
        norms = (self.given.rows**2).sum(axis=1) + (away.centers**2).sum(axis=1).max()
        off = 3 * away.expanded.max(axis=1) + 64 * eps * (norms + (1 + math.log(self.k)) / gamma)
        off += 64 * self.n * U * np.abs(free)
        close(energy, self.w @ free, self.w @ off, "shares: energy")
        labels = self.column("labels")
        away.check_labels(labels, 3 * away.expanded)
        assert np.array_equal(self.column("previous"), labels)
        assert 0 <= changed <= (self.w > 0).sum()

    def nearest_costs(self) -> None:
        away = Distances(self.given, self.given.centers)
        order = np.sort(away.squares, axis=1)
        r, s = order[:, 0], order[:, min(1, self.k - 1)]
        off = away.expanded.max(axis=1)
        found = self.session.fold(NearestCosts(self.given.centers))
        first, second, masses, costs = (v.numpy() for v in found)
        more = 64 * self.n * U
        close(first, self.w @ r, self.w @ (off + more * r), "nearest costs: first")
        close(second, self.w @ s, self.w @ (off + more * s), "nearest costs: second")
        unsure = s - r <= 2 * off  # may be of either center
        label = away.squares.argmin(axis=1)
        doubt = self.w[unsure].sum() + self.mass_error
        close(masses, by_label(self.w, label, self.k), doubt, "nearest costs: masses")
        doubt = self.w[unsure] @ (r + off)[unsure] + self.w @ (off + more * r)
        close(costs, by_label(self.w * r, label, self.k), doubt, "nearest costs: costs")

    def attention(self) -> None:
        rng, k, h = self.given.rng, self.k, int(self.given.rng.integers(1, 5))

        def some(*shape):
            return torch.from_numpy(0.3 * rng.normal(size=shape))

        heads = Heads(
            some(h).exp() * 2, some(k, h), 1 + some(k, h), some(k, h), some(k, h), some(k, h),
            some(k, h, h), some(k, 2), some(k, 2),
        )  # fmt: skip
        away = Distances(self.given, self.given.centers)
        mean = float(away.squares.mean())
        unit = max(mean, 100 * float(away.expanded.max()), 1e-30)
        level, masses, sums = self.session.fold(AttentionSums(self.given.centers, unit, heads))
        if not (self.w > 0).any():
            return
        scores, off = self._scores(away, unit, heads)
        top = scores.max(axis=2, keepdims=True)
        e = np.exp(scores - top)
        expected = top[..., 0] + np.log(e.sum(axis=2))
        close(level + masses.log(), expected, off + 1e-4, "attention: logarithms of masses")
        means = (e / e.sum(axis=2, keepdims=True)) @ self.given.rows
        error = np.expm1(2 * (off + 1e-4)) * self.size.max() + self.given.error.max()
        close(sums / masses[..., None], means, error, "attention: means")

    def _scores(self, away: Distances, unit: float, heads: Heads) -> tuple[np.ndarray, float]:
        """Scores (k, h, n), and how a kernel may round them."""
        dd, n_heads = away.squares / unit, len(heads.sharpness)
        order = np.sort(dd, axis=1)
        r, s = order[:, 0], order[:, min(1, self.k - 1)]
        gamma = heads.sharpness.numpy()
        z = -gamma[:, None, None] * dd[None]  # (h, n, k)
        top = z.max(axis=2, keepdims=True)
        log_p = z - top - np.log(np.exp(z - top).sum(axis=2, keepdims=True))
        p, scores = np.exp(log_p), np.zeros((self.k, n_heads, self.n))
        parts = {name: getattr(heads, name).numpy() for name in
                 ("distance", "log_belonging", "nearest", "second", "belonging")}  # fmt: skip
        with np.errstate(divide="ignore"):
            logs = np.log(self.w)
        for j in range(self.k):
            for g in range(n_heads):
                scores[j, g] = (
                    logs + parts["log_belonging"][j, g] * log_p[g, :, j]
                    - parts["distance"][j, g] * dd[:, j]
                    + parts["nearest"][j, g] * np.log(r + 0.01)
                    + parts["second"][j, g] * np.log(s + 0.01)
                    + parts["belonging"][j, g] @ p[:, :, j]
                )  # fmt: skip
        of_distance = float(away.expanded.max()) / unit
        steep = max(float(np.abs(v).max()) for v in parts.values()) * (4 + 2 * gamma.max()) * 100
        rounded = 64 * self.given.eps * float(np.abs(scores[np.isfinite(scores)]).max(initial=1))
        return scores, of_distance * steep + rounded + 200 * self.given.eps * (1 + dd.max() * steep)

    def _labelled(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and distances of the session, as the folds that follow read them."""
        self.measured(NearestDistances(self.given.centers))
        return self.column("labels").copy(), self.column("distances").copy()

    def trimmed(self) -> None:
        labels, away = self._labelled()
        rng, bits = self.given.rng, away.dtype.itemsize * 8
        radius = away[rng.integers(self.n, size=self.k)]
        pattern = away.view(f"i{bits // 8}").astype(np.int64)
        shift = 8 * int(rng.integers(bits // 8))
        prefix = radius.view(f"i{bits // 8}").astype(np.int64) >> min(shift + 8, 63)
        (masses,) = self.session.fold(DistanceHistogram(torch.from_numpy(prefix), shift))
        agree = (pattern >> shift) >> 8 == prefix[labels]
        slots = (labels.astype(np.int64) << 8) + ((pattern >> shift) & 255)
        expected = np.bincount(slots, self.w * agree, minlength=self.k << 8)
        close(masses.numpy().ravel(), expected, self.mass_error, "histogram")
        before, was = self.column("previous").copy(), self.column("trimmed").copy()
        found = self.session.fold(TrimmedSums(torch.from_numpy(radius)))
        kept = away <= radius[labels]
        w = self.w * kept
        self._step(found, labels, w, w @ away.astype(float), "within")
        changed = ((labels != before) | (was != ~kept)) & (self.w > 0)
        assert found[3] == changed.sum()
        assert np.array_equal(self.column("trimmed"), ~kept)

    def _step(self, found, labels, factors, objective: float, what: str, off=0.0) -> None:
        """Sums, masses and objective of a step in which points count by these factors.

        off: the rounding of each factor.
        """
        sums, masses, value = (v.numpy() for v in found[:3])
        spread, off = 64 * self.n * U, off + np.zeros(self.n)
        error = spread * (factors @ self.size) + factors @ self.given.error + off @ self.size
        expected = by_label(factors[:, None] * self.given.rows, labels, self.k)
        close(sums, expected, error + 1e-300, f"{what}: sums")
        error = spread * factors.sum() + off.sum() + 1e-300
        close(masses, by_label(factors, labels, self.k), error, f"{what}: masses")
        close(value, objective, spread * abs(objective) + 1e-300, f"{what}: objective")

    def robust(self) -> None:
        labels, away = self._labelled()
        away = away.astype(float)
        gamma = float(10.0 ** self.given.rng.uniform(-2, 1) / max(np.median(away), 1e-30))
        z, there = -gamma * away, self.w > 0
        best, at_best = self.session.fold(HighestScores(gamma, self.k))
        expected = np.full(self.k, -np.inf)
        np.maximum.at(expected, labels[there], z[there])
        assert np.array_equal(best.numpy(), expected)
        least = np.full(self.k, np.inf)
        np.minimum.at(least, labels[there], away[there])
        close(at_best, by_label(self.w * (away == least[labels]), labels, self.k),
              self.mass_error, "best: masses")  # fmt: skip
        level = np.where(np.isfinite(expected), expected - 1.0, 0.0)
        above = self.w * (z > level[labels])
        masses, scores = self.session.fold(SumsAboveThreshold(gamma, torch.from_numpy(level)))
        close(masses, by_label(above, labels, self.k), self.mass_error, "above: masses")
        close(scores, by_label(above * z, labels, self.k),
              64 * self.n * U * (above @ np.abs(z)) + 1e-300, "above: scores")  # fmt: skip
        radius = away[self.given.rng.integers(self.n, size=self.k)]
        best = torch.from_numpy(np.where(np.isfinite(expected), expected, 0.0))
        rounded = 8 * U * (np.abs(z) + np.abs(level[labels]) + 1) * there
        within = np.exp(np.minimum(z - best.numpy()[labels], 0)) * (away <= radius[labels])
        for weigh, factors, off in (
            (
                SparsemaxWeights(gamma, torch.from_numpy(level)),
                np.maximum(z - level[labels], 0),
                rounded,
            ),
            (SoftmaxWeights(gamma, best, torch.from_numpy(radius)), within, within * rounded),
        ):
            before = self.column("previous").copy()
            factors = self.w * factors * there  # some without weight may be nearer than the best
            found = self.session.fold(RobustSums(weigh, self.k))
            self._step(found, labels, factors, float(self.w @ away), "weighted", self.w * off)
            assert found[3] == ((labels != before) & there).sum()

    def seeding(self) -> None:
        """Seeds one by one, and candidates."""
        seeds = self.given.centers[: int(self.given.rng.integers(1, 7))]
        away = Distances(self.given, seeds)
        for number, seed in enumerate(seeds):
            (mass,) = self.session.fold(NewSeed(seed[None], first=number == 0))
            least = away.squares[:, : number + 1].min(axis=1)
            off = away.by_differences[:, : number + 1].max(axis=1)
            close(self.column("distances"), least, off, "new seed: distances")
            spread = 64 * self.n * U
            close(mass, self.w @ least, self.w @ (off + spread * least) + 1e-300, "new seed")
        candidates = self.given.centers[-int(self.given.rng.integers(1, 9)) :].contiguous()
        others = Distances(self.given, candidates)
        (left,) = self.session.fold(Potential(candidates, mass))
        now = self.column("distances").astype(float)
        expected = self.w @ np.minimum(others.squares, now[:, None])
        off = others.by_differences.max(axis=1) + 256 * self.given.eps * now
        close(left, expected, self.w @ off + 64 * self.n * U * (self.w @ now), "potential")

    def seeds(self) -> None:
        """Each seed is one that its draws can give, and none of the others is much better."""
        trials, k = 3, min(self.k, int((self.w > 0).sum()))
        draws = self.given.rng.random((max(k - 1, 0), trials))
        first = int(np.flatnonzero(self.w > 0)[0])
        found = self.session.run(PlusPlusSeeds(np.array([first]), draws[None]))
        if found is None or k < 2:
            return
        rows, x = found[0].tolist(), self.given.rows
        assert rows[0] == first
        assert len(rows) <= k
        least, off = np.full(self.n, np.inf), np.zeros(self.n)
        for number in range(1, len(rows)):
            away = Distances(self.given, torch.from_numpy(x[rows[number - 1]][None]))
            least = np.minimum(least, away.squares[:, 0])
            e = self.given.error.max() * math.sqrt(self.given.d)
            off = np.maximum(off, away.by_differences[:, 0] + 2 * e * np.sqrt(least) + e**2)
            reached = np.cumsum(self.w * least)
            doubt = self.w @ off + 64 * self.n * U * reached[-1]
            at = draws[number - 1] * reached[-1]
            drawn = reached[rows[number]]
            before = drawn - (self.w * least)[rows[number]]
            assert ((before - doubt * 2 <= at) & (at <= drawn + doubt * 2)).any(), (
                "a seed that was not drawn"
            )

    def iterations(self) -> None:
        """One iteration of the loop: means, the objective, and empty clusters refilled."""
        if self.k > (self.w > 0).sum():
            return
        self.session.forget()
        start = self.given.centers.double()
        ran = self.session.run(LloydIterations(start, 0.0, 1, 0.0, 1.0))
        if ran is None:
            return
        labels, away = self.column("labels").copy(), Distances(self.given, self.given.centers)
        away.check_exact_labels(labels)
        masses = by_label(self.w, labels, self.k)
        if (masses <= 1e3 * self.mass_error).any() or self.given.data.directions:
            assert torch.isfinite(ran.centers).all()
            return
        expected = by_label(self.w[:, None] * self.given.rows, labels, self.k) / masses[:, None]
        error = (self.sums_error + self.mass_error * self.size.max()) / masses.min()
        close(ran.centers, expected, 2 * error, "iterations: centers")

    def relocation(self) -> None:
        """The objectives are those of the centers, and the new ones are of a partition."""
        rng, k = self.given.rng, self.k
        if k < 2 or self.given.data.directions:
            return
        start = self.given.centers.double()
        draws = NoiseDraws(int(rng.integers(2**31)), int(rng.integers(100)), 3)
        done = self.session.run(Relocation(start, int(rng.integers(1, 6)), draws))
        away = Distances(self.given, self.given.centers)
        off = self.w @ away.by_differences.max(axis=1) + 64 * self.n * U * (self.w @ away.least)
        close(done.before, self.w @ away.least, off + 1e-300, "relocation: before")
        assert torch.isfinite(done.centers).all()
        after = Distances(self.given, done.centers)
        found = float(self.w @ after.least)
        slack = self.w @ after.by_differences.max(axis=1) + off + 1e-6 * float(done.before)
        assert found <= done.after + slack, ("relocation: after", found, done.after)

    def splits(self) -> None:
        """Errors of clusters, points nearer to another point, and second nearest centers."""
        if self.k < 2 or self.given.data.directions:
            return
        away, rows = Distances(self.given, self.given.centers), np.arange(self.n)
        found = self.session.fold(ClusterErrors(self.given.centers))
        labels, distances = self.column("labels").copy(), self.column("distances").copy()
        away.check_labels(labels, 3 * away.expanded)
        own, off = away.squares[rows, labels], away.by_differences[rows, labels]
        close(distances, own, off, "errors: distances")
        self._by_cluster(found, labels, own, off, "errors")
        self._halves(labels, distances)
        found = self.session.fold(TwoNearest(self.given.centers))
        labels, second = self.column("labels").copy(), self.column("second").copy()
        away.check_labels(labels, 3 * away.expanded)
        assert (labels != second).all()
        order, off = np.sort(away.squares, axis=1), 3 * away.expanded.max(axis=1)
        close(away.squares[rows, second], order[:, 1], 2 * off, "two nearest: second")
        useful = away.squares[rows, second] - away.squares[rows, labels]
        self._by_cluster(found, labels, useful, 2 * off, "two nearest")

    def _by_cluster(self, found, labels, values, off, what: str) -> None:
        """Sums and masses of clusters, and a number of each point added up."""
        sums, masses, numbers = (v.numpy() for v in found)
        spread = 64 * self.n * U
        expected = by_label(self.w[:, None] * self.given.rows, labels, self.k)
        close(sums, expected, self.sums_error + 1e-300, f"{what}: sums")
        close(masses, by_label(self.w, labels, self.k), self.mass_error, f"{what}: masses")
        error = self.w @ (off + spread * np.abs(values)) + 1e-300
        close(numbers, by_label(self.w * values, labels, self.k), error, f"{what}: numbers")

    def _halves(self, labels, distances) -> None:
        """Two points for each of some clusters; a point as near to one may be in either half."""
        rng, k = self.given.rng, self.k
        count, place = min(k, 3), np.full(k, -1)
        place[rng.permutation(k)[:count]] = np.arange(count)
        drawn = self.given.rows[rng.integers(self.n, size=(count, 2))]
        points = torch.from_numpy(drawn).to(self.given.data.dtype)
        halves = self.session.fold(Halves(torch.from_numpy(place), points))
        near, mass, n_near, n_rest = (v.numpy() for v in halves)
        there = place[labels] >= 0
        for draw in range(2):
            to = Distances(self.given, points[:, draw])
            rows, places = np.flatnonzero(there), place[labels[there]]
            gap = to.squares[rows, places] - distances[rows].astype(float)
            unsure = np.abs(gap) <= 3 * to.by_differences[rows, places]
            w, x = self.w[rows] * (gap < 0), self.given.rows[rows]
            doubt = self.w[rows][unsure].sum() + self.mass_error
            close(mass[:, draw], by_label(w, places, count), doubt, "halves: masses")
            doubt = self.w[rows][unsure] @ self.size[rows][unsure] + self.sums_error + 1e-300
            close(near[:, draw], by_label(w[:, None] * x, places, count), doubt, "halves: sums")
            counted = (self.w[rows] > 0).astype(float)
            both = n_near[:, draw] + n_rest[:, draw]
            close(both, by_label(counted, places, count), 0, "halves: points")
            expected = by_label(counted * (gap < 0), places, count)
            close(n_near[:, draw], expected, unsure.sum(), "halves: near points")

    def mixtures(self) -> None:
        """Scores, responsibilities and sums of round components about the centers."""
        centers, d, k = self.given.centers, self.given.d, self.k
        away = Distances(self.given, centers)
        variance = float((self.given.rows**2).mean()) or 1.0
        joint = -away.squares / (2 * variance) - math.log(k)
        joint -= d / 2 * math.log(2 * math.pi * variance)
        likelihoods = logsumexp(joint, axis=1)
        shares = np.exp(joint - likelihoods[:, None])
        # of a score: products of rows and means lose more than differences
        off = (away.expanded + away.by_differences).max(axis=1) / variance
        off += 64 * self.given.eps * (d + np.abs(joint).max(axis=1))
        for covariance in ("full", "diag", "spherical") if d <= 40 else ("diag", "spherical"):
            kind = MixtureKind(covariance)
            given = Components.around(kind, centers.double(), variance)
            masses, sums, squares, likelihood = self.session.fold(MixtureSums(given))
            error = self.mass_error + float(self.w @ off)
            size = np.abs(likelihoods) + 1
            close(likelihood, self.w @ likelihoods, error + self.n * U * self.w @ size, "mixture")
            # responsibilities that a float cannot hold beside others count as none
            error = self.w @ np.expm1(np.minimum(2 * off, 1.0))
            error += self.mass_error + 2e-8 * self.w.sum()
            owned = self.w[:, None] * shares
            close(masses, owned.sum(axis=0), error, "mixture: masses")
            reach = math.sqrt(float(away.squares.max()))
            expected = owned.T @ self.given.rows - owned.sum(axis=0)[:, None] * away.centers
            lost = self.sums_error + float(self.w @ self.given.error)
            close(sums, expected, 2 * error * reach + lost, "mixture: sums")
            if covariance == "spherical":
                error = 2 * error * reach**2 + lost * reach
                error += self.w.sum() * (self.given.eps * self.size.max()) ** 2  # of equal rows
                close(squares, (owned * away.squares).sum(axis=0), error, "mixture: squares")
            (again,) = self.session.fold(MixtureLabels(given))
            close(
                again, likelihood, 64 * self.n * U * abs(float(likelihood)) + U, "mixture: labels"
            )
            labels, rows = self.column("labels"), np.arange(self.n)
            assert (joint[rows, labels] + 2 * off >= joint.max(axis=1)).all(), "not the best label"
            found = self.session.run(MixtureRows(given, "likelihoods"))
            if found is not None:
                close(found, likelihoods, off + 64 * self.given.eps * size, "mixture: rows")

    def draws(self) -> None:
        """The row of each center has the largest score plus noise, but for rounding."""
        rng, away = self.given.rng, Distances(self.given, self.given.centers)
        if not (self.w > 0).any():
            return
        separation = [None, 0.0, 0.7, 100.0][rng.integers(4)]
        seed, layer = int(rng.integers(2**63)), int(rng.integers(1000))
        before = self.column("previous").copy()
        found = self.session.fold(MedoidDraw(self.given.centers, separation, seed, layer))
        owned, best, rows, points, objective, changed = (v.numpy() for v in found)
        labels, each = self.column("labels"), np.arange(self.n)
        away.check_exact_labels(labels)
        own, off = away.squares[each, labels], away.by_differences[each, labels]
        close(self.column("distances"), own, off, "draw: distances")
        close(objective, self.w @ own, self.w @ (off + 64 * self.n * U * own) + 1e-300, "draw")
        assert changed == ((labels != before) & (self.w > 0)).sum()
        with np.errstate(divide="ignore"):
            noise = gumbel(seed, layer, "decoder_cross", self.k, torch.from_numpy(each)).numpy()
            scores = noise - away.squares.T + np.log(self.w)  # (k, n)
        strange = labels != np.arange(self.k)[:, None]
        has = ((~strange) & (self.w > 0)).any(axis=1)
        if separation is None:
            scores = np.where(strange & has[:, None], -np.inf, scores)
            assert np.array_equal(owned, has)
        else:
            scores = scores - 2 * separation * strange
        off = away.by_differences.T + 64 * U * (np.abs(noise) + 100 + 2 * (separation or 0))
        off = off + 64 * U * away.squares.T + 64 * U * np.abs(np.log(np.maximum(self.w, 1e-300)))
        at, j = rows.astype(int), np.arange(self.k)
        close(best, scores[j, at], off[j, at], "draw: best scores")
        assert ((scores - off).max(axis=1) <= scores[j, at] + off[j, at]).all(), "not the best row"
        close(points, self.given.rows[at], self.given.error[at, None] + 1e-300, "draw: points")

    def closest(self) -> None:
        away = Distances(self.given, self.given.centers)
        distances, rows = (v.numpy() for v in self.session.fold(NearestRows(self.given.centers)))
        at, j, there = rows.astype(int), np.arange(self.k), self.w > 0
        off = away.by_differences
        if not there.any():
            return
        assert there[at].all(), "a row without weight is no medoid"
        close(distances, away.squares[at, j], off[at, j], "closest: distances")
        least = (away.squares + off)[there].min(axis=0)
        assert (away.squares[at, j] - off[at, j] <= least).all()

    def oversample(self) -> None:
        """Rounds of k-means||: nearest candidates, their masses, and the rows that are drawn."""
        rng, most, known = self.given.rng, int(self.given.rng.integers(1, 9)), 0
        cut, seed = int(rng.integers(1, self.k + 1)), int(rng.integers(2**31))
        away = Distances(self.given, self.given.centers)
        each, spread = np.arange(self.n), 64 * self.n * U
        for number, stop in enumerate((cut, self.k)):
            fresh = self.given.centers[known:stop]
            found = self.session.fold(Oversampling(fresh, known, most, seed, number))
            mass, ratios, rows, attracted = (v.numpy() for v in found)
            known, labels = stop, self.column("labels")
            least, off = away.squares[:, :stop].min(axis=1), away.by_differences[:, :stop]
            stored, off = self.column("distances"), off.max(axis=1)
            close(stored, least, off, "oversample: distances")
            assert (away.squares[each, labels] <= least + 2 * off).all(), "oversample: labels"
            close(mass, self.w @ stored, spread * (self.w @ stored) + 1e-300, "oversample: mass")
            close(attracted, by_label(self.w, labels, stop), self.mass_error, "oversample")
            draws = row_uniform(seed, number, 0, self.n).numpy()
            expected = most * self.w * stored.astype(float) / draws
            near = np.abs(expected - mass) <= spread * (expected + mass)
            drawn = np.isin(each, rows.astype(int))
            assert (near | (drawn == (expected > mass))).all(), "oversample: drawn rows"
            close(ratios, expected[rows.astype(int)], 1e-12 * expected.max() + 1e-300, "ratios")

    def minibatch(self) -> None:
        """Sums, counts and squared distances of some rows, in any order and more than once."""
        rows = self.given.rng.integers(self.n, size=int(self.given.rng.integers(1, 1500)))
        away, x = Distances(self.given, self.given.centers), self.given.rows[rows]
        found, total = self.session.run(MinibatchSums(torch.from_numpy(rows), self.given.centers))
        least = away.least[rows]
        off = 2 * away.by_differences.max(axis=1)[rows] + 64 * len(rows) * U * least
        close(total, least.sum(), off.sum() + 1e-300, "minibatch: squares")
        order = np.sort(away.squares, axis=1)
        apart = order[:, min(1, self.k - 1)] - order[:, 0]
        sure = (apart > 2 * away.exactly.max(axis=1))[rows] | (self.k == 1)
        labels, doubt = away.squares.argmin(axis=1)[rows], float((~sure).sum())
        close(found.masses, by_label(np.ones(len(rows)), labels, self.k), doubt, "minibatch")
        size = self.size[rows]
        error = 64 * len(rows) * U * size.sum() + self.given.error[rows].sum() + size[~sure].sum()
        close(found.sums, by_label(x, labels, self.k), error + 1e-300, "minibatch: sums")
