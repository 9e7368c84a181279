"""A dask collection opened: looked at, cut into parts, and kept on the workers."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import torch

from lloydformer.data.layout import Layout
from lloydformer.data.leaves import leaf_rows, part_rows
from lloydformer.engines.dask.pieces import (
    Pieces,
    PieceSurvey,
    WeightSurvey,
    is_array,
    is_collection,
    rows_of,
    surveyed,
    weights_of,
    weights_surveyed,
)
from lloydformer.engines.dask.placement import fused, placed, shared_out
from lloydformer.engines.dask.transport import ClusterTransport, Waiting, rows_in_words
from lloydformer.engines.dask.worker import made_part
from lloydformer.engines.parts.blocks import PartsBlocks
from lloydformer.engines.parts.cuts import Cut, cuts
from lloydformer.engines.parts.holder import Holder
from lloydformer.engines.parts.in_process import InProcess
from lloydformer.engines.parts.labels import LabelsOnParts, final_labels
from lloydformer.engines.parts.opening import Opening, PartRows
from lloydformer.engines.parts.questions import labelling
from lloydformer.engines.thread_pool import allowed_threads
from lloydformer.numerics.origin import middle_of_ends
from lloydformer.numerics.units import check_ratio, unit_exponent

SMALL = 1 << 22
"""Products n d k up to which all rows are one part: the native engine runs these in one call."""
_PARTS = 32
"""Parts of a worker at most: small pieces are put together."""
_OF_WORKER = 4
"""Target number of parts per worker after merging neighbours."""
_MANY = 4
"""Minimum blocks per worker for placing neighbours together."""
_CPU = torch.device("cpu")


def current_client() -> Any | None:
    """The client that dask would use now; None: a scheduler in this process."""
    import dask

    if _inside_a_worker():
        return None
    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "submit") else None


def _inside_a_worker() -> bool:
    """A task that waits for other tasks might wait for ever, so it works alone."""
    distributed = sys.modules.get("distributed")
    if distributed is None:  # dask works without it
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Collection:
    """Pieces of a dask collection whose lengths are known.

    Attributes
    ----------
    pieces : Pieces
        As the user passed them, not computed.
    surveys : list of PieceSurvey
        What was found in each.
    """

    pieces: Pieces
    surveys: list[PieceSurvey]

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
        return torch.float32 if all(each.single for each in self.surveys) else torch.float64

    @property
    def ends(self) -> torch.Tensor:
        """The smallest and the largest value of each column, (2, d)."""
        known = [survey.ends for survey in self.surveys if survey.ends is not None]
        dtype = np.float32 if self.dtype == torch.float32 else np.float64
        low, high = (np.stack([ends[i] for ends in known]).astype(dtype) for i in (0, 1))
        return torch.from_numpy(np.stack([low.min(axis=0), high.max(axis=0)]))

    def check(self) -> None:
        """Refuse pieces of different widths, no rows, NaN and infinity."""
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
        """The global number of the first row of zeros."""
        for number, survey in enumerate(self.surveys):
            if survey.no_direction is not None:
                return sum(self.lengths[:number]) + survey.no_direction
        return None


class Opener:
    """Opens a collection with a client, or in this process if there is none."""

    def __init__(self, X: Any) -> None:
        from dask import delayed

        self.client: Any = current_client()
        self._delayed = delayed
        pieces = Pieces.of(X)
        self._blocks = self._kept(pieces.blocks, "X: partition")
        tasks = [delayed(surveyed)(i, block) for i, block in enumerate(self._blocks)]
        self.collection = Collection(pieces, self._computed(tasks, "X: partition"))

    def survey_weights(self, sample_weight: Any, directions: bool) -> list[WeightSurvey]:
        """Look at the weights."""
        self._weights = weights_of(sample_weight, self.collection.lengths)
        if is_collection(self._weights):
            self._weights = self._kept(self._weights, "sample_weight: partition")
        tasks = [
            self._delayed(weights_surveyed)(i, weights, block, directions)
            for i, (weights, block) in enumerate(zip(self._weights, self._blocks, strict=True))
        ]
        return self._computed(tasks, "sample_weight: partition")

    def blocks(
        self, n_clusters: int, weights: "Weights", directions: bool, engine: str, view: Any
    ) -> PartsBlocks:
        """The collection in parts, computed and kept."""
        found, threads = self.collection, self._threads()
        leaf = leaf_rows(_CPU, found.n_features, n_clusters)
        single = found.n_rows * found.n_features * n_clusters <= SMALL
        n_workers = len(threads)
        parts = cuts(
            found.lengths, leaf,
            fewest=found.n_rows if single else found.n_rows // (_PARTS * n_workers),
            most=None if single else -(-found.n_rows // n_workers),
        )  # fmt: skip
        if self.client is not None:
            places = placed(parts, self._holders(), threads)
            most = found.n_rows // (_OF_WORKER * n_workers)
            parts, places = fused(parts, places, most)
        layout = self._layout(leaf, n_clusters, weights, directions, view)
        opening = Opening(layout, found.ends, directions, engine, single=len(parts) == 1)
        make = [self._make(part, weights) for part in parts]
        if self.client is None:
            return PartsBlocks(opening, self._in_process(opening, make), weights.n_weighted)
        rows = [(part.start, part.stop) for part in parts]
        futures = self._placed(make, places, [f"X: {rows_in_words([each])}" for each in rows])
        transport = ClusterTransport(self.client, opening, futures, rows)
        return PartsBlocks(opening, transport, weights.n_weighted)

    def _layout(
        self, leaf: int, n_clusters: int, weights: "Weights", directions: bool, view: Any
    ) -> Layout:
        found, scaling = self.collection, None if view is None else view.scaling
        if view is not None:
            origin = view.origin.to(found.dtype)
        elif directions:
            origin = torch.zeros(found.n_features, dtype=found.dtype)
        else:
            origin = torch.from_numpy(middle_of_ends(found.ends.numpy()))
        return Layout(
            found.n_rows, found.n_features, found.dtype, _CPU, leaf,
            part_rows(_CPU, found.n_features, n_clusters), origin, scaling,
            weights.exponent is not None, weights.unit,
        )  # fmt: skip

    def _make(self, part: Cut, weights: "Weights") -> tuple[Any, ...]:
        """The arguments of `made_part`."""
        dtype = "float32" if self.collection.dtype == torch.float32 else "float64"
        numbers = [number for number, _, _ in part.pieces]
        given = self._weights_of(numbers) if weights.exponent is not None else []
        blocks, taken = [self._blocks[number] for number in numbers], list(part.pieces)
        return part.start, dtype, weights.exponent, weights.ignore_zeros, taken, blocks, given

    def _weights_of(self, numbers: Sequence[int]) -> list[Any]:
        known = getattr(self, "_weights", None)
        if known is None:  # none were given, and rows of zeros count for nothing
            return [np.ones(self.collection.lengths[number]) for number in numbers]
        return [known[number] for number in numbers]

    def _kept(self, blocks: list[Any], name: str) -> list[Any]:
        """Compute blocks once and keep them where they are."""
        if self.client is None:
            import dask

            return list(dask.persist(*blocks))
        neighbours = self._neighbours(len(blocks))
        names = [f"{name} {i}" for i in range(len(blocks))]
        if neighbours and len(blocks) >= _MANY * len(neighbours):
            return self._near(blocks, neighbours, names)
        futures = list(self.client.compute(blocks))
        Waiting(self.client).done(futures, names)
        return futures

    def _near(
        self, blocks: list[Any], neighbours: dict[str, list[int]], names: list[str]
    ) -> list[Any]:
        """Compute blocks on the workers that they are meant for, as far as these are there."""
        futures = dict[int, Any]()
        for worker, numbers in neighbours.items():
            some = self.client.compute(
                [blocks[i] for i in numbers], workers=[worker], allow_other_workers=True
            )
            futures |= zip(numbers, some, strict=True)
        kept = [futures[i] for i in range(len(blocks))]
        Waiting(self.client, neighbours).done(kept, names)
        return kept

    def _neighbours(self, count: int) -> dict[str, list[int]]:
        """Where blocks are computed that are not there yet: neighbours on the same worker."""
        threads, found = dict(self.client.nthreads()), dict[str, list[int]]()
        for number, worker in enumerate(shared_out(count, threads) if threads else []):
            found.setdefault(worker, []).append(number)
        return found

    def _computed(self, tasks: list[Any], name: str) -> list[Any]:
        if self.client is None:
            import dask

            return list(dask.compute(*tasks))
        futures = self.client.compute(tasks)
        names = [f"{name} {i}" for i in range(len(tasks))]
        return Waiting(self.client).results(futures, names)

    def _threads(self) -> dict[str, int]:
        return {"here": 1} if self.client is None else dict(self.client.nthreads()) or {"none": 1}

    def _holders(self) -> list[list[str]]:
        """The workers that have each block."""
        has = self.client.who_has(self._blocks)
        return [list(has.get(future.key) or ()) for future in self._blocks]

    def _placed(self, make: list[Any], workers: list[str], names: list[str]) -> list[Any]:
        """Futures of the parts, each on its worker; errors have their names."""
        submit = partial(self.client.submit, made_part, pure=False, allow_other_workers=True)
        futures = [submit(*each, workers=[at]) for each, at in zip(make, workers, strict=True)]
        Waiting(self.client).done(futures, names)
        return futures

    def _in_process(self, opening: Opening, make: list[Any]) -> InProcess:
        rows = self._computed([self._delayed(made_part)(*each) for each in make], "X: part")
        holder = Holder(opening, allowed_threads(), opening.layout.n_rows)
        for number, part in enumerate(rows):
            holder.add(number, part)
        return InProcess([holder])


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
    def of(cls, surveys: Sequence[WeightSurvey], ignore_zeros: bool) -> "Weights":
        largest = max(survey.largest for survey in surveys)
        if largest == 0:
            raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
        exponent = unit_exponent(largest)
        check_ratio("sample_weight", min(survey.smallest for survey in surveys), largest)
        return cls(exponent, sum(survey.n_weighted for survey in surveys), ignore_zeros)


def lazy_labels(labels: LabelsOnParts, collection: Collection, opening: Opening) -> Any:
    """The labels as a dask array, in the chunks of the collection; computed when asked for."""
    from dask import delayed

    work = delayed(_labels_of_piece)
    blocks = [
        work(number, block, opening, labels.folds, labels.numbers)
        for number, block in enumerate(collection.pieces.blocks)
    ]
    return _stacked(blocks, collection.lengths, (), np.dtype(np.int32))


def _stacked(blocks: list[Any], lengths: Sequence[Any], rest: tuple[int, ...], dtype: Any) -> Any:
    """Delayed blocks of rows as a dask array, each of them a chunk."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name = f"lloydformer-{uuid4().hex}"
    zeros = (0,) * len(rest)
    graph = {(name, i, *zeros): (_itself, block.key) for i, block in enumerate(blocks)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=blocks)
    return da.Array(layers, name, (tuple(lengths), *((n,) for n in rest)), dtype=dtype)


def _itself(block: Any) -> Any:
    return block


def _labels_of_piece(
    number: int, block: Any, opening: Opening, folds: Any, numbers: Any
) -> np.ndarray:
    rows = rows_of(number, block)
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int32)
    dtype = "float32" if opening.layout.dtype == torch.float32 else "float64"
    points = PartRows(0, rows.astype(dtype, copy=False))
    found = labelling(opening, opening.blocks(points), folds)
    return final_labels(found, numbers).numpy()


def mapped(X: Any, function: Any, width: int | None, dtype: Any) -> Any:
    """A function of each block of rows, as a lazy dask array in the chunks of X.

    width: columns of the result; None: it has one axis.
    """
    from dask import delayed

    pieces = Pieces.of(X)
    lengths = X.chunks[0] if is_array(X) else [np.nan] * len(pieces.blocks)
    rest = () if width is None else (width,)
    work = delayed(partial(_mapped_block, function, np.empty((0, *rest), dtype)))
    blocks = [work(number, block) for number, block in enumerate(pieces.blocks)]
    return _stacked(blocks, lengths, rest, dtype)


def _mapped_block(function: Any, nothing: np.ndarray, number: int, block: Any) -> Any:
    rows = block if hasattr(block, "to_numpy") else rows_of(number, block)
    return function(rows) if len(rows) else nothing
