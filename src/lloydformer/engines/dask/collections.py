"""A dask collection, opened: surveyed, cut into partitions, and kept on the workers."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import uuid4

import numpy as np
import torch

from lloydformer.data.layout import Layout, leaf_rows, part_rows
from lloydformer.engines.dask.chunks import (
    Chunks,
    ChunkSurvey,
    WeightSurvey,
    is_array,
    is_collection,
    split_weights,
    survey_chunk,
    survey_weights,
    take_rows,
    to_rows,
)
from lloydformer.engines.dask.placement import merge_neighbours, place_partitions, share_out
from lloydformer.engines.dask.transport import DaskTransport, Waiting, describe_rows
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.partitioned.blocks import InProcessTransport, PartitionedBlocks
from lloydformer.engines.partitioned.labels import DistributedLabels, finish_labels
from lloydformer.engines.partitioned.partitions import (
    PartitionRange,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
    SourceRows,
    cut_partitions,
)
from lloydformer.engines.partitioned.requests import compute_labels
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.numerics.scaling import (
    check_ratio,
    divide_by_unit,
    sample_numbers,
    sampled_origin,
    unit_exponent,
)

# Most partitions per worker, on average: smaller chunks are put together, as each partition is a
# kernel call and a summary in every iteration. These three numbers were chosen by hand.
_MAX_PER_WORKER = 32
# Partitions of a worker that neighbours are merged to: few kernel calls per iteration, but enough
# partitions that those of a lost worker spread over the others.
_PER_WORKER = 4
# Chunks per worker from which neighbours are computed on the same worker; fewer chunks are left to
# Dask's own placement, which balances them.
_MANY_CHUNKS = 4
_CPU = torch.device("cpu")


def to_numpy_dtype(dtype: torch.dtype) -> str:
    """Return the name of a dtype in NumPy, which can be sent as it is."""
    return str(dtype).removeprefix("torch.")


def current_client() -> Any | None:
    """Return the client that dask would use now; None: a scheduler in this process."""
    import dask

    distributed = sys.modules.get("distributed")
    if distributed is not None:  # dask works without it
        try:
            distributed.get_worker()
        except ValueError:
            pass  # not inside a task
        else:
            return None  # a task that waits for other tasks might wait for ever: it works alone
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "submit") else None


@dataclass(frozen=True)
class Collection:
    """Chunks of a dask collection whose lengths are known.

    Attributes
    ----------
    chunks : Chunks
        As the user passed them, not computed.
    surveys : list of ChunkSurvey
        A survey of each.
    """

    chunks: Chunks
    surveys: list[ChunkSurvey]

    @property
    def lengths(self) -> list[int]:
        return [survey.n_rows for survey in self.surveys]

    @property
    def n_rows(self) -> int:
        return sum(self.lengths)

    @property
    def n_features(self) -> int:
        return self.surveys[0].n_features

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if all(each.is_float32 for each in self.surveys) else torch.float64

    @property
    def ends(self) -> torch.Tensor:
        """The smallest and the largest value of each column, (2, d)."""
        known = [survey.ends for survey in self.surveys if survey.ends is not None]
        dtype = to_numpy_dtype(self.dtype)
        low, high = (np.stack([ends[i] for ends in known]).astype(dtype) for i in (0, 1))
        return torch.from_numpy(np.stack([low.min(axis=0), high.max(axis=0)]))

    def check(self) -> None:
        """Refuse chunks of different widths, no rows, NaN and infinity."""
        for number, survey in enumerate(self.surveys):
            if survey.n_features != self.n_features:
                raise ValueError(
                    f"X: partition {number} has {survey.n_features} columns, and partition 0 has "
                    f"{self.n_features}; pass the same columns in every partition"
                )
            if survey.not_finite is not None:
                raise ValueError(
                    f"X: found NaN or infinity in partition {number}, row {survey.not_finite} of "
                    "it; remove or fill in such rows"
                )
        if self.n_rows == 0 or self.n_features == 0:
            raise ValueError(
                f"X: found {self.n_rows} rows and {self.n_features} columns in "
                f"{len(self.surveys)} partitions; pass at least one row and one column"
            )

    def first_zero_row(self) -> int | None:
        """Return the global number of the first row of zeros."""
        for number, survey in enumerate(self.surveys):
            if survey.no_direction is not None:
                return sum(self.lengths[:number]) + survey.no_direction
        return None


class Opener:
    """Opens a collection with a client, or in this process if there is none.

    The constructor already computes all chunks, keeps them on the workers and surveys them.
    """

    def __init__(self, X: Any) -> None:
        from dask import delayed

        self.client: Any = current_client()
        self._delayed = delayed
        chunks = Chunks.from_collection(X)
        self._blocks = self._persist(chunks.blocks, "X")
        tasks = [delayed(survey_chunk)(i, block) for i, block in enumerate(self._blocks)]
        self.collection = Collection(chunks, self._compute(tasks, "X"))
        self._weights: list[Any] | None = None

    def survey_weights(self, sample_weight: Any, directions: bool) -> list[WeightSurvey]:
        """Keep the weights on the workers; return a survey of those of each chunk."""
        weights: Any = split_weights(sample_weight, self.collection.lengths)
        if is_collection(weights):
            weights = self._persist(weights, "sample_weight")
        self._weights = weights
        tasks = [
            self._delayed(survey_weights)(i, given, block, directions)
            for i, (given, block) in enumerate(zip(weights, self._blocks, strict=True))
        ]
        return self._compute(tasks, "sample_weight")

    def open(
        self, n_clusters: int, weights: "Weights", directions: bool, engine: str, view: Any
    ) -> PartitionedBlocks:
        """Return the collection in partitions, computed and kept on the workers."""
        data, client = self.collection, self.client
        # No workers yet: as for one; tasks wait until it comes (`Waiting`).
        threads = {"here": 1} if client is None else dict(client.nthreads()) or {"none": 1}
        layout = self._layout(n_clusters, weights, directions, view)
        single, n_workers = in_one_call(data.n_rows, data.n_features, n_clusters), len(threads)
        ranges = cut_partitions(
            data.lengths,
            layout.leaf,
            fewest=data.n_rows if single else data.n_rows // (_MAX_PER_WORKER * n_workers),
            most=None if single else -(-data.n_rows // n_workers),
        )
        spec = PartitionSpec(layout, data.ends, directions, engine, single)
        if client is None:
            tasks = [
                self._delayed(make_partition)(*self._arguments(each, weights)) for each in ranges
            ]
            store = PartitionStore(spec, allowed_threads(), layout.n_rows)
            for number, rows in enumerate(self._compute(tasks, "X")):
                store.partitions[number] = store.open(rows)
            return PartitionedBlocks(spec, InProcessTransport([store]), weights.n_weighted)
        has = client.who_has(self._blocks)
        holders = [list(has.get(future.key) or ()) for future in self._blocks]
        workers = place_partitions(ranges, holders, threads)
        ranges, workers = merge_neighbours(
            ranges, workers, data.n_rows // (_PER_WORKER * n_workers)
        )
        submit = partial(client.submit, make_partition, pure=False, allow_other_workers=True)
        futures = [
            submit(*self._arguments(each, weights), workers=[worker])
            for each, worker in zip(ranges, workers, strict=True)
        ]
        rows = [(each.start, each.stop) for each in ranges]
        Waiting(client, argument="X").done(futures, [describe_rows([each]) for each in rows])
        transport = DaskTransport(client, spec, futures, rows)
        return PartitionedBlocks(spec, transport, weights.n_weighted)

    def _layout(self, n_clusters: int, weights: "Weights", directions: bool, view: Any) -> Layout:
        data = self.collection
        if view is not None:
            origin = view.origin.to(data.dtype)
        elif directions:
            origin = torch.zeros(data.n_features, dtype=data.dtype)
        else:
            origin = torch.from_numpy(sampled_origin(self._sample()))
        return Layout(
            n_rows=data.n_rows,
            n_features=data.n_features,
            dtype=data.dtype,
            device=_CPU,
            leaf=leaf_rows(_CPU, data.n_features, n_clusters),
            part=part_rows(_CPU, data.n_features, n_clusters),
            origin=origin,
            scaling=None if view is None else view.scaling,
            weighted=weights.exponent is not None,
            weight_unit=weights.unit,
        )

    def _sample(self) -> np.ndarray:
        """Return the rows whose median is the origin, from the chunks that hold them."""
        numbers = sample_numbers(self.collection.n_rows)
        starts = np.cumsum([0, *self.collection.lengths])
        holders = np.searchsorted(starts, numbers, side="right") - 1
        tasks = [
            self._delayed(take_rows)(i, self._blocks[i], numbers[holders == i] - starts[i])
            for i in np.unique(holders).tolist()
        ]
        rows = np.concatenate(self._compute(tasks, "X: partition"))
        return rows.astype(np.float32 if self.collection.dtype == torch.float32 else np.float64)

    def _arguments(self, part: PartitionRange, weights: "Weights") -> tuple[Any, ...]:
        """Return the arguments of `make_partition`."""
        dtype = to_numpy_dtype(self.collection.dtype)
        chunks, given = [source.source for source in part.sources], list[Any]()
        if weights.exponent is not None:
            # Without `sample_weight`, rows weigh 1; `make_partition` sets those of zeros to 0.
            lengths, known = self.collection.lengths, self._weights
            given = [np.ones(lengths[i]) if known is None else known[i] for i in chunks]
        blocks = [self._blocks[i] for i in chunks]
        return part.start, dtype, weights, list(part.sources), blocks, given

    def _persist(self, blocks: list[Any], argument: str) -> list[Any]:
        """Compute blocks once and keep them where they are."""
        if self.client is None:
            import dask

            return list(dask.persist(*blocks))
        names = [f"partition {i}" for i in range(len(blocks))]
        threads = dict(self.client.nthreads())
        if not threads or len(blocks) < _MANY_CHUNKS * len(threads):
            futures = list(self.client.compute(blocks))
            Waiting(self.client, argument=argument).done(futures, names)
            return futures
        # Neighbours on the same worker, as far as blocks are not computed elsewhere already: then
        # partitions are made of rows that their worker has.
        workers, futures = share_out(len(blocks), threads), []
        for worker, own in groupby(zip(workers, blocks, strict=True), key=itemgetter(0)):
            futures += self.client.compute(
                [block for _, block in own], workers=[worker], allow_other_workers=True
            )
        Waiting(self.client, workers, argument).done(futures, names)
        return futures

    def _compute(self, tasks: list[Any], argument: str) -> list[Any]:
        if self.client is None:
            import dask

            return list(dask.compute(*tasks))
        names = [f"partition {i}" for i in range(len(tasks))]
        return Waiting(self.client, argument=argument).results(self.client.compute(tasks), names)


@dataclass(frozen=True)
class Weights:
    """The weights of all rows.

    Attributes
    ----------
    exponent : int or None
        Of their unit, a power of two; None: there are none.
    n_weighted : int
        Number of rows with weight.
    ignore_zeros : bool
        Rows of zeros count for nothing.
    """

    exponent: int | None
    n_weighted: int
    ignore_zeros: bool = False

    @property
    def unit(self) -> float:
        return 1.0 if self.exponent is None else float(np.ldexp(1.0, self.exponent))

    @classmethod
    def from_surveys(cls, surveys: Sequence[WeightSurvey], ignore_zeros: bool) -> "Weights":
        largest = max(survey.largest for survey in surveys)
        if largest == 0:
            raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
        exponent = unit_exponent(largest)
        check_ratio("sample_weight", min(survey.smallest for survey in surveys), largest)
        return cls(exponent, sum(survey.n_weighted for survey in surveys), ignore_zeros)


def make_partition(
    first_row: int,
    dtype: str,
    weights: Weights,
    sources: Sequence[SourceRows],
    blocks: Sequence[Any],
    given: Sequence[Any],
) -> PartitionRows:
    """Return the rows of a partition, on a worker.

    Rows of a single chunk are not copied, if they have the right precision.

    Parameters
    ----------
    first_row : int
        Its first row among all rows.
    dtype : str
        Precision of the points, as NumPy names it.
    weights : Weights
        The unit of the weights, and whether rows of zeros get the weight 0.
    sources : sequence of SourceRows
        Rows of each chunk.
    blocks, given : sequence
        The chunks, and their weights if there are any.
    """
    taken = [
        to_rows(number, block)[start:stop]
        for (number, start, stop), block in zip(sources, blocks, strict=True)
    ]
    points = taken[0] if len(taken) == 1 else np.concatenate(taken)
    points = points.astype(dtype, copy=False)
    if weights.exponent is None:
        return PartitionRows(first_row, points)
    pairs = zip(sources, given, strict=True)
    whole = np.concatenate([np.asarray(w, dtype=np.float64)[a:b] for (_, a, b), w in pairs])
    scaled = divide_by_unit(whole, weights.exponent)
    if weights.ignore_zeros:
        scaled[~points.any(axis=1)] = 0.0
    return PartitionRows(first_row, points, scaled)


def lazy_labels(labels: DistributedLabels, collection: Collection, spec: PartitionSpec) -> Any:
    """Return the labels as a dask array in the chunks of the collection, computed when needed."""
    from dask import delayed

    label = delayed(partial(_label_chunk, spec=spec, folds=labels.folds, numbers=labels.numbers))
    firsts = np.cumsum([0, *collection.lengths]).tolist()
    blocks = [
        label(number, block, first)
        for number, (block, first) in enumerate(zip(collection.chunks.blocks, firsts, strict=False))
    ]
    return _stack(blocks, collection.lengths, (), np.dtype(np.int32))


def _label_chunk(
    number: int, block: Any, first: int, spec: PartitionSpec, folds: Any, numbers: Any
) -> np.ndarray:
    rows = to_rows(number, block)
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int32)
    rows = rows.astype(to_numpy_dtype(spec.layout.dtype), copy=False)
    # Labels within bounds on sizes depend on all rows: `GivenLabels` finds them by the row number.
    blocks = spec.open_rows(PartitionRows(first, rows))
    return finish_labels(compute_labels(spec, blocks, folds), numbers).numpy()


def map_chunks(X: Any, function: Any, width: int | None, dtype: Any) -> Any:
    """Apply a function to each block of rows; return a lazy dask array in the chunks of X.

    width: columns of the result; None: it has one axis.
    """
    from dask import delayed

    chunks = Chunks.from_collection(X)
    lengths = X.chunks[0] if is_array(X) else [np.nan] * len(chunks.blocks)
    rest = () if width is None else (width,)
    apply = delayed(partial(_apply_to_chunk, function, np.empty((0, *rest), dtype)))
    blocks = [apply(number, block) for number, block in enumerate(chunks.blocks)]
    return _stack(blocks, lengths, rest, dtype)


def _apply_to_chunk(function: Any, nothing: np.ndarray, number: int, block: Any) -> Any:
    rows = block if hasattr(block, "to_numpy") else to_rows(number, block)
    return function(rows) if len(rows) else nothing


def _stack(blocks: list[Any], lengths: Sequence[Any], rest: tuple[int, ...], dtype: Any) -> Any:
    """Return delayed blocks of rows as a dask array, each of them a chunk."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    # By hand: `da.concatenate` drops chunks without rows, and the result has those of X.
    name = f"lloydformer-{uuid4().hex}"
    zeros = (0,) * len(rest)
    graph = {(name, i, *zeros): (_identity, block.key) for i, block in enumerate(blocks)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=blocks)
    return da.Array(layers, name, (tuple(lengths), *((n,) for n in rest)), dtype=dtype)


def _identity(block: Any) -> Any:
    return block
