"""Initial centers for the loop: named methods, an array or a callable, once or several times."""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite, check_array
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.data.namespaces import namespace_of, tensor_of
from lloydformer.estimators.source import is_checked_array
from lloydformer.numerics.checks import largest_value
from lloydformer.numerics.directions import directions
from lloydformer.plans.session import Session
from lloydformer.solving.seeding import (
    kmeans_parallel,
    kmeans_robust,
    random_rows,
    seeds_of_starts,
)

SEARCHED = ("k-means++", "k-means||", "robust")
"""Methods good enough that one start is the default."""


def is_array(init: Any) -> bool:
    return not isinstance(init, str) and not callable(init)


def number_of_starts(estimator: Any) -> int:
    """n_init; "auto" is 1 with a method of `SEARCHED`, an array or a pool, otherwise 10."""
    wanted = estimator.n_init
    if wanted == "auto":
        searched = is_array(estimator.init) or estimator.init in SEARCHED
        wanted = 1 if searched or estimator._n_pool > 1 else 10
    if is_array(estimator.init) and wanted != 1:
        warnings.warn(
            "Explicit initial center position passed: performing only one init in "
            f"{type(estimator).__name__} instead of n_init={wanted}.",
            RuntimeWarning,
            stacklevel=4,
        )
        return 1
    return int(wanted)


class Starts:
    """Yields initial centers (k, d) in the coordinates of the rows, one for each restart.

    An estimator with a pool gets as many for each restart as its pool has members.
    """

    def __init__(self, estimator: Any, X: Any, layout: Layout, rng: np.random.RandomState) -> None:
        self.estimator, self.X, self.layout, self.rng = estimator, X, layout, rng
        self.n_starts, self.per_pool = number_of_starts(estimator), estimator._n_pool
        self.given = self._checked(estimator.init) if is_array(estimator.init) else None

    def __call__(self, session: Session) -> Iterator[Tensor]:
        count = self.n_starts * self.per_pool
        if self.given is not None:
            yield self.given
            yield from self._seeds(session, count - 1)
        elif isinstance(self.estimator.init, str) and self.estimator.init == "k-means++":
            yield from self._seeds(session, count)
        else:
            yield from (self._start(session) for _ in range(count))

    def _seeds(self, session: Session, count: int) -> Iterator[Tensor]:
        """Starts by k-means++."""
        if count > 0:
            for rows in seeds_of_starts(session, int(self.estimator.n_clusters), self.rng, count):
                yield session.gather(rows).double()

    def _start(self, session: Session) -> Tensor:
        init, k = self.estimator.init, int(self.estimator.n_clusters)
        if callable(init):
            return self._checked(init(self.X, k, random_state=self.rng))
        if init == "random":
            return session.gather(random_rows(session, k, self.rng)).double()
        if init == "robust":
            return kmeans_robust(session, k, self.rng)
        return kmeans_parallel(session, k, self.rng)

    def _checked(self, centers: Any) -> Tensor:
        """An array of initial centers in the coordinates of the rows; wrong shapes raise."""
        if namespace_of(centers) is not None:
            centers = tensor_of(centers)
        if isinstance(centers, Tensor) and centers.device == self.layout.device:
            given = centers.detach()  # stays on its device
            if given.device.type != "cpu" and given.shape == self._shape:
                return self._in_range(self.layout.place(given))
        if isinstance(centers, Tensor):
            centers = centers.detach().cpu().numpy()
        if is_checked_array(centers):
            centers = centers.astype(np.float64, copy=False)
            if not np.isfinite(centers).all():
                assert_all_finite(centers)
        else:
            centers = check_array(centers, dtype=np.float64, accept_sparse="csr")
        dense = centers if isinstance(centers, np.ndarray) else centers.toarray()
        wanted = self._shape
        if dense.shape != wanted:
            raise ValueError(
                f"init: the shape of the initial centers {dense.shape} does not match the number "
                f"of clusters {wanted[0]} and the number of features {wanted[1]}"
            )
        return self._in_range(self.layout.place(torch.from_numpy(dense)))

    @property
    def _shape(self) -> tuple[int, int]:
        return int(self.estimator.n_clusters), self.layout.n_features

    def _in_range(self, placed: Tensor) -> Tensor:
        """Refuse centers that are so far from the data that squared distances overflow."""
        layout, far = self.layout, torch.linalg.vector_norm(placed, math.inf).item()
        if not math.isfinite(far):
            raise ValueError("init: found NaN or infinity; pass finite centers")
        if self.estimator._directions:
            return directions("init", placed)
        if far >= largest_value(layout.dtype, layout.n_features, layout.n_rows):
            raise ValueError(
                f"init: found a value {far:.2g} from the middle of the data, whose square "
                f"{layout.dtype} cannot hold; pass centers near the data"
            )
        return placed
