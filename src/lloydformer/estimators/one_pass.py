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
    n_rows: int
    directions: bool
    weight_unit: float
    tensors: bool
    """Did tensors come in? Then tensors go out."""
    check: Callable[[], Any]
    """Checks the values of the rows; raises `ValueError`."""

    def labels(self) -> Any:
        """The nearest center of each row, (n,) int32."""
        labels = self._new_labels()
        self._run("labels", labels=labels)
        return self._out(labels)

    def inertia(self) -> float | None:
        """The sum of w d^2 to the nearest centers, half of it for directions.

        None, if a session must compute it: rows of zeros count for nothing, or say what is too
        large for float64.
        """
        spread = np.zeros(len(self.centers))
        zero = self._run("labels", labels=self._new_labels(), spread=spread)
        total = torch.from_numpy(spread).sum().item()  # added up as after a fit
        inertia = total * (0.5 if self.directions else 1.0) * self.weight_unit
        return None if (zero and self.directions) or not math.isfinite(inertia) else inertia

    def distances(self, *, cosine: bool) -> Any:
        """Distances (n, k) to all centers."""
        out = np.empty((self.n_rows, len(self.centers)), self.centers.dtype)
        self._run("distances", out=out, halved=cosine)
        return self._out(out)

    def _new_labels(self) -> np.ndarray:
        return scratch_array(self.n_rows, dtype=np.int32)

    def _run(self, kernel: str, **arguments: Any) -> bool:
        """Run a kernel, and check the rows if it found a reason to; is one of them zero?"""
        finite, largest, zero = self.kernels.run(kernel, centers=self.centers, **arguments)
        good = not zero if self.directions else self._in_range(largest**0.5)
        if not (finite and good):
            self.check()
        return bool(zero)

    def _in_range(self, largest: float) -> bool:
        """Do the rows, with the centers, surely pass `numerics.checks.check_range`?"""
        n_features, dtype = self.centers.shape[1], _DTYPES[self.centers.dtype.char]
        most = 0.99 * largest_value(dtype, n_features, self.n_rows)
        ends = max(largest, float(np.abs(self.centers).max()))
        return ends < most and is_surely_in_range(self.centers, self.n_rows, n_features)

    def _out(self, array: np.ndarray) -> Any:
        return torch.from_numpy(array) if self.tensors else array


def open_one_pass(estimator: Any, X: Any, sample_weight: Any = None) -> OnePass | None:
    """X, checked but for the values of its rows, opened by the kernels; None if they cannot."""
    if is_collection(X):
        return None
    if isinstance(X, Shard):
        X = X.rows
    if estimator.engine not in ("auto", "native") or instruction_set() is None:
        return None
    if not (estimator.device is None or str(estimator.device) == "cpu"):
        return None
    points = _points(estimator, X)
    if points is None:
        return None
    weights, unit = weights_in_units(sample_weight, len(points))
    view, (n_rows, n_features), dtype = estimator._view, points.shape, points.dtype
    origin = _array(view.origin).astype(dtype)
    centers, shift, scale = _array(estimator.cluster_centers_).astype(np.float64), None, None
    if view.scaling is not None:
        shift, scale = _array(view.scaling.shift), _array(view.scaling.scale)
        centers = (centers - shift) / scale
        shift, scale = shift.astype(dtype), scale.astype(dtype)
    opened = kernels().Folds(
        points, origin, shift, scale, weights, estimator._directions, 0.0,
        isinstance(X, TensorBlocks) and X.mapped, threads_for(points.size), 0,
        leaf_rows(_CPU, n_features, int(estimator.n_clusters)),
    )  # fmt: skip
    placed = np.ascontiguousarray((centers - origin.astype(np.float64)).astype(dtype))
    return OnePass(
        opened, placed, n_rows, estimator._directions, unit, isinstance(X, Tensor),
        lambda: estimator._read(X, sample_weight, reset=False),
    )  # fmt: skip


def _points(estimator: Any, X: Any) -> np.ndarray | None:
    """The rows, without a copy if possible; None if the kernels cannot read them."""
    if sparse.issparse(X) or get_namespace(X) is not None:
        return None
    if not isinstance(X, Tensor | TensorBlocks):
        return validate_array(estimator, X, reset=False)
    points = X if isinstance(X, Tensor) else validate_blocks(estimator, X, reset=False)
    if points.device.type != "cpu" or not points.is_contiguous():
        return None
    return validate_tensor(estimator, points, reset=False).numpy()


def _array(values: Any) -> np.ndarray:
    return to_tensor(values).detach().cpu().numpy()
