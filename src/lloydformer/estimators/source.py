"""From what users pass (arrays, frames, CSR matrices, tensors) to blocks, and back again.

`read` is the way in, `Source.to_input_kind` the way out.
"""

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
from lloydformer.data.column_statistics import Scaling
from lloydformer.data.layout import Layout, leaf_rows, part_rows
from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.missing import FoundMissing, MaskedBlocks, find_missing
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks, SparseOnGpu, canonicalise_csr
from lloydformer.data.streamed_blocks import StreamedBlocks
from lloydformer.data.unusable import explain_words, refuse_dates, refuse_lazy
from lloydformer.engines import default_engine
from lloydformer.engines.cuda import pin_rows, survey_on_gpu
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.engines.native.engine import column_ends
from lloydformer.engines.native.engine import find_missing as find_missing_by_kernel
from lloydformer.engines.partitioned import DistributedLabels, PartitionedBlocks
from lloydformer.estimators.devices import (
    can_pin,
    check_on_cpu,
    free_memory,
    keep_on_host,
    move_to_device,
    requested_device,
    require_device,
)
from lloydformer.estimators.parameter_checks import check_weights, make_generator
from lloydformer.numerics.checks import (
    FLOATS,
    ArgumentError,
    check_range,
    is_surely_in_range,
    refuse_masked,
)
from lloydformer.numerics.scaling import in_units

V = TypeVar("V")


@dataclass(frozen=True)
class Source:
    """The data of one call, as blocks, and how results are returned to the user."""

    blocks: TensorBlocks | SparseBlocks | StreamedBlocks | PartitionedBlocks
    device: torch.device | None
    """Device of X, to which results are copied; None: results are NumPy arrays."""
    namespace: Any = field(default=None, kw_only=True)
    """The library of the arrays, if it is neither NumPy nor torch."""

    def generator(self, random_state: Any) -> np.random.RandomState:
        """Return the generator of a fit; with ranks, one that draws the same on all of them."""
        return make_generator(random_state)

    @property
    def is_first(self) -> bool:
        """True if this process writes the files of a fit; with ranks, only the first one does."""
        return True

    def on_first(self, function: Callable[[], V]) -> V:
        """Call a function where files are written, and return its result on all ranks."""
        return function()

    def without_zero_rows(self, policy: str) -> "Source":
        """Refuse rows of zeros, which have no direction, or give them weight 0.

        policy: the parameter `zero_rows`; "refuse" if the estimator has none.
        """
        blocks = self.blocks
        assert not isinstance(blocks, PartitionedBlocks)
        zero = find_zero_rows(blocks)
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
            kept = weights.clone()  # the user's own
        kept[zero] = 0
        # The unit follows the largest weight, which may have been that of a row of zeros.
        scaled, unit = in_units("sample_weight", kept.cpu().numpy())
        kept, unit = torch.from_numpy(scaled).to(kept), float(unit) * blocks.weight_unit
        return replace(self, blocks=replace(blocks, sample_weight=kept, weight_unit=unit))

    def to_input_kind(self, values: Tensor | DistributedLabels) -> Any:
        """Return values as arrays of the library of X, on the device of X."""
        if isinstance(values, DistributedLabels):
            values = values.gather()
        if self.namespace is not None:
            return self.namespace.from_dlpack(values.to(self.device))
        return values.cpu().numpy() if self.device is None else values.to(self.device)

    def rows_with(self, labels: Any, label: int) -> Any:
        """Return the numbers of the rows with this label; `labels`: from `to_input_kind`."""
        return self.to_input_kind((to_tensor(labels) == label).nonzero()[:, 0])


@dataclass(frozen=True)
class ClusterSource(Source):
    """The data of one call on a cluster; labels go back as a lazy dask array."""

    collection: Any

    def to_input_kind(self, values: Tensor | DistributedLabels) -> Any:
        if not isinstance(values, DistributedLabels):
            return super().to_input_kind(values)
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


def count_centers(estimator: Any) -> int:
    """Return the number of clusters, or of components of a mixture."""
    # not a property of mixtures: scikit-learn's checks set `n_clusters` wherever there is one
    given = getattr(estimator, "n_clusters", None)
    return int(estimator.n_components if given is None else given)


def find_zero_rows(blocks: TensorBlocks | SparseBlocks | StreamedBlocks) -> Tensor:
    """Return the numbers of the rows that have no direction."""
    found = []
    for start, stop in leaf_ranges(blocks.layout):  # bounds temporary memory
        if isinstance(blocks, SparseBlocks):
            found.append(blocks.zero_rows(start, stop))
        else:
            norms = blocks.read(start, stop).squared_norms()
            found.append((norms == 0).nonzero()[:, 0] + start)
    return torch.cat(found)


@dataclass(frozen=True)
class View:
    """The coordinates of a fit: rows are scaled, then shifted by the origin."""

    origin: Tensor
    scaling: Scaling | None


def read(estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
    """Check the data as scikit-learn does, and return them as blocks.

    reset: True for a fit, whose shards are read by `read_shard` instead; False for rows that are
    compared with fitted centers.
    """
    if isinstance(X, Shard):
        X = X.rows  # ranks share a fit; each predicts its own rows
    if is_collection(X):
        return read_collection(estimator, X, sample_weight, reset=reset)
    namespace = get_namespace(X)
    if namespace is not None:
        source = read(estimator, to_tensor(X), sample_weight, reset=reset)
        return replace(source, namespace=namespace)
    if not isinstance(X, Tensor | TensorBlocks):
        X = validate_array(estimator, X, reset)
    blocks = (
        _sparse_blocks(estimator, X, sample_weight)
        if sparse.issparse(X)
        else _dense_blocks(estimator, X, sample_weight, reset)
    )
    if not estimator._directions:
        _check_squares(estimator, blocks.layout, blocks.ends, reset)
    source = Source(blocks, X.device if isinstance(X, Tensor) else None)
    if estimator._directions:
        source = source.without_zero_rows(getattr(estimator, "zero_rows", "refuse"))
    return source


def _dense_blocks(
    estimator: Any, X: Any, sample_weight: Any, reset: bool
) -> TensorBlocks | StreamedBlocks:
    """Return dense rows with finite values, where they are or on the device that the user wants."""
    own, wanted = X if isinstance(X, TensorBlocks) else None, requested_device(estimator)
    if own is not None:
        points = validate_blocks(estimator, own, reset)
    elif isinstance(X, Tensor):
        points = validate_tensor(estimator, X, reset)
    else:
        # torch warns of read-only arrays. `tensor_from_numpy` silences that, which changes the
        # process-wide filters of warnings: only where it must be.
        points = torch.from_numpy(X) if X.flags.writeable else tensor_from_numpy(X)
        points = points if wanted is None else move_to_device(points, wanted)
    # Folds run there; the points may be on the host if they do not fit.
    device = points.device if wanted is None or points.is_cuda else require_device(wanted)
    k = count_centers(estimator)
    view = None if reset else estimator._view
    seen = own if view is None else view
    scaling, given = None if seen is None else seen.scaling, None
    missing = missing_policy(estimator)
    if scaling is not None and scaling.curves is not None:
        if own is None and missing == "error" and isinstance(X, np.ndarray):
            refuse_not_finite(estimator, X)
        own = _bend(points, own, scaling)
        points, given = own.points.to(points), own.data_points
    filled: FoundMissing | None = None
    if missing != "error":
        if device.type != "cpu" or points.device.type != "cpu":
            raise ValueError(
                f"missing: found {missing!r} for rows on a GPU; pass device=None and rows in CPU "
                'memory, or fill in missing values and pass missing="error"'
            )
        rows = np.ascontiguousarray(points.numpy())
        gaps = find_missing_by_kernel(rows) or find_missing(rows)
        if gaps.n_missing:
            gaps.check(columns=reset)
            filled, points = gaps, torch.from_numpy(gaps.filled)
    # Rows that do not fit into the GPU are read many times by a fit: pinning them pays there, and
    # not for the single pass of `predict`.
    pinnable = reset and device != points.device and can_pin(points)
    if pinnable and scaling is None and not estimator._directions:
        points = keep_on_host(points, device, k)
    # The ends of the columns come with a pass that is needed anyway, and show NaN and infinity.
    survey = survey_on_gpu(points) if points.device.type == "cuda" else None
    ends: Tensor | None = None
    if survey is not None:
        ends = torch.from_numpy(survey.ends)
    elif own is not None and filled is None:
        ends = own.ends.to(points.device)
    elif points.device.type == "cpu" and points.is_contiguous():
        found = column_ends(points.numpy())
        ends = None if found is None else torch.from_numpy(found)
    doubtful = ends is None or (survey is not None and not np.isfinite(survey.ends).all())
    if doubtful and isinstance(X, np.ndarray):
        # It raises nothing if only the kernel is missing.
        refuse_not_finite(estimator, X if filled is None else points.numpy())
    weights, unit = weights_in_units(sample_weight, len(points))
    mass = None if weights is None else torch.from_numpy(weights).to(device)
    blocks = TensorBlocks(
        points,
        mass,
        leaf_rows(device, points.shape[1], k),
        None if view is None else view.origin.to(points),
        estimator._directions,
        scaling,
        None if own is None else own.names,
        own is not None and own.mapped and points.device.type == "cpu",
        part_rows(device, points.shape[1], k),
        ends,
        unit,
        survey,
        is_bent=scaling is not None,
        given=given,
        n_clusters=k,
    )
    if isinstance(X, Tensor | TensorBlocks) and not np.isfinite(blocks.ends.cpu().numpy()).all():
        repair = "remove or fill in such rows" if filled is None else "remove rows with infinity"
        raise ArgumentError(
            "X", f"found NaN or infinity; {repair}{_name_missing_policies(estimator)}"
        )
    if filled is not None:
        observed = torch.from_numpy(filled.observed)
        return MaskedBlocks.mask(blocks, observed, scaled=missing == "ignore")
    if device == points.device:
        return blocks
    memory = pin_rows(points, device) if pinnable else None
    return StreamedBlocks(replace(blocks, sample_weight=None), device, mass, unit, memory)


def missing_policy(estimator: Any) -> str:
    """Return the parameter `missing`; "error" for estimators without it."""
    # Models of 0.2, and classes of other packages, have none.
    return str(getattr(estimator, "missing", "error"))


def refuse_not_finite(estimator: Any, X: Any) -> None:
    """Raise scikit-learn's error for infinity, and one that names `missing` for NaN."""
    try:
        assert_all_finite(X, input_name="X", estimator_name=type(estimator).__name__)
    except ValueError:
        gaps = np.isnan(X) if isinstance(X, np.ndarray) else np.zeros((1, 1), bool)
        if not gaps.any() or np.isinf(X).any():
            raise
        row, column = np.argwhere(gaps)[0]
        raise ValueError(
            f"Input X contains NaN: {int(gaps.sum()):,} missing values, the first in row {row}, "
            f"column {column}. Remove such rows, or fill them in, for example with "
            f"sklearn.impute.SimpleImputer{_name_missing_policies(estimator)}"
        ) from None


def _name_missing_policies(estimator: Any) -> str:
    """Return the end of an error about missing values: what accepts them."""
    ways = 'missing="ignore" or missing="impute"'
    if hasattr(estimator, "missing"):
        return f"; or pass {ways}" if estimator.missing == "error" else ""
    return f"; or use KMeans, RelocatingKMeans or TrimmedKMeans with {ways}"


def _bend(points: Tensor, own: TensorBlocks | None, scaling: Scaling) -> TensorBlocks:
    """Return points after the curves of a scaling; those of given blocks are bent once."""
    if own is None:
        return TensorBlocks(points, scaling=scaling).bent
    # The same scaling for each number of clusters and for the rows of the fit.
    return own.bent if own.scaling is scaling else replace(own, scaling=scaling).bent


def _sparse_blocks(estimator: Any, X: Any, sample_weight: Any) -> SparseBlocks:
    """Return a sparse matrix with finite values as blocks."""
    if (missing := missing_policy(estimator)) != "error":
        raise ValueError(
            f"X: found a sparse matrix with missing={missing!r}; entries that are not stored are "
            'zeros: pass missing="error", or a dense array with NaN for missing values'
        )
    assert_all_finite(X, input_name="X", estimator_name=type(estimator).__name__)
    wanted, k, d = requested_device(estimator), count_centers(estimator), X.shape[1]
    here = wanted is None or not estimator._sparse_on_gpu
    device = torch.device("cpu") if here else require_device(wanted)
    weights, unit = weights_in_units(sample_weight, X.shape[0])
    mass = None if weights is None else torch.from_numpy(weights).to(device)
    leaf, matrix = leaf_rows(device, d, k), canonicalise_csr(X)
    if device.type == "cpu":
        # Parts bound the scores (rows, k); a sparse row itself takes little, whatever d is.
        part = part_rows(device, 1, k)
        return SparseBlocks(matrix, mass, leaf, estimator._directions, part, unit)
    needed, free = SparseOnGpu.bytes_for(matrix, leaf), free_memory(device)
    if needed > free:
        raise ValueError(
            f"device: X needs {needed / 1e9:.1f} GB on the GPU, and {free / 1e9:.1f} GB are free; "
            "pass device=None to use the CPU"
        )
    return SparseOnGpu(matrix, mass, leaf, estimator._directions, None, unit, device=device)


def read_collection(
    estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool
) -> "ClusterSource":
    """Check a dask collection, and return it as blocks that stay where dask computes them."""
    # Dask is an extra, and takes longer to import than the rest of the package.
    from lloydformer.engines.dask.collections import Opener, Weights

    check_on_cpu(estimator, "a dask collection")
    if (missing := missing_policy(estimator)) != "error":
        raise ValueError(
            f"missing: found {missing!r} for a dask collection; fill in missing values first and "
            'pass missing="error", or pass rows in memory'
        )
    directions = estimator._directions
    opener = Opener(X)
    found = opener.collection
    found.check()
    _note_features(estimator, found.n_features, reset)
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
    view = None if reset else estimator._view
    if view is not None and view.scaling is not None and view.scaling.curves is not None:
        raise ValueError(
            "X: found a dask collection, and the model scales columns by logarithms or ranks; "
            "predict and transform accept it; for the score, add up the scores of parts in memory"
        )
    blocks = opener.open(count_centers(estimator), weights, directions, engine, view)
    if not directions:
        _check_squares(estimator, blocks.layout, found.ends, reset)
    return ClusterSource(blocks, None, found)


def validate_array(estimator: Any, X: Any, reset: bool) -> Any:
    """Return X as scikit-learn's checks do: an array of floats row by row, or a CSR matrix.

    Values are not checked. An array that is so already, and whose width is known, skips the
    checks: they take longer than to find the nearest centers of a few rows.
    """
    if is_float_array(X) and not hasattr(estimator, "feature_names_in_"):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        if X.shape[1] == estimator.n_features_in_:
            return X
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], Shard):
        raise ValueError("X: found a list of shards; each rank passes one, lf.Shard(rows)")
    return check_rows(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if estimator._accepts_sparse else False,
        accept_large_sparse=True,
        ensure_all_finite=False,  # the pass that finds the ends of the columns checks the values
    )


def check_rows(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> Any:
    """Return X as an array of floats, by scikit-learn's `validate_data`.

    Raises `ValueError` with the column for dates and words, and for what a mask hides.
    """
    refuse_lazy("X", X)
    refuse_masked("X", X)
    refuse_dates(X)
    try:
        return validate_data(
            estimator, X, reset=reset, dtype=[np.float64, np.float32], order="C", **checks
        )
    except (TypeError, ValueError):
        if (error := explain_words(X)) is not None:
            raise error from None
        raise


def is_float_array(X: Any) -> bool:
    """Return True for an array of floats row by row, as scikit-learn's checks return it."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.size > 0
        and X.flags.c_contiguous
    )


def _check_squares(estimator: Any, layout: Layout, ends: Tensor, reset: bool) -> None:
    """Raise `ValueError` for rows whose squared distances overflow.

    These are the distances between rows; if `reset` is False, also those to the fitted centers.
    """
    if not reset:
        fitted = to_tensor(estimator.cluster_centers_)
        centers = fitted.to(ends).reshape(-1, ends.shape[1])
        centers = centers if layout.scaling is None else layout.scaling.bend(centers)
        ends = torch.cat([ends, centers])
    scaled = ends if layout.scaling is None else layout.scaling.apply(ends)
    # The quick test on the host decides for nearly all data.
    if not is_surely_in_range(scaled.cpu().numpy(), layout.n_rows, layout.n_features):
        check_range("X", scaled, layout.n_rows, layout.n_features)


def _note_names(estimator: Any, names: tuple[str, ...] | None, reset: bool) -> None:
    """Keep or compare the names of the columns, as scikit-learn does."""
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


def _note_features(estimator: Any, n_features: int, reset: bool) -> None:
    """Keep or compare the number of columns, with the words of scikit-learn."""
    if reset:
        estimator.n_features_in_ = n_features
    elif n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def validate_blocks(estimator: Any, X: TensorBlocks, reset: bool) -> Tensor:
    """Return the points of blocks; raise `ValueError` for other columns than before."""
    points = validate_tensor(estimator, X.points, reset)
    _note_names(estimator, X.names, reset)
    return points


def validate_tensor(estimator: Any, X: Tensor, reset: bool) -> Tensor:
    """Return a tensor as the folds read it, on the device that the user wants if it fits there.

    Raises `ValueError` for wrong shapes and dtypes. Values are not checked.
    """
    if X.dtype in (torch.float16, torch.bfloat16):
        X = X.float()  # exact
    elif not (X.is_floating_point() or X.is_complex()):
        X = X.double()  # as scikit-learn converts arrays of integers
    if X.ndim != 2 or X.dtype not in FLOATS:
        raise ValueError(
            f"X: found a tensor of shape {tuple(X.shape)} and dtype {X.dtype}; "
            "pass (n, d) in float32 or float64"
        )
    if 0 in X.shape:
        raise ValueError(
            f"X: found a tensor of shape {tuple(X.shape)}; pass at least one sample and one feature"
        )
    _note_features(estimator, X.shape[1], reset)
    device = requested_device(estimator)
    # engine="cuda" without a device leaves a tensor on the GPU that it is on.
    there = device is None or (estimator.device is None and X.device.type == "cuda")
    return X.detach() if there else move_to_device(X.detach(), device)


def weights_in_units(sample_weight: Any, n_rows: int) -> tuple[np.ndarray | None, float]:
    """Return weights in units of a power of two, and that unit; None if there are no weights."""
    if sample_weight is None:
        return None, 1.0
    if get_namespace(sample_weight) is not None:
        sample_weight = to_tensor(sample_weight)
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    weights, unit = in_units("sample_weight", check_weights(sample_weight, n_rows))
    return np.require(weights, requirements="W"), float(unit)  # pandas gives read-only arrays
