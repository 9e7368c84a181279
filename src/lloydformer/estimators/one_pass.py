"""Labels, inertia and distances of new rows in one pass, which also checks the rows.

The kernels read each row once, and report NaN, infinity, squares that may be too large and rows of
zeros. Only then the rows are checked as before a fit, which raises the error that belongs to them.
Where the kernels cannot read X (sparse matrices, data on a GPU, another engine), there is no such
pass, and a session does the work.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.array_api import get_namespace, to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import Scaling
from lloydformer.data.layout import leaf_rows
from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.shard import Shard
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.engines.native import instruction_set
from lloydformer.engines.native.engine import threads_for
from lloydformer.engines.native.installed import kernels
from lloydformer.estimators.source import (
    validate_array,
    validate_blocks,
    validate_tensor,
    weights_in_units,
)
from lloydformer.numerics.checks import is_surely_in_range, largest_value

_CPU = torch.device("cpu")
_DTYPES = {"f": torch.float32, "d": torch.float64}


@dataclass(frozen=True)
class OnePass:
    """Rows that the kernels have opened, and the fitted centers in their coordinates."""

    kernels: Any
    centers: np.ndarray
    """Rounded to the precision of the rows: to check their range."""
    returned: np.ndarray
    """As users get them (`Layout.to_exact_units`): those that results belong to."""
    n_rows: int
    directions: bool
    weight_unit: float
    tensors: bool
    """True if X is a tensor; then results are tensors."""
    check: Callable[[], Any]
    """Checks the values of the rows; raises `ValueError`."""

    def labels(self) -> Any:
        """Return the nearest center of each row, (n,) int32."""
        labels = scratch_array(self.n_rows, dtype=np.int32)
        self._run("labels", labels=labels)
        return self._out(labels)

    def inertia(self) -> float | None:
        """Return the sum of w d^2 to the nearest centers, half of it for directions.

        None, if a session must compute it: to give rows of zeros weight 0, or to raise the error
        for a sum that float64 cannot hold.
        """
        labels, spread = scratch_array(self.n_rows, dtype=np.int32), np.zeros(len(self.centers))
        zero = self._run("labels", labels=labels, spread=spread)
        # By torch, as after a fit: NumPy adds in another order, and the last bits would differ.
        total = torch.from_numpy(spread).sum().item()
        inertia = total * (0.5 if self.directions else 1.0) * self.weight_unit
        return None if (zero and self.directions) or not math.isfinite(inertia) else inertia

    def distances(self, *, cosine: bool) -> Any:
        """Return the distances (n, k) to all centers."""
        out = np.empty((self.n_rows, len(self.centers)), self.centers.dtype)
        self._run("distances", out=out, halved=cosine)
        return self._out(out)

    def _run(self, kernel: str, **arguments: Any) -> bool:
        """Run a kernel, check the rows if it found a reason to, and return if one of them is zero.

        The kernel reports whether all values are finite, the largest squared norm, and rows of
        zeros.
        """
        finite, largest, zero = self.kernels.run(kernel, returned=self.returned, **arguments)
        if self.directions:
            good = not zero
        else:
            # Sufficient for `numerics.checks.check_range`; 0.99 leaves room for the rounding of
            # the norms. Rows in between are checked exactly by `check`.
            n_features, dtype = self.centers.shape[1], _DTYPES[self.centers.dtype.char]
            most = 0.99 * largest_value(dtype, n_features, self.n_rows)
            end = max(largest**0.5, float(np.abs(self.centers).max()))
            good = end < most and is_surely_in_range(self.centers, self.n_rows, n_features)
        if not (finite and good):
            self.check()
        return bool(zero)

    def _out(self, array: np.ndarray) -> Any:
        return torch.from_numpy(array) if self.tensors else array


def open_one_pass(estimator: Any, X: Any, sample_weight: Any = None) -> OnePass | None:
    """Open X with the kernels, checked but for the values of its rows; None if they cannot."""
    if is_collection(X):
        return None
    if isinstance(X, Shard):
        X = X.rows
    if estimator.engine not in ("auto", "native") or instruction_set() is None:
        return None
    if not (estimator.device is None or str(estimator.device) == "cpu"):
        return None
    if sparse.issparse(X) or get_namespace(X) is not None:
        return None
    if isinstance(X, Tensor | TensorBlocks):
        tensor = X if isinstance(X, Tensor) else validate_blocks(estimator, X, reset=False)
        if tensor.device.type != "cpu" or not tensor.is_contiguous():
            return None
        points = validate_tensor(estimator, tensor, reset=False).numpy()
    else:
        points = validate_array(estimator, X, reset=False)
    weights, unit = weights_in_units(sample_weight, len(points))
    view, (n_rows, n_features), dtype = estimator._view, points.shape, points.dtype
    origin = _array(view.origin).astype(dtype)
    centers, shift, scale = _array(estimator.cluster_centers_).astype(np.float64), None, None
    if view.scaling is not None:
        shift, scale = _array(view.scaling.shift), _array(view.scaling.scale)
        if view.scaling.curves is not None:
            centers, points = view.scaling.curves.bend(centers), _bend(points, X, view.scaling)
        centers = (centers - shift) / scale
        shift, scale = shift.astype(dtype), scale.astype(dtype)
    opened = kernels().Folds(
        points,
        origin,
        shift,
        scale,
        weights,
        estimator._directions,
        0.0,  # no bound of the norms: it would take a pass over the rows
        isinstance(X, TensorBlocks) and X.mapped,
        threads_for(points.size, n_clusters=int(estimator.n_clusters)),
        0,  # no memory for bounds of distances, which pay over several iterations only
        leaf_rows(_CPU, n_features, int(estimator.n_clusters)),
    )
    # Shifted in float64 and rounded once, as `Layout.to_row_units` does for a session.
    placed = np.ascontiguousarray((centers - origin.astype(np.float64)).astype(dtype))
    return OnePass(
        opened,
        placed,
        np.ascontiguousarray(centers),
        n_rows,
        estimator._directions,
        unit,
        isinstance(X, Tensor),
        lambda: estimator._read(X, sample_weight, reset=False),
    )


def _bend(points: np.ndarray, X: Any, scaling: Scaling) -> np.ndarray:
    """Return rows after the curves of the scaling; those of given blocks are bent once."""
    if isinstance(X, TensorBlocks) and X.scaling is scaling:
        return X.bent.points.numpy()
    assert scaling.curves is not None
    return np.ascontiguousarray(scaling.curves.bend(points))


def _array(values: Any) -> np.ndarray:
    return to_tensor(values).detach().cpu().numpy()
