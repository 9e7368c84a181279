"""The parts of a fit: its context, one run from initial centers, and the progress of a run.

An `AlgorithmRun` knows one algorithm: how to advance by an iteration and how to finish. Everything
around it (restarts, history, callback, Ctrl-C, deadline, checkpoint) belongs to the driver
(`solving/driver.py`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.assign import Moments, NormExponents
from lloydformer.plans.contract import Certificate, Plan
from lloydformer.plans.session import Session
from lloydformer.solving.rules import Rules


@dataclass(frozen=True)
class Progress:
    """One iteration of a fit, as it is passed to `callback`.

    Parameters
    ----------
    start : int
        The number of the start, counted from 0.
    iteration : int
        The number of the iteration, counted from 0.
    objective : float
        The objective of the centers that the iteration began with.
    shift : float
        Sum of the squared distances that the centers moved.
    n_points : int, default=0
        Number of points that the iteration used.
    seconds : float, default=0.0
        Duration of the iteration.

    See Also
    --------
    ProgressBar : A callback that shows a bar.

    Examples
    --------
    >>> import lloydformer as lf
    >>> def show(progress: lf.Progress) -> None:
    ...     print(progress.iteration, progress.objective)
    >>> model = lf.KMeans(2, init=[[0.0], [8.0]], callback=show).fit([[0.0], [2.0], [8.0]])
    0 4.0
    1 2.0
    """

    start: int
    iteration: int
    objective: float
    shift: float
    n_points: int = 0
    seconds: float = 0.0


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome:
    """The result of one run; its labels are in the session until the next fold.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The final centers, in float64, relative to the data's origin.
    inertia : float
        The inertia of these centers.
    history : tuple of float
        The objective before each iteration, and at the end.
    rows : Tensor of shape (k,) or None
        The data rows that the centers are equal to, in plans that draw medoids.
    masses : tuple of float or None
        The weight of the points of each cluster, in plans whose centers are running means.
    n_steps : int or None
        Number of mini-batches; None if every iteration used all rows.
    certificate : Certificate or None
        As in `FinalAssignment`.
    """

    centers: Tensor
    inertia: float
    history: tuple[float, ...]
    rows: Tensor | None = None
    masses: tuple[float, ...] | None = None
    n_steps: int | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class FitContext:
    """The parts of a fit that all its runs share.

    Attributes
    ----------
    plan : Plan
        The plan whose iterations are run.
    session : Session
        The data, opened by an engine.
    rules : Rules
        When the iterations stop, and what happens to empty clusters.
    tolerance : float
        A run stops when the sum of the squared shifts of the centers is at most this.
    watched : bool
        No engine call may run many iterations: each one is followed by a callback or by a look at
        the deadline.
    deadline : float
        No iteration begins after this time of `time.perf_counter`.
    """

    plan: Plan
    session: Session
    rules: Rules
    tolerance: float
    watched: bool = False
    deadline: float = math.inf

    @classmethod
    def create(
        cls,
        plan: Plan,
        session: Session,
        rules: Rules,
        *,
        watched: bool = False,
        deadline: float = math.inf,
    ) -> "FitContext":
        """Measure the data once: for the tolerance of the stop rule and the plan's objective."""
        square, tolerance = measure_moments(session, rules.tol)
        if rules.typical and tolerance > 0:
            tolerance = min(tolerance, rules.tol * TYPICAL * typical_variance(session))
        watched = watched or deadline < math.inf
        return cls(plan.with_square_sum(square), session, rules, tolerance, watched, deadline)

    @property
    def is_late(self) -> bool:
        """True after the deadline."""
        return perf_counter() >= self.deadline

    def finish_at(
        self,
        centers: Tensor,
        history: Sequence[float],
        rows: Tensor | None = None,
        n_steps: int | None = None,
    ) -> Outcome:
        """Label the points for the last time, by the centers as users will get them."""
        # Rounded first: labels and inertia must be those of the centers that users get, for which
        # `predict` on the same rows gives the same labels.
        layout = self.session.layout
        final = layout.round_centers(centers)
        returned = layout.to_exact_units(layout.to_data_units(final))
        last = self.plan.finish(self.session, final.to(layout.dtype), returned)
        ends = (*history, last.objective)
        return Outcome(final, last.inertia, ends, rows, last.masses, n_steps, last.certificate)


def measure_moments(session: Session, tol: float) -> tuple[float, float]:
    """Return the sum of w |x|^2, and scikit-learn's tolerance: tol times the mean variance."""
    moments = session.fold(Moments())
    if moments[0].device.type == "cpu":  # NumPy needs fewer microseconds for few numbers
        weighted, count, plain, sums = (moment.numpy() for moment in moments)
        square, variance = float(weighted), float(plain / count - np.square(sums / count).sum())
    else:  # one synchronisation with the GPU
        weighted, count, plain, sums = moments
        variance = plain / count - (sums / count).square().sum()
        square, variance = torch.stack([weighted, variance]).tolist()
    return square, tol * max(variance, 0.0) / session.layout.n_features


# Mean variances up to this multiple of `typical_variance` are not reduced, so that data without
# heavy tails keep scikit-learn's tolerance, and their bits: for normal, uniform and clustered rows
# and for real sets without outliers the ratio is at most 2.2; for unscaled sets with heavy tails
# (shuttle, page-blocks, jm1, eeg-eye-state, mc1) it is 47 to 1e8. On these five (float32, k 20 and
# 100, five seeds), RelocatingKMeans ends at most 0.03 % above the local minimum that it is in; with
# the mean variance, 0.16 %. KMeans (k 10, 20 and 100) ends on average at most 0.1 % above tol=0
# from the same start; with the mean variance, 6 %, and 309 % from the first rows of a set.
TYPICAL = 4.0


def typical_variance(session: Session) -> float:
    """Return the median of |x|^2, rounded up to a power of two, divided by d.

    Rows are relative to the session's origin, a median (sparse rows to 0), so that this is about
    the mean variance of the columns where no row is far away from the others.
    """
    (counts,) = session.fold(NormExponents())
    return NormExponents.median(counts) / session.layout.n_features


class HistoryRecorder:
    """The history of one run; passes each iteration to the callback.

    Objectives are in the unit of the session's weights; callbacks get them in that of the user.
    """

    def __init__(self, fit: FitContext, restart: int, callback: Callback | None = None) -> None:
        self.history: list[float] = []
        self.callback = callback
        self._layout, self._restart = fit.session.layout, restart
        self._last = perf_counter()

    def record(self, objective: float, shift: float, count: int = 1) -> None:
        """Add an iteration; `count`: the number of iterations that it counts for."""
        seconds = (perf_counter() - self._last) / count
        for _ in range(count):
            self.history.append(objective)
            number = len(self.history) - 1
            self.notify(number, objective, shift, self._layout.n_rows, seconds)
        self._last = perf_counter()  # after the callback, whose time is not the iteration's

    def notify(
        self, number: int, objective: float, shift: float, n_points: int, seconds: float
    ) -> None:
        """Call the callback, if there is one."""
        if self.callback is not None:
            given = objective * self._layout.weight_unit
            self.callback(Progress(self._restart, number, given, shift, n_points, seconds))


@runtime_checkable
class AlgorithmRun(Protocol):
    """One run of an algorithm from initial centers: it advances until it is done, then finishes.

    Attributes
    ----------
    done : bool
        The run is over: by its stop rule, or by its number of iterations.
    silent : bool
        Its iterations are not passed to the callback.
    """

    @property
    def done(self) -> bool: ...

    @property
    def silent(self) -> bool: ...

    def advance(self, recorder: HistoryRecorder) -> None:
        """Run the next iteration (or several, unless `FitContext.watched`) and record it.

        After an exception, `finish` and `state` are still those of the last whole iteration.
        """

    @property
    def can_finish(self) -> bool:
        """True if `finish` has something to return; read after an interrupt."""

    def finish(self, history: list[float]) -> Outcome:
        """Label the points by the centers of this run; also before it is done."""

    def state(self) -> Any:
        """Return what `restore` needs to continue at this iteration: small values."""

    def restore(self, state: Any) -> None:
        """Continue where the run of `state` was."""

    @property
    def depends_on_session(self) -> bool:
        """True if the next iteration depends on what the session remembers of each point."""


@runtime_checkable
class FitAlgorithm(Protocol):
    """Makes the runs of each restart.

    Attributes
    ----------
    n_starts : int
        Number of initial centers that one restart uses; more than 1 for a pool of solutions.
    """

    @property
    def n_starts(self) -> int: ...

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        """Yield the runs of a restart; the best of their outcomes counts.

        starts: yields initial centers (k, d) in float64; computed lazily.
        """
