"""Checkpoints: the state of a fit in a file, from which an interrupted fit resumes.

The state is small, whatever the number of rows: the initial centers of all restarts, the best
result so far, and of the current run its centers, its history and what the session cannot compute
again. Labels are computed again by one pass over the rows. The result of a resumed fit is
bit-identical to that of an uninterrupted one. Where the state of the points cannot be restored to
the bit (small data that one engine call solves, see `PartitionedSession.snapshot`), it resumes at
the beginning of the current run.
"""

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.storage.atomic_files import atomic_write
from lloydformer.data.storage.pickles import dump_data, load_data
from lloydformer.engines.partitioned.session import PartitionedSession
from lloydformer.numerics.checks import ArgumentError
from lloydformer.plans.session import Fold
from lloydformer.solving.run import AlgorithmRun, HistoryRecorder, Outcome
from lloydformer.user_warnings import warn_user

# Begins the file. The number changes when `FitState` or its values change; a checksum follows.
_HEAD = b"lloydformer checkpoint 3\n"
# Write only if at least this many times the duration of the last write has passed since then, so
# that writing takes at most 5 % of the time of a fit.
_PAUSE = 20
# Errors of reading a file that is not a checkpoint, and of unpickling values of another version.
_UNREADABLE = OSError, ValueError, TypeError, EOFError, AttributeError, pickle.UnpicklingError


@dataclass(frozen=True)
class FitIdentity:
    """The identity of a fit: its parameters as plain values, and a digest of its data."""

    settings: dict[str, Any]
    data: str


@dataclass
class FitState:
    """Everything that a fit needs to resume.

    Attributes
    ----------
    draws : object
        State of the random number generator at the beginning of the fit.
    draws_after_starts : object
        Its state when the last of `starts` had been made.
    starts : list of Tensor
        The initial centers that have been made.
    restart, run_number : int
        The current restart, and the current run in it.
    run, session : object
        State of the current run and of the session; None at its beginning.
    history : list of float
        The objectives of the current run.
    best : Outcome or None
        The best outcome so far.
    best_labels : tuple of Fold
        The folds that compute its labels.
    """

    draws: Any
    draws_after_starts: Any = None
    starts: list[Tensor] = field(default_factory=list)
    restart: int = 0
    run_number: int = 0
    run: Any = None
    session: Any = None
    history: list[float] = field(default_factory=list)
    best: Outcome | None = None
    best_labels: tuple[Fold, ...] = ()


class FitCheckpoint:
    """Saves the state of a fit as it proceeds, and restores that of an interrupted one.

    Parameters
    ----------
    session : PartitionedSession
        The session of the fit.
    rng : RandomState
        The random numbers of the fit; they continue those of the interrupted fit.
    state : FitState or None
        The state of the interrupted fit; None for a new one.
    file : CheckpointFile or None
        The file that the state is written to; None on ranks other than the first.
    reseeds : bool
        Recompute the initial centers, and restart the fit if they differ from the saved ones. For
        a callable `init`, which can only be compared by its results.
    """

    def __init__(
        self,
        session: PartitionedSession,
        rng: np.random.RandomState,
        state: FitState | None,
        file: "CheckpointFile | None",
        *,
        reseeds: bool = False,
    ) -> None:
        self._session, self._rng, self._file, self._reseeds = session, rng, file, reseeds
        self._state = FitState(rng.get_state()) if state is None else state
        self._rng.set_state(self._state.draws)

    @property
    def state(self) -> FitState:
        """The last state that was saved."""
        return self._state

    def initial_centers(self, seeding: Iterator[Tensor], count: int) -> Iterator[Tensor]:
        """Return the `count` initial centers of all restarts: the saved ones, then new ones.

        New ones are made when they are asked for, as in a fit without a checkpoint: an interrupt
        keeps the results of earlier restarts.
        """
        state = self._state
        if len(state.starts) == count and not self._reseeds:
            self._rng.set_state(state.draws_after_starts)
            return iter(state.starts)
        # If some are missing, the saved ones are made again as well: the random numbers of all of
        # them may be drawn together.
        again = list(islice(seeding, len(state.starts)))
        if not all(map(torch.equal, again, state.starts)):
            # Other initial centers make another fit, so everything that was saved is dropped.
            self._state = FitState(state.draws, self._rng.get_state(), again)
            self._save()
        return chain(again, self._save_starts(seeding))

    def _save_starts(self, seeding: Iterator[Tensor]) -> Iterator[Tensor]:
        """Yield initial centers, each saved when it is made."""
        for centers in seeding:
            self._state.starts.append(centers)
            self._state.draws_after_starts = self._rng.get_state()
            self._save()
            yield centers

    @property
    def position(self) -> tuple[int, int]:
        """The restart and the run in it where the interrupted fit was."""
        return self._state.restart, self._state.run_number

    @property
    def best(self) -> tuple[Outcome, tuple[Fold, ...]] | None:
        """The best outcome of the interrupted fit, and the folds that compute its labels."""
        return None if self._state.best is None else (self._state.best, self._state.best_labels)

    def restore_run(self, run: AlgorithmRun, recorder: HistoryRecorder) -> None:
        """Continue the run that was interrupted."""
        state = self._state
        if state.run is None:
            return
        # The session last: a run may reset it when it begins again, as the polish of learned steps.
        run.restore(state.run)
        if state.session is not None:
            self._session.restore(state.session)
        recorder.history += state.history

    def save_run(
        self, restart: int, number: int, run: AlgorithmRun, recorder: HistoryRecorder
    ) -> None:
        """Save the state of a run after an iteration."""
        snapshot = self._session.snapshot() if run.depends_on_session else None
        # Without a snapshot nothing is saved: the last complete state, which is in general the
        # beginning of this run, stays the one that a fit resumes at.
        if run.depends_on_session and snapshot is None:
            return
        state = self._state
        state.restart, state.run_number = restart, number
        state.run, state.session, state.history = run.state(), snapshot, recorder.history
        self._save()

    def save_result(
        self, restart: int, number: int, best: Outcome, best_labels: tuple[Fold, ...]
    ) -> None:
        """Save the best outcome after a run has finished; the next run comes next."""
        state = self._state
        state.best, state.best_labels = best, best_labels
        state.restart, state.run_number = restart, number + 1
        state.run, state.session, state.history = None, None, []
        self._save()

    def _save(self) -> None:
        if self._file is not None:
            self._file.offer(self._state)


class CheckpointFile:
    """The file of a checkpoint; written atomically, so there is a whole one at any time."""

    def __init__(self, path: Path, identity: FitIdentity, kind: type[Any] = FitState) -> None:
        """kind: the class of the states."""
        self.path, self._identity, self._kind = path, identity, kind
        self._content = b""
        self._ended, self._took = perf_counter(), 0.0

    def read(self) -> Any | None:
        """Return the state of an interrupted fit; None if there is no file.

        Raises
        ------
        ValueError
            If the file is not a checkpoint, is damaged, or belongs to another fit.
        """
        try:
            content = self.path.read_bytes()
            if not content.startswith(_HEAD):
                raise ValueError("it is not a checkpoint of this version")
            # The checksum comes first: unpickling a damaged file may do anything.
            checksum, content = content[len(_HEAD) :][:32], content[len(_HEAD) + 32 :]
            if hashlib.sha256(content).digest() != checksum:
                raise ValueError("it is damaged")
            identity, state = load_data(content)
            if not isinstance(identity, FitIdentity) or not isinstance(state, self._kind):
                raise ValueError("it is not a checkpoint")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except _UNREADABLE as error:
            raise ArgumentError(
                "checkpoint", f"cannot read {self.path} ({error}); remove it, or pass another path"
            ) from None
        # After the `try`: its own errors say more than that the file cannot be read.
        self._check_identity(identity)
        return state

    def offer(self, state: Any) -> None:
        """Write, unless the last write was so short ago that writing would slow down the fit."""
        # Pickled at once: later iterations change the objects that the state refers to.
        self._content = dump_data((self._identity, state))
        if perf_counter() - self._ended >= _PAUSE * self._took:
            try:
                self._write()
            except OSError as error:
                self._warn(error)

    def write_first(self, state: Any) -> None:
        """Write before the fit begins, so that a path that cannot be written raises now."""
        self._content = dump_data((self._identity, state))
        self._write()

    def write_last(self, stop: BaseException) -> None:
        """Write the last state before an error ends the fit; a failure is a note of that error."""
        try:
            self._write()
        except OSError as error:
            stop.add_note(str(error))

    def remove(self) -> None:
        """Remove the file of a fit that has ended."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"checkpoint: cannot remove {self.path} ({error.strerror})")

    def _write(self) -> None:
        began = perf_counter()
        try:
            with atomic_write(self.path) as file:
                file.write(_HEAD + hashlib.sha256(self._content).digest() + self._content)
        except OSError as error:
            raise OSError(
                f"checkpoint: cannot write {self.path} ({error.strerror}); pass another path"
            ) from None
        self._ended = perf_counter()
        self._took = self._ended - began

    def _warn(self, problem: object) -> None:
        warn_user(f"{problem}; the fit continues", RuntimeWarning)

    def _check_identity(self, other: FitIdentity) -> None:
        """Raise `ValueError` if the file was written by a fit of other parameters or data."""
        settings = self._identity.settings
        for name in {**other.settings, **settings}:
            before, now = other.settings.get(name), settings.get(name)
            if before != now:
                raise ArgumentError(
                    "checkpoint",
                    f"{self.path} was written by a fit with {name}={before!r}, and here it is "
                    f"{now!r}; pass the same parameters, or another path",
                )
        if other.data != self._identity.data:
            raise ArgumentError(
                "checkpoint",
                f"{self.path} was written by a fit of other rows or weights; pass the same data, "
                "or another path",
            )
