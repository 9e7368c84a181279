"""From what users pass (arrays, frames, CSR matrices, tensors) to blocks, and back again."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data
from torch import Tensor

from lloydformer.data.blocks import SparseBlocks, TensorBlocks, ranges
from lloydformer.data.canonical import canonical
from lloydformer.data.layout import Layout
from lloydformer.data.leaves import leaf_rows, part_rows
from lloydformer.data.scaling import Scaling
from lloydformer.data.scratch import scratch_array
from lloydformer.data.shard import Shard
from lloydformer.data.streamed import StreamedBlocks
from lloydformer.engines import default_engine
from lloydformer.engines.cuda import survey_on_gpu
from lloydformer.engines.dask.pieces import is_collection
from lloydformer.engines.native.engine import column_ends
from lloydformer.engines.parts import LabelsOnParts, PartsBlocks
from lloydformer.engines.thread_pool import one_core
from lloydformer.estimators.random_state import generator_of
from lloydformer.estimators.sample_weight import checked_weights
from lloydformer.numerics.checks import FLOATS, check_range, surely_in_range
from lloydformer.numerics.units import in_units

_HALVES = (torch.float16, torch.bfloat16)
_BYTES_A_POINT = 48
"""What a fit on a GPU takes for each point beside the rows and their copy in half precision."""


@dataclass(frozen=True)
class Source:
    """The data of one call, as blocks, and how results go back to the user."""

    blocks: TensorBlocks | SparseBlocks | StreamedBlocks | PartsBlocks
    device: torch.device | None
    """Where tensors came from, and go back to; None: arrays came in, and go out."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """The random numbers of a fit."""
        return generator_of(random_state)

    @one_core()
    def without_zero_rows(self, policy: str) -> "Source":
        """Rows of zeros have no direction: refuse them, or let them count for nothing.

        policy: the parameter `zero_rows`; "refuse" if the estimator has none.
        """
        blocks = self.blocks
        assert not isinstance(blocks, PartsBlocks)
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

    def out(self, values: Tensor | LabelsOnParts) -> Any:
        if isinstance(values, LabelsOnParts):
            values = values.gather()
        return values.cpu().numpy() if self.device is None else values.to(self.device)

    def rows_with(self, labels: Any, label: int) -> Any:
        """The numbers of the rows with this label; `labels`: from `out`."""
        return self.out((torch.as_tensor(labels) == label).nonzero()[:, 0])


@dataclass(frozen=True)
class ClusterSource(Source):
    """The data of one call on a cluster; labels go back as a lazy dask array."""

    collection: Any

    def without_zero_rows(self, policy: str) -> "Source":
        """They have been refused, or count for nothing, since the data were read."""
        return self

    def out(self, values: Tensor | LabelsOnParts) -> Any:
        if not isinstance(values, LabelsOnParts):
            return super().out(values)
        from lloydformer.engines.dask.collections import lazy_labels

        assert isinstance(self.blocks, PartsBlocks)
        return lazy_labels(values, self.collection, self.blocks.opening)

    def rows_with(self, labels: Any, label: int) -> Any:
        return (labels == label).nonzero()[0]


class NoDirectionError(ValueError):
    """A row of zeros, where directions are compared; `row` counts from 0.

    ignorable: zero_rows="ignore" would help.
    """

    def __init__(self, row: int, *, ignorable: bool) -> None:
        self.row = row
        super().__init__(
            f"X: found only zeros in row {row}, which has no direction; remove such rows"
            + (' or pass zero_rows="ignore"' if ignorable else "")
        )


def zero_rows_of(blocks: TensorBlocks | SparseBlocks | StreamedBlocks) -> Tensor:
    """The rows that have no direction, by their numbers."""
    leaves = (_zero_rows(blocks, *leaf) for leaf in ranges(blocks.layout))
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
    scaling, names, mapped = None, None, False
    fitted = None if view is None else torch.as_tensor(estimator.cluster_centers_)
    if isinstance(X, TensorBlocks):
        points, scaling, names = checked_blocks(estimator, X, reset), X.scaling, X.names
        mapped = X.mapped and points.device.type == "cpu"
    elif isinstance(X, Tensor):
        points = checked_tensor(estimator, X, reset)
    else:
        X = checked_array(estimator, X, reset)
        if sparse.issparse(X):
            rows = _sparse_blocks(estimator, X, sample_weight, directions)
            if not directions:
                _check_squares(rows, fitted)
            return Source(rows, None)
        points = _as_tensor(X, _wanted_device(estimator))
    known = survey_on_gpu(points) if points.device.type == "cuda" else None
    if known is not None:
        ends: Tensor | None = torch.from_numpy(known.ends)
    else:
        ends = X.ends.to(points.device) if isinstance(X, TensorBlocks) else _ends(points)
    doubtful = ends is None or (known is not None and not np.isfinite(known.ends).all())
    if doubtful and not isinstance(X, Tensor | TensorBlocks):
        _check_finite(estimator, X)
    if view is not None:
        scaling = view.scaling
    device = _device_of(estimator, points)
    weights, unit = _weights(sample_weight, len(points), device)
    blocks = TensorBlocks(
        points,
        weights,
        leaf_rows(device, points.shape[1], int(estimator.n_clusters)),
        None if view is None else view.origin.to(points),
        directions,
        scaling,
        names,
        mapped,
        part_rows(device, points.shape[1], int(estimator.n_clusters)),
        ends,
        unit,
        known,
    )
    if isinstance(X, Tensor | TensorBlocks) and not np.isfinite(blocks.ends.cpu().numpy()).all():
        raise ValueError("X: found NaN or infinity; remove or fill in such rows")
    if not directions:
        _check_squares(blocks, fitted)
    home = X.device if isinstance(X, Tensor) else None
    if device != points.device:
        without = replace(blocks, sample_weight=None)
        return Source(StreamedBlocks(without, device, weights, unit), home)
    return Source(blocks, home)


def _sparse_blocks(estimator: Any, X: Any, sample_weight: Any, directions: bool) -> SparseBlocks:
    """A sparse matrix, checked, as blocks."""
    _check_finite(estimator, X)
    cpu, k = torch.device("cpu"), int(estimator.n_clusters)
    weights, unit = _weights(sample_weight, X.shape[0], cpu)
    leaf, part = leaf_rows(cpu, X.shape[1], k), part_rows(cpu, 1, k)
    return SparseBlocks(canonical(X), weights, leaf, directions, part, unit)


def _device_of(estimator: Any, points: Tensor) -> torch.device:
    """Where folds run: the device of the points, or the one that they were too large for."""
    wanted = _wanted_device(estimator)
    return points.device if wanted is None or points.is_cuda else available_device(wanted)


def _moved(points: Tensor, name: Any) -> Tensor:
    """The points on a device; unchanged if they do not fit into the memory of a GPU."""
    device = available_device(name)
    needed = 1.6 * points.nbytes + _BYTES_A_POINT * len(points)
    if device.type == "cuda" and not points.is_cuda and needed > _free_memory(device):
        return points
    return points.to(device)


def _free_memory(device: torch.device) -> int:
    """Bytes that torch can still allocate."""
    free, total = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return min(free + unused, allowed - torch.cuda.memory_allocated(device))


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
    _note_names(estimator, found.pieces.names, reset)
    zero = found.first_zero_row() if directions else None
    n_zero = sum(survey.n_zero for survey in found.surveys)
    policy, some = getattr(estimator, "zero_rows", "refuse"), n_zero < found.n_rows
    if zero is not None and (policy != "ignore" or not some):
        raise NoDirectionError(zero, ignorable=policy == "error" and some)
    ignored = zero is not None
    if sample_weight is not None:
        weights = Weights.of(opener.survey_weights(sample_weight, directions), ignored)
    else:
        weights = Weights(0 if ignored else None, found.n_rows - n_zero * ignored, ignored)
    engine = default_engine() if estimator.engine == "auto" else estimator.engine
    if engine not in ("native", "chunked"):
        raise ValueError(f'engine: found {engine!r} for a dask collection; leave it at "auto"')
    blocks = opener.blocks(int(estimator.n_clusters), weights, directions, engine, view)
    if not directions:
        fitted = None if view is None else torch.as_tensor(estimator.cluster_centers_)
        _check_range_of(blocks.layout, found.ends, fitted)
    return ClusterSource(blocks, None, found)


def check_on_cpu(estimator: Any, data: str) -> None:
    """Refuse another device than the CPU for data that only the CPU reads."""
    if estimator.device is not None and str(estimator.device) != "cpu":
        raise ValueError(
            f"device: found {estimator.device!r} for {data}, which is fitted on the CPU; leave it "
            "at None"
        )


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


def _check_squares(blocks: TensorBlocks | SparseBlocks, fitted: Tensor | None) -> None:
    """Refuse rows whose squared distances, to each other or to fitted centers, overflow."""
    _check_range_of(blocks.layout, blocks.ends, fitted)


def _check_range_of(layout: Layout, rows: Tensor, fitted: Tensor | None) -> None:
    """The same for rows with these ends."""
    if fitted is not None:
        rows = torch.cat([rows, fitted.to(rows).view(-1, rows.shape[1])])
    scaled = rows if layout.scaling is None else layout.scaling.apply(rows)
    if not surely_in_range(scaled.cpu().numpy(), layout.n_rows, layout.n_features):
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
        raise ValueError(f"X: found columns {list(names)}; this model was fitted on {list(fitted)}")


def _wanted_device(estimator: Any) -> Any:
    """Where arrays are copied to; None: they stay where they are."""
    if estimator.device is None and estimator.engine == "cuda":
        return "cuda"
    return estimator.device


def _as_tensor(X: np.ndarray, device: Any) -> Tensor:
    if X.flags.writeable:
        points = torch.from_numpy(X)
    else:
        with warnings.catch_warnings():  # nothing here writes to it
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            points = torch.from_numpy(X)
    return points if device is None else _moved(points, device)


def device_of(name: Any) -> torch.device:
    """Return the device; raises `ValueError` for an unknown one, or one that holds no numbers."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r} ({words}); pass cpu or cuda") from None
    if device.type == "meta":
        raise ValueError(f"device: found {name!r}, which holds no numbers; pass cpu or cuda")
    return device


def available_device(name: Any) -> torch.device:
    """Return the device; raises `ValueError` also for one that this machine does not have."""
    device = device_of(name)
    try:
        return torch.empty(0, device=device).device  # "cuda" is one with a number
    except (RuntimeError, AssertionError) as error:
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r}, which is not here ({words})") from None


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
    device = _wanted_device(estimator)
    there = device is None or (estimator.device is None and X.device.type == "cuda")
    return X.detach() if there else _moved(X.detach(), device)


def _weights(sample_weight: Any, n_rows: int, device: torch.device) -> tuple[Tensor | None, float]:
    weights, unit = weights_in_units(sample_weight, n_rows)
    return None if weights is None else torch.from_numpy(weights).to(device), unit


def weights_in_units(sample_weight: Any, n_rows: int) -> tuple[np.ndarray | None, float]:
    """Weights in units of a power of two, and that unit."""
    if sample_weight is None:
        return None, 1.0
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    weights, unit = in_units("sample_weight", checked_weights(sample_weight, n_rows))
    return np.require(weights, requirements="W"), float(unit)  # pandas gives arrays to read only
