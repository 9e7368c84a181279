"""Checkpoints of a fit: a file from which a fit that was killed goes on, to the same bits."""

import hashlib
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from lloydformer.data.blocks import TensorBlocks, count_weighted
from lloydformer.engines import choose
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.parts import Holder, InProcess, Opening, PartRows, PartsBlocks
from lloydformer.engines.parts.answer_log import AnswerLog, Entry
from lloydformer.engines.parts.session import PartsSession
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.estimators.shard_reports import shared_parameters
from lloydformer.estimators.source import Source
from lloydformer.estimators.starts import Starts
from lloydformer.plans.row_hashes import RowHashes
from lloydformer.plans.session import Session
from lloydformer.storage.atomic import replacing
from lloydformer.storage.pickles import pickled, unpickled_data

_HEAD = b"lloydformer checkpoint 2\n"
"""Begins the file; another number when entries change their form. A checksum follows."""
_SHARE = 20
"""Write only if at least this many times the duration of the last write has passed since."""


def path_of(estimator: Any) -> Path | None:
    """The file of the parameter `checkpoint`; classes of other packages may not have it."""
    given = getattr(estimator, "checkpoint", None)
    return None if given is None else Path(given).expanduser().absolute()


def refuse_checkpoint(estimator: Any, reason: str) -> None:
    """Raise `ValueError` if a checkpoint is wanted where there can be none."""
    if path_of(estimator) is not None:
        raise ValueError(f"checkpoint: {reason}; leave it at None")


def in_parts(estimator: Any, source: Source) -> Source:
    """Wrap rows in memory as one part, so that the session can log answers; rows are not copied.

    Without a checkpoint the source stays as it is.
    """
    path, blocks = path_of(estimator), source.blocks
    if path is None:
        return source
    if path.is_dir():
        raise ValueError(f"checkpoint: found {path}, which is a folder; pass the path of a file")
    if getattr(estimator, "time_limit", None) is not None:
        refuse_checkpoint(estimator, "a fit with time_limit cannot be repeated")
    if isinstance(blocks, PartsBlocks):
        return source
    if not isinstance(blocks, TensorBlocks) or blocks.layout.device.type != "cpu":
        refuse_checkpoint(estimator, "it is for dense rows on the CPU, in one process or several")
    assert isinstance(blocks, TensorBlocks)
    layout, k = blocks.layout, int(estimator.n_clusters)
    single = in_one_call(layout.n_rows, layout.n_features, k)
    opening = Opening.of(blocks, choose(estimator.engine, blocks).name, single=single)
    holder = Holder(opening, allowed_threads(), layout.n_rows)
    holder.add(0, PartRows(0, blocks.points, blocks.sample_weight))
    parts = PartsBlocks(opening, InProcess([holder]), count_weighted(blocks))
    return replace(source, blocks=parts)


@contextmanager
def checkpointed(
    estimator: Any, source: Source, session: Session, starts: Starts, rng: np.random.RandomState
) -> Iterator[None]:
    """Record a fit, and begin where one that was killed has ended.

    The file is removed when the fit has ended well. Random numbers continue those of that fit.
    """
    path = path_of(estimator)
    if path is None:
        yield
        return
    assert isinstance(session, PartsSession)
    what = _Fit(_settings(estimator, starts), _fingerprint(session))
    draws, entries = source.on_first(lambda: _read(path, what)) or (rng.get_state(), [])
    rng.set_state(draws)
    file = CheckpointFile(path, what, draws, entries)
    source.on_first(file.write)  # a path that cannot be written raises now
    changed = file.offer if source.is_first else lambda: None
    session.answer_log = AnswerLog(entries, changed)
    try:
        yield
    except BaseException as error:
        if source.is_first:
            file.write_last(error)
        raise
    if source.is_first:
        file.remove()


@dataclass(frozen=True)
class _Fit:
    """What a checkpoint belongs to: the parameters of the estimator, and a digest of the data."""

    settings: dict[str, Any]
    data: str


class CheckpointFile:
    """Writes a checkpoint: the draws at the beginning of the fit, and its entries so far."""

    def __init__(self, path: Path, what: _Fit, draws: Any, entries: list[Entry]) -> None:
        self.path, self._what, self._draws, self._entries = path, what, draws, entries
        self._ended, self._took = perf_counter(), 0.0

    def offer(self) -> None:
        """Write, unless the last time was so short ago that writing would slow down the fit."""
        if perf_counter() - self._ended >= _SHARE * self._took:
            try:
                self.write()
            except OSError as error:
                self._warn(error)

    def write_last(self, stop: BaseException) -> None:
        """Write before an error ends the fit; a failure is a note of that error."""
        try:
            self.write()
        except OSError as error:
            stop.add_note(str(error))

    def remove(self) -> None:
        """Remove the file of a fit that has ended."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"checkpoint: cannot remove {self.path} ({error.strerror})")

    def _warn(self, problem: object) -> None:
        warnings.warn(f"{problem}; the fit goes on", RuntimeWarning, stacklevel=2)

    def write(self) -> None:
        """Write atomically: a file is there in whole, the old one or the new one."""
        began = perf_counter()
        content = pickled((self._what, self._draws, self._entries))
        try:
            with replacing(self.path) as file:
                file.write(_HEAD + hashlib.sha256(content).digest() + content)
        except OSError as error:
            raise OSError(
                f"checkpoint: cannot write {self.path} ({error.strerror}); pass another path"
            ) from None
        self._ended = perf_counter()
        self._took = self._ended - began


def _read(path: Path, what: _Fit) -> tuple[Any, list[Entry]] | None:
    """Draws and entries of a checkpoint; None if there is none. That of another fit raises."""
    try:
        other, draws, entries = unpickled_data(_checked(path.read_bytes()))
        if not isinstance(other, _Fit):
            raise ValueError("it is no checkpoint")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, EOFError, AttributeError,
            pickle.UnpicklingError) as error:  # fmt: skip
        raise ValueError(
            f"checkpoint: cannot read {path} ({error}); remove it, or pass another path"
        ) from None
    _compare(path, other, what)
    return draws, entries


def _checked(content: bytes) -> bytes:
    """What stands behind the checksum of a file; raises `ValueError` unless it is as written."""
    if not content.startswith(_HEAD):
        raise ValueError("it is no checkpoint of this version")
    checksum, rest = content[len(_HEAD) :][:32], content[len(_HEAD) + 32 :]
    if hashlib.sha256(rest).digest() != checksum:
        raise ValueError("it is damaged")
    return rest


def _compare(path: Path, other: _Fit, what: _Fit) -> None:
    for name in {**other.settings, **what.settings}:
        before, now = other.settings.get(name), what.settings.get(name)
        if before != now:
            raise ValueError(
                f"checkpoint: {path} was written by a fit with {name}={before!r}, and here it is "
                f"{now!r}; pass the same parameters, or another path"
            )
    if other.data != what.data:
        raise ValueError(
            f"checkpoint: {path} was written by a fit of other rows or weights; pass the same "
            "data, or another path"
        )


def _settings(estimator: Any, starts: Starts) -> dict[str, Any]:
    """Parameters as plain values; arrays by a digest."""
    found = shared_parameters(estimator)
    found.pop("checkpoint", None)
    if isinstance(estimator.random_state, Integral):
        found["random_state"] = int(estimator.random_state)
    if starts.given is not None:  # also those of warm_start
        found["init"] = starts.given.cpu().numpy()
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    kind = np.float64 if value.dtype.kind in "biufO" else value.dtype
    return f"array {_digest(np.asarray(value, dtype=kind).tobytes())}"


def _fingerprint(session: PartsSession) -> str:
    """A digest of the data: their layout, the ends of their columns, and all rows and weights."""
    layout = session.layout
    shape = (layout.n_rows, layout.n_features, str(layout.dtype), layout.leaf, layout.weight_unit)
    (rows,) = session.fold(RowHashes())
    ends = session.opening.ends.double().numpy().tobytes()
    return _digest(repr((*shape, rows.item())).encode() + ends)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
