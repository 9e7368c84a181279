"""From the shards of all ranks to blocks: every rank checks its own rows, and all agree.

Each rank describes its rows in a `ShardReport`; `ShardReports` has those of all ranks, and raises
the same errors on each of them if the rows cannot be one array.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import column_min_max
from lloydformer.data.layout import leaf_rows, part_rows
from lloydformer.data.shard import Shard
from lloydformer.engines import default_engine
from lloydformer.engines.native.tasks import in_one_call
from lloydformer.engines.partitioned import DistributedLabels, PartitionedBlocks, PartitionSpec
from lloydformer.engines.ranks import join_ranks
from lloydformer.engines.ranks.transport import AllGather, hold_partitions, place_on_ranks
from lloydformer.estimators.devices import check_on_cpu
from lloydformer.estimators.parameter_checks import check_nonnegative_weights, make_generator
from lloydformer.estimators.source import (
    NoDirectionError,
    Source,
    V,
    find_zero_rows,
    missing_policy,
    validate_array,
    validate_blocks,
    validate_tensor,
)
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.checks import check_range
from lloydformer.numerics.scaling import in_units, sample_numbers

_CPU = torch.device("cpu")

# Kinds of parameters that are compared as they are.
_COMPARED = (int, float, str, type(None), np.ndarray)

# Parameters that each rank may set as it likes; the random state is that of rank 0.
_OWN = frozenset({"callback", "verbose", "random_state", "device"})


@dataclass(frozen=True)
class ShardReport:
    """Description of the rows of a rank, which it sends to the others.

    Attributes
    ----------
    n_rows, n_features : int
        Their shape.
    dtype : str
        Their precision.
    names : tuple of str or None
        Names of the columns.
    ends : ndarray of shape (2, d) or None
        The smallest and the largest value of each column; None without rows.
    given_weights : bool
        True if `sample_weight` was passed.
    heaviest : float
        The largest weight.
    n_weighted : int
        Number of rows with a weight above 0.
    n_zero, first_zero : int
        Number of rows of zeros and the first one, where directions are compared.
    parameters : dict
        Parameters of the estimator.
    """

    n_rows: int
    n_features: int
    dtype: str
    names: tuple[str, ...] | None
    ends: np.ndarray | None
    given_weights: bool
    heaviest: float
    n_weighted: int
    n_zero: int
    first_zero: int
    parameters: dict[str, Any]


def shared_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that must be the same on all ranks, in a form that can be compared."""
    values = {"estimator": type(estimator).__name__, **estimator.get_params(deep=False)}
    if values.get("warm_start"):
        values["cluster_centers_"] = getattr(estimator, "cluster_centers_", None)
    return {name: to_comparable(value) for name, value in values.items() if name not in _OWN}


def to_comparable(value: Any) -> Any:
    """Return numbers, texts and arrays as they are, and other values as a text."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return np.asarray(value, dtype=object)
    if isinstance(value, _COMPARED):
        return value
    name = getattr(value, "__qualname__", None)
    text = repr(value) if name is None else f"{value.__module__}.{name}"
    # an address differs between processes
    return type(value).__name__ if " at 0x" in text else text


@dataclass(frozen=True)
class ShardReports:
    """The reports of all ranks, by their numbers."""

    reports: Sequence[ShardReport]

    @cached_property
    def with_rows(self) -> list[tuple[int, ShardReport]]:
        """Numbers and reports of the ranks that have rows."""
        return [(rank, one) for rank, one in enumerate(self.reports) if one.n_rows]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(one.n_rows for one in self.reports)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of all rows together, as `np.concatenate` would choose it."""
        wide = any(one.dtype == "float64" for _, one in self.with_rows)
        return torch.float64 if wide else torch.float32

    @property
    def ends(self) -> np.ndarray:
        """The smallest and the largest value of each column, (2, d)."""
        all_ends = np.stack([one.ends for _, one in self.with_rows if one.ends is not None])
        return np.stack([all_ends[:, 0].min(axis=0), all_ends[:, 1].max(axis=0)])

    @property
    def weighted(self) -> bool:
        """True if rows have weights: given ones, or 0 for rows of zeros that are ignored."""
        return any(one.given_weights or one.n_zero for _, one in self.with_rows)

    @property
    def heaviest(self) -> float:
        return max(one.heaviest for _, one in self.with_rows)

    @property
    def n_weighted(self) -> int:
        return sum(one.n_weighted for _, one in self.with_rows)

    def check(self, zero_rows: str) -> None:
        """Raise `ValueError` unless the rows of all ranks can be one array."""
        # Every rank sees the same reports in the same order, so all raise the same error. The width
        # comes first, as the ends of columns can be compared only if it agrees.
        self._check_same("n_features", "X", "features", list(enumerate(self.reports)))
        if not self.with_rows:
            raise ValueError("X: found no rows on any rank; pass at least one sample")
        # A rank without rows, whose file was empty, need not have names or weights.
        self._check_same("names", "X", "as names of the columns", self.with_rows)
        passed = "as whether it is passed"
        self._check_same("given_weights", "sample_weight", passed, self.with_rows)
        first = self.reports[0].parameters
        for rank, one in enumerate(self.reports):
            for name in first.keys() | one.parameters.keys():
                pair = [values.get(name, "another kind") for values in (first, one.parameters)]
                if not np.array_equal(np.asarray(pair[0]), np.asarray(pair[1])):
                    here, there = map(_describe, pair)
                    raise ValueError(
                        f"{name}: found {here} on rank 0 and {there} on rank {rank}; pass the "
                        "same on all ranks"
                    )
        if self.heaviest == 0:
            raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
        n_rows, n_zero = sum(self.lengths), sum(one.n_zero for one in self.reports)
        if n_zero and (zero_rows != "ignore" or n_zero == n_rows):
            rank = next(rank for rank, one in enumerate(self.reports) if one.n_zero)
            # counted over all ranks, in their order
            row = sum(self.lengths[:rank]) + self.reports[rank].first_zero
            raise NoDirectionError(row, ignorable=zero_rows == "error" and n_zero < n_rows)

    def _check_same(
        self, field: str, name: str, what: str, among: Sequence[tuple[int, ShardReport]]
    ) -> None:
        first, *others = [(rank, getattr(one, field)) for rank, one in among]
        for rank, value in others:
            if value != first[1]:
                raise ValueError(
                    f"{name}: found {first[1]} {what} on rank {first[0]} and {value} on rank "
                    f"{rank}; pass the same on all ranks"
                )


def _describe(value: Any) -> str:
    """Return a parameter for an error message, with the first few numbers of an array."""
    if not isinstance(value, np.ndarray):
        return str(value)
    first = ", ".join(map(str, value.ravel()[:3]))
    return f"an array of shape {value.shape} ({first}, ...)"


@dataclass(frozen=True)
class ShardSource(Source):
    """The shards of all ranks as blocks, and how results go back to the user of this rank."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """Return a generator that draws the same on all ranks: that of rank 0."""
        state = self._transport.ranks.from_first(lambda: make_generator(random_state).get_state())
        # A generator of its own on rank 0, too, so that no rank advances the user's alone.
        generator = np.random.RandomState()
        generator.set_state(state)
        return generator

    @property
    def is_first(self) -> bool:
        return self._transport.ranks.rank == 0

    def on_first(self, function: Callable[[], V]) -> V:
        return self._transport.ranks.from_first(function)

    def to_input_kind(self, values: Tensor | DistributedLabels) -> Any:
        """Return values as the user gets them; of labels those of this rank's own rows."""
        if isinstance(values, DistributedLabels):
            values = self._transport.own_labels(values)
        return super().to_input_kind(values)

    @property
    def _transport(self) -> AllGather:
        assert isinstance(self.blocks, PartitionedBlocks)
        assert isinstance(self.blocks.transport, AllGather)
        return self.blocks.transport


@dataclass(frozen=True)
class _OwnRows:
    """The checked rows of this rank; weights as they were given, zero for rows of zeros."""

    points: Tensor
    weights: np.ndarray | None
    report: ShardReport


def read_shard(estimator: Any, shard: Shard, sample_weight: Any) -> ShardSource:
    """Check the rows of this rank, and agree with the others on what the rows of all are.

    Errors of one rank are raised on all of them. Rows move to the ranks that hold their leaves.
    """
    ranks, checked = join_ranks(), list[_OwnRows]()
    if (missing := missing_policy(estimator)) != "error":
        raise ValueError(
            f"missing: found {missing!r} for ranks; fill in missing values, and pass "
            'missing="error"'
        )

    def check_own_rows() -> ShardReport:
        checked.append(_check_rows(estimator, shard.rows, sample_weight))
        return checked[0].report

    everyone = ShardReports(ranks.gather_results(check_own_rows))
    everyone.check(getattr(estimator, "zero_rows", "refuse"))
    own, weights = checked[0], list[Tensor]()
    numbers = sample_numbers(sum(everyone.lengths)) - sum(everyone.lengths[: ranks.rank])
    mine = own.points[numbers[(numbers >= 0) & (numbers < len(own.points))]]
    spec = _make_spec(estimator, everyone, np.concatenate(ranks.gather(mine.numpy())))

    def scale_weights() -> None:
        given = np.ones(len(own.points)) if own.weights is None else own.weights
        # The unit depends on the largest weight, which may be on another rank: it is appended.
        scaled, _ = in_units("sample_weight", np.append(given, everyone.heaviest))
        weights.append(torch.from_numpy(scaled[:-1]))

    if everyone.weighted:
        # This may refuse the weights of one rank, so it is gathered: then all ranks raise. The
        # weights themselves stay here; None is sent.
        ranks.gather_results(scale_weights)
    placements = place_on_ranks(everyone.lengths, spec.layout.leaf, single=spec.single)
    mass = weights[0] if weights else None
    transport = hold_partitions(own.points.to(everyone.dtype), mass, spec, placements, ranks)
    blocks = PartitionedBlocks(spec, transport, everyone.n_weighted)
    return ShardSource(blocks, _CPU if isinstance(shard.rows, Tensor) else None)


def _check_rows(estimator: Any, X: Any, sample_weight: Any) -> _OwnRows:
    """Check the rows of this rank, and describe them."""
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
    points = _read_points(estimator, X)
    n_rows, n_features = points.shape
    # The ends of the columns show NaN and infinity.
    ends = column_min_max(points).numpy() if n_rows else None
    if ends is not None and not np.isfinite(ends).all():
        raise ValueError("X: found NaN or infinity; remove or fill in such rows")
    weights = None if sample_weight is None else check_nonnegative_weights(sample_weight, n_rows)
    zero = torch.empty(0, dtype=torch.int64)
    if estimator._directions and n_rows:
        zero = find_zero_rows(TensorBlocks(points, directions=True, known_ends=torch.tensor(ends)))
    if len(zero):
        weights = np.ones(n_rows) if weights is None else weights.copy()
        weights[zero.numpy()] = 0
    heaviest, n_weighted = 1.0, n_rows
    if weights is not None and n_rows:
        heaviest, n_weighted = float(weights.max()), int(np.count_nonzero(weights))
    names = getattr(estimator, "feature_names_in_", None)
    report = ShardReport(
        n_rows=n_rows,
        n_features=n_features,
        dtype=str(points.dtype).removeprefix("torch."),
        names=None if names is None else tuple(names),
        ends=ends,
        given_weights=sample_weight is not None,
        heaviest=heaviest,
        n_weighted=n_weighted,
        n_zero=len(zero),
        first_zero=int(zero[0]) if len(zero) else -1,
        parameters=shared_parameters(estimator),
    )
    return _OwnRows(points, weights, report)


def _read_points(estimator: Any, X: Any) -> Tensor:
    """Return the rows of this rank on the CPU, (m, d); there may be none."""
    if sparse.issparse(X):
        raise ValueError("X: found a sparse matrix; the rows of a shard are dense")
    if isinstance(X, TensorBlocks):
        if X.scaling is not None:  # ranks would scale by different means and spreads
            raise ValueError("X: found columns scaled by the rows of one rank; open them unscaled")
        points = validate_blocks(estimator, X, reset=True)
    elif len(getattr(X, "shape", ())) == 2 and X.shape[0] == 0 and X.shape[1] > 0:
        # scikit-learn's check refuses arrays without rows
        estimator.n_features_in_ = X.shape[1]
        return torch.empty(0, X.shape[1])
    elif isinstance(X, Tensor):
        points = validate_tensor(estimator, X, reset=True)
    else:
        points = torch.as_tensor(validate_array(estimator, X, reset=True))
    if points.device.type != "cpu":
        raise ValueError(f"X: found rows on {points.device}; pass those of a shard on the CPU")
    return points.contiguous()


def _make_spec(estimator: Any, everyone: ShardReports, sample: np.ndarray) -> PartitionSpec:
    """Return how the rows of all ranks are opened.

    `sample`: the rows whose median is the origin.
    """
    engine = default_engine() if estimator.engine == "auto" else estimator.engine
    ends = torch.from_numpy(everyone.ends).to(everyone.dtype)
    n_rows, d, k = sum(everyone.lengths), ends.shape[1], int(estimator.n_clusters)
    unit = in_units("sample_weight", np.array([everyone.heaviest]))[1] if everyone.weighted else 1.0
    stand_in = TensorBlocks(
        torch.from_numpy(sample).to(everyone.dtype),
        leaf=leaf_rows(_CPU, d, k),
        directions=estimator._directions,
        part=part_rows(_CPU, d, k),
        known_ends=ends,
        weight_unit=float(unit),
    )
    if not estimator._directions:
        check_range("X", ends, n_rows, d)
    if engine not in ("native", "chunked"):
        raise ValueError(
            f'engine: found {engine!r} for a shard; pass "auto", "native" or "chunked"'
        )
    layout = replace(stand_in.layout, n_rows=n_rows, weighted=everyone.weighted)
    # Small data go to one rank as a whole, so that one kernel call runs all iterations.
    single = in_one_call(n_rows, d, k)
    return PartitionSpec(layout, ends, estimator._directions, engine, single)
