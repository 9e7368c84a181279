"""From what users pass (arrays, frames, CSR matrices, tensors) to blocks, and back again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data
from torch import Tensor

from lloydformer.data.array_api import get_namespace, tensor_from_numpy, to_tensor
from lloydformer.data.blocks import TensorBlocks, leaf_ranges
from lloydformer.data.column_statistics import ColumnStatistics, Scaling
from lloydformer.data.layout import Layout, leaf_rows, part_rows
from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks, SparseOnGpu, canonicalise_csr
from lloydformer.data.streamed_blocks import StreamedBlocks
from lloydformer.engines import default_engine
from lloydformer.engines.cuda import pin_rows, survey_on_gpu
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.engines.native.engine import column_ends
from lloydformer.engines.partitioned import DistributedLabels, PartitionedBlocks
from lloydformer.engines.thread_pool import one_core
from lloydformer.estimators.devices import (
    can_pin,
    check_on_cpu,
    free_memory,
    get_compute_device,
    keep_on_host,
    move_to_device,
    requested_device,
    require_device,
)
from lloydformer.estimators.parameter_checks import check_weights, make_generator
from lloydformer.numerics.checks import FLOATS, ArgumentError, check_range, is_surely_in_range
from lloydformer.numerics.scaling import in_units

V = TypeVar("V")

_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Source:
    """The data of one call, as blocks, and how results go back to the user."""

    blocks: TensorBlocks | SparseBlocks | StreamedBlocks | PartitionedBlocks
    device: torch.device | None
    """Where tensors came from, and go back to; None: arrays came in, and go out."""
    namespace: Any = field(default=None, kw_only=True)
    """The library of the arrays, if it is neither NumPy nor torch."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """The random numbers of a fit."""
        return make_generator(random_state)

    @property
    def is_first(self) -> bool:
        """Does this process write the files of a fit? With ranks, only the first one does."""
        return True

    def on_first(self, function: Callable[[], V]) -> V:
        """The result of a function, called where files are written."""
        return function()

    @one_core()
    def without_zero_rows(self, policy: str) -> "Source":
        """Rows of zeros have no direction: refuse them, or let them count for nothing.

        policy: the parameter `zero_rows`; "refuse" if the estimator has none.
        """
        blocks = self.blocks
        assert not isinstance(blocks, PartitionedBlocks)
        zero = zero_rows_of(blocks)
        if len(zero) == 0:
            return self
        some = len(zero) < blocks.layout.n_rows
        if policy != "ignore" or not some:
            raise NoDirectionError(int(zero[0]), ignorable=policy == "error" and some)
        weights = blocks.weights(0, blocks.layout.n_rows)
        if weights is None:
            ones = torch.from_numpy(scratch_array(blocks.layout.n_rows, dtype=np.float64)).fill_(1)
            kept = ones.to(zero.device)
        else:
            kept = weights.clone()
        kept[zero] = 0
        scaled, unit = in_units("sample_weight", kept.cpu().numpy())
        kept, unit = torch.from_numpy(scaled).to(kept), float(unit) * blocks.weight_unit
        return replace(self, blocks=replace(blocks, sample_weight=kept, weight_unit=unit))

    def out(self, values: Tensor | DistributedLabels) -> Any:
        if isinstance(values, DistributedLabels):
            values = values.gather()
        if self.namespace is not None:
            return self.namespace.from_dlpack(values.to(self.device))
        return values.cpu().numpy() if self.device is None else values.to(self.device)

    def rows_with(self, labels: Any, label: int) -> Any:
        """The numbers of the rows with this label; `labels`: from `out`."""
        return self.out((to_tensor(labels) == label).nonzero()[:, 0])


@dataclass(frozen=True)
class ClusterSource(Source):
    """The data of one call on a cluster; labels go back as a lazy dask array."""

    collection: Any

    def without_zero_rows(self, policy: str) -> "Source":
        """They have been refused, or count for nothing, since the data were read."""
        return self

    def out(self, values: Tensor | DistributedLabels) -> Any:
        if not isinstance(values, DistributedLabels):
            return super().out(values)
        from lloydformer.engines.dask.collections import lazy_labels

        assert isinstance(self.blocks, PartitionedBlocks)
        return lazy_labels(values, self.collection, self.blocks.spec)

    def rows_with(self, labels: Any, label: int) -> Any:
        return (labels == label).nonzero()[0]


class NoDirectionError(ArgumentError):
    """A row of zeros, where directions are compared; `row` counts from 0.

    ignorable: zero_rows="ignore" would help.
    """

    def __init__(self, row: int, *, ignorable: bool) -> None:
        self.row = row
        more = ' or pass zero_rows="ignore"' if ignorable else ""
        super().__init__(
            "X", f"found only zeros in row {row}, which has no direction; remove such rows{more}"
        )


def zero_rows_of(blocks: TensorBlocks | SparseBlocks | StreamedBlocks) -> Tensor:
    """The rows that have no direction, by their numbers."""
    leaves = (_zero_rows(blocks, *leaf) for leaf in leaf_ranges(blocks.layout))
    return torch.cat([rows for rows in leaves if len(rows)] or [torch.empty(0)])


def _zero_rows(
    blocks: TensorBlocks | SparseBlocks | StreamedBlocks, start: int, stop: int
) -> Tensor:
    """The rows of a leaf that have no direction, by their global numbers."""
    if isinstance(blocks, SparseBlocks):
        return blocks.zero_rows(start, stop)
    return (blocks.read(start, stop).squared_norms() == 0).nonzero()[:, 0] + start


@dataclass(frozen=True)
class View:
    """How a fitted estimator looks at rows: from its origin, scaled as it was fitted."""

    origin: Tensor
    scaling: Scaling | None


def read(
    estimator: Any,
    X: Any,
    sample_weight: Any = None,
    *,
    reset: bool,
    directions: bool,
    view: View | None = None,
) -> Source:
    """Check the data as scikit-learn does, and look at them as blocks."""
    if is_collection(X):
        return read_collection(
            estimator, X, sample_weight, reset=reset, directions=directions, view=view
        )
    namespace = get_namespace(X)
    if namespace is not None:
        rows = _of_floats(to_tensor(X))
        found = read(estimator, rows, sample_weight, reset=reset, directions=directions, view=view)
        return replace(found, namespace=namespace)
    if not isinstance(X, Tensor | TensorBlocks):
        X = checked_array(estimator, X, reset)
    blocks = (
        _sparse_blocks(estimator, X, sample_weight, directions)
        if sparse.issparse(X)
        else _dense_blocks(estimator, X, sample_weight, reset, directions, view)
    )
    if not directions:
        _check_squares(blocks, None if view is None else to_tensor(estimator.cluster_centers_))
    return Source(blocks, X.device if isinstance(X, Tensor) else None)


def _of_floats(points: Tensor) -> Tensor:
    return points if points.is_floating_point() or points.is_complex() else points.double()


def _dense_blocks(
    estimator: Any, X: Any, sample_weight: Any, reset: bool, directions: bool, view: View | None
) -> TensorBlocks | StreamedBlocks:
    """Dense rows, their numbers checked, where they are or on the device that the user wants."""
    points, own = _points_of(estimator, X, reset), X if isinstance(X, TensorBlocks) else None
    device, k = get_compute_device(estimator, points), int(estimator.n_clusters)
    seen = own if view is None else view
    scaling = None if seen is None else seen.scaling
    pinnable = view is None and device != points.device and can_pin(points)
    if pinnable and scaling is None and not directions:
        points = keep_on_host(points, device, k)
    ends, survey = _checked_ends(estimator, X, points)
    weights, unit = _weights(sample_weight, len(points), device)
    blocks = TensorBlocks(
        points,
        weights,
        leaf_rows(device, points.shape[1], k),
        None if view is None else view.origin.to(points),
        directions,
        scaling,
        None if own is None else own.names,
        own is not None and own.mapped and points.device.type == "cpu",
        part_rows(device, points.shape[1], k),
        ends,
        unit,
        survey,
    )
    if isinstance(X, Tensor | TensorBlocks) and not np.isfinite(blocks.ends.cpu().numpy()).all():
        raise ArgumentError("X", "found NaN or infinity; remove or fill in such rows")
    if device == points.device:
        return blocks
    memory = pin_rows(points, device) if pinnable else None
    return StreamedBlocks(replace(blocks, sample_weight=None), device, weights, unit, memory)


def _points_of(estimator: Any, X: Any, reset: bool) -> Tensor:
    """Dense rows as a tensor, on the device that the user wants if they fit there."""
    if isinstance(X, TensorBlocks):
        return checked_blocks(estimator, X, reset)
    if isinstance(X, Tensor):
        return checked_tensor(estimator, X, reset)
    return _as_tensor(X, requested_device(estimator))


def _checked_ends(
    estimator: Any, X: Any, points: Tensor
) -> tuple[Tensor | None, ColumnStatistics | None]:
    """The ends of the columns, and sums over them, as far as they are known by now.

    Arrays with numbers that are not finite raise the error of scikit-learn.
    """
    survey = survey_on_gpu(points) if points.device.type == "cuda" else None
    if survey is not None:
        ends: Tensor | None = torch.from_numpy(survey.ends)
    else:
        ends = X.ends.to(points.device) if isinstance(X, TensorBlocks) else _ends(points)
    doubtful = ends is None or (survey is not None and not np.isfinite(survey.ends).all())
    if doubtful and not isinstance(X, Tensor | TensorBlocks):
        _check_finite(estimator, X)
    return ends, survey


def _sparse_blocks(estimator: Any, X: Any, sample_weight: Any, directions: bool) -> SparseBlocks:
    """A sparse matrix, checked, as blocks."""
    _check_finite(estimator, X)
    wanted, k, d = requested_device(estimator), int(estimator.n_clusters), X.shape[1]
    here = wanted is None or not estimator._sparse_on_gpu
    device = torch.device("cpu") if here else require_device(wanted)
    weights, unit = _weights(sample_weight, X.shape[0], device)
    leaf, matrix = leaf_rows(device, d, k), canonicalise_csr(X)
    if device.type == "cpu":
        part = part_rows(device, 1, k)
        return SparseBlocks(matrix, weights, leaf, directions, part, unit)
    needed, free = SparseOnGpu.bytes_for(matrix, leaf), free_memory(device)
    if needed > free:
        raise ValueError(
            f"device: X needs {needed / 1e9:.1f} GB on the GPU, and {free / 1e9:.1f} GB are free; "
            "pass device=None to use the CPU"
        )
    return SparseOnGpu(matrix, weights, leaf, directions, None, unit, device=device)


def read_collection(
    estimator: Any,
    X: Any,
    sample_weight: Any = None,
    *,
    reset: bool,
    directions: bool,
    view: View | None = None,
) -> "ClusterSource":
    """The same for a dask collection, which is computed and kept where dask computes it."""
    from lloydformer.engines.dask.collections import Opener, Weights

    check_on_cpu(estimator, "a dask collection")
    opener = Opener(X)
    found = opener.collection
    found.check()
    if reset:
        estimator.n_features_in_ = found.n_features
    elif found.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {found.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    _note_names(estimator, found.chunks.names, reset)
    zero = found.first_zero_row() if directions else None
    n_zero = sum(survey.n_zero for survey in found.surveys)
    policy, some = getattr(estimator, "zero_rows", "refuse"), n_zero < found.n_rows
    if zero is not None and (policy != "ignore" or not some):
        raise NoDirectionError(zero, ignorable=policy == "error" and some)
    ignored = zero is not None
    if sample_weight is not None:
        weights = Weights.from_surveys(opener.survey_weights(sample_weight, directions), ignored)
    else:
        weights = Weights(0 if ignored else None, found.n_rows - n_zero * ignored, ignored)
    engine = default_engine() if estimator.engine == "auto" else estimator.engine
    if engine not in ("native", "chunked"):
        raise ValueError(f'engine: found {engine!r} for a dask collection; leave it at "auto"')
    blocks = opener.open(int(estimator.n_clusters), weights, directions, engine, view)
    if not directions:
        fitted = None if view is None else to_tensor(estimator.cluster_centers_)
        _check_range_of(blocks.layout, found.ends, fitted)
    return ClusterSource(blocks, None, found)


def _ends(points: Tensor) -> Tensor | None:
    """The smallest and the largest value of each column; None unless the kernels find them."""
    if points.device.type != "cpu" or not points.is_contiguous():
        return None
    ends = column_ends(points.numpy())
    return None if ends is None else torch.from_numpy(ends)


def _check_finite(estimator: Any, X: Any) -> None:
    assert_all_finite(X, input_name="X", estimator_name=type(estimator).__name__)


def checked_array(estimator: Any, X: Any, reset: bool) -> Any:
    """X as scikit-learn's checks return it: an array of floats row by row, or a CSR matrix.

    Its values are not looked at. An array that is so already, and whose width is known, skips the
    checks: they take longer than to find the nearest centers of a few rows.
    """
    if is_checked_array(X) and not hasattr(estimator, "feature_names_in_"):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        if X.shape[1] == estimator.n_features_in_:
            return X
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], Shard):
        raise ValueError("X: found a list of shards; each rank passes one, lf.Shard(rows)")
    return validate_data(
        estimator, X, reset=reset, dtype=[np.float64, np.float32], order="C",
        accept_sparse="csr" if estimator._accepts_sparse else False, accept_large_sparse=True,
        ensure_all_finite=False,
    )  # fmt: skip


def is_checked_array(X: Any) -> bool:
    """Is X an array of floats row by row, as scikit-learn's checks return it?"""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.size > 0
        and X.flags.c_contiguous
    )


def _check_squares(
    blocks: TensorBlocks | SparseBlocks | StreamedBlocks, fitted: Tensor | None
) -> None:
    """Refuse rows whose squared distances, to each other or to fitted centers, overflow."""
    _check_range_of(blocks.layout, blocks.ends, fitted)


def _check_range_of(layout: Layout, rows: Tensor, fitted: Tensor | None) -> None:
    """The same for rows with these ends."""
    if fitted is not None:
        rows = torch.cat([rows, fitted.to(rows).reshape(-1, rows.shape[1])])
    scaled = rows if layout.scaling is None else layout.scaling.apply(rows)
    if not is_surely_in_range(scaled.cpu().numpy(), layout.n_rows, layout.n_features):
        check_range("X", scaled, layout.n_rows, layout.n_features)


def _note_names(estimator: Any, names: tuple[str, ...] | None, reset: bool) -> None:
    """Column names, as scikit-learn keeps and compares them."""
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None and names is not None and tuple(fitted) != names:
        raise ArgumentError(
            "X", f"found columns {list(names)}; this model was fitted on {list(fitted)}"
        )


def _as_tensor(X: np.ndarray, device: Any) -> Tensor:
    points = torch.from_numpy(X) if X.flags.writeable else tensor_from_numpy(X)
    return points if device is None else move_to_device(points, device)


def checked_blocks(estimator: Any, X: TensorBlocks, reset: bool) -> Tensor:
    """The points of blocks; other columns than before raise."""
    points = checked_tensor(estimator, X.points, reset)
    _note_names(estimator, X.names, reset)
    return points


def checked_tensor(estimator: Any, X: Tensor, reset: bool) -> Tensor:
    """A tensor as the folds read it; wrong shapes and dtypes raise. Values are not looked at.

    Half precision becomes float32, in which all its numbers are exact.
    """
    if X.dtype in _HALVES:
        X = X.float()
    if X.ndim != 2 or X.dtype not in FLOATS:
        raise ValueError(
            f"X: found a tensor of shape {tuple(X.shape)} and dtype {X.dtype}; "
            "pass (n, d) in float32 or float64"
        )
    if 0 in X.shape:
        raise ValueError(
            f"X: found a tensor of shape {tuple(X.shape)}; pass at least one sample and one feature"
        )
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    device = requested_device(estimator)
    there = device is None or (estimator.device is None and X.device.type == "cuda")
    return X.detach() if there else move_to_device(X.detach(), device)


def _weights(sample_weight: Any, n_rows: int, device: torch.device) -> tuple[Tensor | None, float]:
    weights, unit = weights_in_units(sample_weight, n_rows)
    return None if weights is None else torch.from_numpy(weights).to(device), unit


def weights_in_units(sample_weight: Any, n_rows: int) -> tuple[np.ndarray | None, float]:
    """Weights in units of a power of two, and that unit."""
    if sample_weight is None:
        return None, 1.0
    if get_namespace(sample_weight) is not None:
        sample_weight = to_tensor(sample_weight)
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    weights, unit = in_units("sample_weight", check_weights(sample_weight, n_rows))
    return np.require(weights, requirements="W"), float(unit)  # pandas gives arrays to read only
