"""From the shards of all ranks to blocks: every rank checks its own rows, and all agree."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.extent import extent
from lloydformer.data.leaves import leaf_rows, part_rows
from lloydformer.data.shard import Shard
from lloydformer.engines import default_engine
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.parts import LabelsOnParts, Opening, PartsBlocks
from lloydformer.engines.ranks import joined_ranks
from lloydformer.engines.ranks.places import places
from lloydformer.engines.ranks.transport import AllGather, hold
from lloydformer.estimators.devices import check_on_cpu
from lloydformer.estimators.random_state import generator_of
from lloydformer.estimators.sample_weight import nonnegative_weights
from lloydformer.estimators.shard_reports import ShardReport, ShardReports, shared_parameters
from lloydformer.estimators.source import (
    Source,
    V,
    checked_array,
    checked_blocks,
    checked_tensor,
    zero_rows_of,
)
from lloydformer.numerics.checks import check_range
from lloydformer.numerics.units import in_units

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class ShardSource(Source):
    """The shards of all ranks as blocks, and how results go back to the user of this rank."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """Random numbers that are the same on all ranks: those of rank 0."""
        state = self._here.ranks.from_first(lambda: generator_of(random_state).get_state())
        generator = np.random.RandomState()
        generator.set_state(state)
        return generator

    @property
    def is_first(self) -> bool:
        return self._here.ranks.rank == 0

    def on_first(self, function: Callable[[], V]) -> V:
        return self._here.ranks.from_first(function)

    def without_zero_rows(self, policy: str) -> Source:
        """They have been refused, or count for nothing, since the shards were read."""
        return self

    def out(self, values: Tensor | LabelsOnParts) -> Any:
        """Values as the user gets them; of labels those of this rank's own rows."""
        if isinstance(values, LabelsOnParts):
            values = self._here.own_labels(values)
        return super().out(values)

    @property
    def _here(self) -> AllGather:
        assert isinstance(self.blocks, PartsBlocks)
        assert isinstance(self.blocks.transport, AllGather)
        return self.blocks.transport


@dataclass(frozen=True)
class _OwnRows:
    """The checked rows of this rank; weights as they were given, zero for rows of zeros."""

    points: Tensor
    weights: np.ndarray | None
    report: ShardReport


def read_shard(
    estimator: Any, shard: Shard, sample_weight: Any, *, directions: bool
) -> ShardSource:
    """Check the rows of this rank, and agree with the others on what the rows of all are.

    Errors of one rank are raised on all of them. Rows move to the ranks that hold their leaves.
    """
    ranks, own = joined_ranks(), list[_OwnRows]()

    def look() -> ShardReport:
        own.append(_own_rows(estimator, shard.rows, sample_weight, directions))
        return own[0].report

    everyone = ShardReports(ranks.gather_results(look))
    everyone.check(getattr(estimator, "zero_rows", "refuse"))
    opening = _opening(estimator, everyone, directions)
    weights = list[Tensor | None]()
    ranks.gather_results(lambda: weights.append(_weights(own[0], everyone)))
    layout, lengths = opening.layout, everyone.lengths
    small = in_one_call(layout.n_rows, layout.n_features, int(estimator.n_clusters))
    where = places(lengths, layout.leaf, single=small)
    held = hold(own[0].points.to(everyone.dtype), weights[0], opening, where, ranks)
    blocks = PartsBlocks(held.holder.opening, held, everyone.n_weighted)
    return ShardSource(blocks, _CPU if isinstance(shard.rows, Tensor) else None)


def _own_rows(estimator: Any, X: Any, sample_weight: Any, directions: bool) -> _OwnRows:
    """Check the rows of this rank."""
    if callable(estimator.init):
        raise ValueError(
            "init: found a function, which would see the rows of one rank only; pass centers"
        )
    if getattr(estimator, "time_limit", None) is not None:
        raise ValueError(
            f"time_limit: found {estimator.time_limit!r} for a shard; the clocks of ranks differ, "
            "pass max_iter"
        )
    check_on_cpu(estimator, "a shard")
    points = _points(estimator, X)
    n_rows, n_features = points.shape
    ends = extent(points).numpy() if n_rows else None
    if ends is not None and not np.isfinite(ends).all():
        raise ValueError("X: found NaN or infinity; remove or fill in such rows")
    weights = None if sample_weight is None else nonnegative_weights(sample_weight, n_rows)
    zero = torch.empty(0, dtype=torch.int64)
    if directions and n_rows:
        zero = zero_rows_of(TensorBlocks(points, directions=True, known_ends=torch.tensor(ends)))
    if len(zero):
        weights = np.ones(n_rows) if weights is None else weights.copy()
        weights[zero.numpy()] = 0
    heaviest, n_weighted = 1.0, n_rows
    if weights is not None and n_rows:
        heaviest, n_weighted = float(weights.max()), int(np.count_nonzero(weights))
    names = getattr(estimator, "feature_names_in_", None)
    report = ShardReport(
        n_rows, n_features, str(points.dtype).removeprefix("torch."),
        None if names is None else tuple(names), ends, sample_weight is not None, heaviest,
        n_weighted, len(zero), int(zero[0]) if len(zero) else -1, shared_parameters(estimator),
    )  # fmt: skip
    return _OwnRows(points, weights, report)


def _points(estimator: Any, X: Any) -> Tensor:
    """The rows of this rank on the CPU, (m, d); there may be none."""
    if sparse.issparse(X):
        raise ValueError("X: found a sparse matrix; the rows of a shard are dense")
    if isinstance(X, TensorBlocks):
        if X.scaling is not None:
            raise ValueError("X: found scaled columns, by the rows of one rank; open it unscaled")
        points = checked_blocks(estimator, X, reset=True)
    elif len(getattr(X, "shape", ())) == 2 and X.shape[0] == 0 and X.shape[1] > 0:
        estimator.n_features_in_ = X.shape[1]
        return torch.empty(0, X.shape[1])
    elif isinstance(X, Tensor):
        points = checked_tensor(estimator, X, reset=True)
    else:
        points = torch.as_tensor(checked_array(estimator, X, reset=True))
    if points.device.type != "cpu":
        raise ValueError(f"X: found rows on {points.device}; pass those of a shard on the CPU")
    return points.contiguous()


def _weights(own: _OwnRows, everyone: ShardReports) -> Tensor | None:
    """The weights of this rank in the unit of all ranks; None if no row of any rank has one."""
    if not everyone.weighted:
        return None
    weights = np.ones(len(own.points)) if own.weights is None else own.weights
    return torch.from_numpy(
        in_units("sample_weight", np.append(weights, everyone.heaviest))[0][:-1]
    )


def _opening(estimator: Any, everyone: ShardReports, directions: bool) -> Opening:
    """How the rows of all ranks are opened."""
    ends = torch.from_numpy(everyone.ends).to(everyone.dtype)
    d, k = ends.shape[1], int(estimator.n_clusters)
    unit = in_units("sample_weight", np.array([everyone.heaviest]))[1] if everyone.weighted else 1.0
    stand_in = TensorBlocks(
        ends, None, leaf_rows(_CPU, d, k), None, directions, part=part_rows(_CPU, d, k),
        known_ends=ends, weight_unit=float(unit),
    )  # fmt: skip
    n_rows = sum(everyone.lengths)
    if not directions:
        check_range("X", ends, n_rows, d)
    layout = replace(stand_in.layout, n_rows=n_rows, weighted=everyone.weighted)
    engine = default_engine() if estimator.engine == "auto" else estimator.engine
    if engine not in ("native", "chunked"):
        raise ValueError(
            f'engine: found {engine!r} for a shard; pass "auto", "native" or "chunked"'
        )
    return Opening(layout, ends, directions, engine)
