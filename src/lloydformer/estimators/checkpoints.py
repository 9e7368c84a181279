"""Checkpoints of a fit: a file from which a fit that was killed goes on, to the same bits."""

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks, count_weighted
from lloydformer.engines import default_engine
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.parts import Holder, InProcess, Opening, PartRows, PartsBlocks
from lloydformer.engines.parts.answer_log import AnswerLog, Entry
from lloydformer.engines.parts.session import PartsSession
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.estimators.shard_reports import shared_parameters
from lloydformer.estimators.source import Source
from lloydformer.estimators.starts import Starts
from lloydformer.plans.assign import Moments
from lloydformer.plans.session import Session
from lloydformer.storage.atomic import replacing
from lloydformer.storage.pickles import pickled, unpickled_data

_HEAD = b"lloydformer checkpoint 1\n"
"""Begins the file; another number when entries change their form."""
_SHARE = 20
"""Writing takes at most one part of this many of the time of a fit."""


def path_of(estimator: Any) -> Path | None:
    """The file of the parameter `checkpoint`; classes of other packages may not have it."""
    given = getattr(estimator, "checkpoint", None)
    return None if given is None else Path(given).expanduser().absolute()


def refuse_checkpoint(estimator: Any, reason: str) -> None:
    """Raise `ValueError` if a checkpoint is wanted where there can be none."""
    if path_of(estimator) is not None:
        raise ValueError(f"checkpoint: {reason}; leave it at None")


def in_parts(estimator: Any, source: Source) -> Source:
    """The source, for a fit with a checkpoint as data in parts; rows are not copied.

    The answers of parts are what a checkpoint is made of.
    """
    if path_of(estimator) is None or isinstance(source.blocks, PartsBlocks):
        return source
    if getattr(estimator, "time_limit", None) is not None:
        refuse_checkpoint(estimator, "a fit with time_limit cannot be repeated")
    blocks = source.blocks
    if not isinstance(blocks, TensorBlocks) or blocks.layout.device.type != "cpu":
        refuse_checkpoint(estimator, "it is for dense rows on the CPU, in one process or several")
    assert isinstance(blocks, TensorBlocks)
    engine = default_engine() if estimator.engine == "auto" else estimator.engine
    layout, k = blocks.layout, int(estimator.n_clusters)
    opening = Opening.of(blocks, engine, single=in_one_call(layout.n_rows, layout.n_features, k))
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
    session.answer_log = AnswerLog(entries, changed, session.nodes())
    try:
        yield
    except BaseException:
        if source.is_first:
            file.write()
        raise
    if source.is_first:
        path.unlink(missing_ok=True)


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
            self.write()

    def write(self) -> None:
        """Write atomically: a file is there in whole, the old one or the new one."""
        began = perf_counter()
        content = self._what, self._draws, self._entries
        try:
            with replacing(self.path) as file:
                file.write(_HEAD + pickled(content))
        except OSError as error:
            raise OSError(
                f"checkpoint: cannot write {self.path} ({error.strerror}); pass another path"
            ) from None
        self._ended = perf_counter()
        self._took = self._ended - began


def _read(path: Path, what: _Fit) -> tuple[Any, list[Entry]] | None:
    """Draws and entries of a checkpoint; None if there is none. That of another fit raises."""
    try:
        content = path.read_bytes()
        if not content.startswith(_HEAD):
            raise ValueError("it is no checkpoint")
        other, draws, entries = unpickled_data(content[len(_HEAD) :])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, EOFError, AttributeError,
            pickle.UnpicklingError) as error:  # fmt: skip
        raise ValueError(
            f"checkpoint: cannot read {path} ({error}); remove it, or pass another path"
        ) from None
    _compare(path, other, what)
    return draws, entries


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
    if isinstance(estimator.random_state, int):
        found["random_state"] = estimator.random_state
    if starts.given is not None:  # also those of warm_start
        found["init"] = starts.given.cpu().numpy()
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    kind = np.float64 if value.dtype.kind in "biufO" else value.dtype
    return f"array {_digest(np.asarray(value, dtype=kind).tobytes())}"


def _fingerprint(session: PartsSession) -> str:
    """A digest of the data: their layout, the ends of their columns, sums and squares."""
    layout = session.layout
    shape = (layout.n_rows, layout.n_features, str(layout.dtype), layout.leaf, layout.weight_unit)
    moments = [moment.double().reshape(-1) for moment in session.fold(Moments())]
    numbers = torch.cat([session.opening.ends.double().reshape(-1), *moments])
    return _digest(repr(shape).encode() + numbers.numpy().tobytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
