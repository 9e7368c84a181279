"""The parameter `checkpoint`: which fits support it, and how a file is matched to its fit.

`solving/checkpoint.py` has the state that is saved, and the file.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lloydformer.data.array_api import to_tensor
from lloydformer.data.blocks import TensorBlocks, count_positive_weights
from lloydformer.engines import choose
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.partitioned import (
    InProcessTransport,
    PartitionedBlocks,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
)
from lloydformer.engines.partitioned.session import PartitionedSession
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.estimators.initial_centers import InitialCenters
from lloydformer.estimators.shards import shared_parameters
from lloydformer.estimators.source import Source
from lloydformer.numerics.checks import ArgumentError, RefusedArgumentError
from lloydformer.plans.row_hashes import RowHashes
from lloydformer.plans.session import Session
from lloydformer.solving.checkpoint import CheckpointFile, FitCheckpoint, FitIdentity
from lloydformer.solving.mixtures import SearchState


def refuse_checkpoint(estimator: Any, reason: str) -> None:
    """Raise `ValueError` if `checkpoint` is set in a fit that does not support it."""
    if getattr(estimator, "checkpoint", None) is not None:
        raise RefusedArgumentError("checkpoint", reason)


def open_as_partition(estimator: Any, source: Source) -> Source:
    """Wrap rows in memory as one partition; rows are not copied.

    The session of partitions records how to compute the state of the points again, which a
    resumed fit needs. Raises `ValueError` for data without checkpoints.
    """
    path, blocks = Path(estimator.checkpoint).expanduser().absolute(), source.blocks
    _refuse_folder(path)
    if getattr(estimator, "time_limit", None) is not None:
        refuse_checkpoint(estimator, "a fit with time_limit cannot be repeated")
    if isinstance(blocks, PartitionedBlocks):
        return source
    if not isinstance(blocks, TensorBlocks) or blocks.layout.device.type != "cpu":
        refuse_checkpoint(estimator, "it is for dense rows on the CPU, in one process or several")
    assert isinstance(blocks, TensorBlocks)
    layout, k = blocks.layout, int(estimator.n_clusters)
    single = in_one_call(layout.n_rows, layout.n_features, k)
    engine = choose(estimator.engine, blocks).name
    spec = PartitionSpec.for_blocks(blocks, engine, single=single)
    store = PartitionStore(spec, allowed_threads(), layout.n_rows)
    store.partitions[0] = store.open(PartitionRows(0, blocks.points, blocks.sample_weight))
    transport = InProcessTransport([store])
    partitioned = PartitionedBlocks(spec, transport, count_positive_weights(blocks))
    return replace(source, blocks=partitioned)


@contextmanager
def open_checkpoint(
    estimator: Any,
    source: Source,
    session: Session,
    initial: InitialCenters,
    rng: np.random.RandomState,
) -> Iterator[FitCheckpoint]:
    """Open the checkpoint of a fit; its file is removed when the fit has ended well.

    With ranks the first one reads and writes the file, and all of them get its state.
    """
    assert isinstance(session, PartitionedSession)
    # also those of warm_start
    given = {} if initial.given is None else {"init": initial.given.cpu().numpy()}
    identity = _identify(estimator, session, given, session.spec.ends)
    file = CheckpointFile(Path(estimator.checkpoint).expanduser().absolute(), identity)
    state = source.on_first(file.read)
    written = file if source.is_first else None
    checkpoint = FitCheckpoint(session, rng, state, written, reseeds=callable(estimator.init))
    source.on_first(lambda: file.write_first(checkpoint.state))
    try:
        yield checkpoint
    except BaseException as error:
        if source.is_first:
            file.write_last(error)
        raise
    if source.is_first:
        file.remove()


@contextmanager
def open_search_checkpoint(
    estimator: Any, session: Session
) -> Iterator[tuple[SearchState, Callable[[SearchState], None] | None]]:
    """Open the checkpoint of a mixture, if it has one; its file is removed at the end of the fit.

    Yields the state to begin with, and what saves a state.
    """
    if estimator.checkpoint is None:
        yield SearchState(), None
        return
    path = Path(estimator.checkpoint).expanduser().absolute()
    _refuse_folder(path)
    given = dict[str, np.ndarray]()
    if estimator.warm_start and hasattr(estimator, "means_"):
        for name in ("weights_", "means_"):
            given[name] = to_tensor(getattr(estimator, name)).cpu().numpy()
    identity = _identify(estimator, session, given, session.layout.origin)
    file = CheckpointFile(path, identity, SearchState)
    state = file.read() or SearchState()
    file.write_first(state)
    try:
        yield state, file.offer
    except BaseException as error:
        file.write_last(error)
        raise
    file.remove()


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise ArgumentError(
            "checkpoint", f"found {path}, which is a folder; pass the path of a file"
        )


def _identify(
    estimator: Any, session: Session, given: dict[str, np.ndarray], ends: Tensor
) -> FitIdentity:
    """Return the parameters and a digest of the data that a checkpoint belongs to.

    given: values of a start that is no parameter. ends: numbers that depend on all columns.
    """
    # Another fit must not resume from it.
    settings = shared_parameters(estimator) | given
    settings.pop("checkpoint")  # the file may have been moved
    if isinstance(estimator.random_state, Integral):
        settings["random_state"] = int(estimator.random_state)
    for name, value in settings.items():
        if isinstance(value, np.ndarray):  # by a digest, so that the file stays small
            # Lists of numbers arrive as objects; integers and floats of one value are one start.
            kind = np.float64 if value.dtype.kind in "biufO" else value.dtype
            settings[name] = f"array {_digest(np.asarray(value, dtype=kind).tobytes())}"
    # The data: their layout, the ends of the columns, and all rows and weights.
    layout = session.layout
    shape = (layout.n_rows, layout.n_features, str(layout.dtype), layout.leaf, layout.weight_unit)
    (rows,) = session.fold(RowHashes())
    numbers = ends.double().cpu().numpy().tobytes()
    return FitIdentity(settings, _digest(repr((*shape, rows.item())).encode() + numbers))


def _digest(content: bytes) -> str:
    # 64 bits: two fits with one digest by chance are out of the question.
    return hashlib.sha256(content).hexdigest()[:16]
