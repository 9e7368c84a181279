"""Initial centers of a fit: named methods, an array, a callable, or the last fit's centers."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite, check_array
from torch import Tensor

from lloydformer.data.array_api import get_namespace, to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.engines import choose
from lloydformer.engines.thread_pool import callers_cores
from lloydformer.estimators.source import is_float_array
from lloydformer.numerics.checks import largest_value, refuse_masked
from lloydformer.numerics.scaling import directions
from lloydformer.plans.session import Session
from lloydformer.solving.seeding import (
    kmeans_parallel,
    kmeans_robust,
    random_rows,
    seeds_of_starts,
)
from lloydformer.user_warnings import warn_user

# Methods that look for good centers, so that one restart is the default, as in scikit-learn.
SEARCHED = ("k-means++", "k-means||", "robust")


def is_array(init: Any) -> bool:
    """Return whether `init` holds the centers themselves."""
    return not isinstance(init, str) and not callable(init)


class InitialCenters:
    """Makes the initial centers of a fit, in the coordinates of the rows.

    Parameters
    ----------
    estimator : Clusterer
        Its `init`, `n_init` and `warm_start` are used.
    X : object
        The data as the user passed them, for a callable `init`.
    layout : Layout
        Sizes, precision and coordinates of the rows.
    rng : RandomState
        Source of the draws.
    filled : TensorBlocks or None
        Rows with missing values filled in, from which centers are drawn in place of those of the
        session; None if no value is missing.

    Attributes
    ----------
    n_restarts : int
        Number of restarts.
    given : Tensor of shape (k, d) or None
        Centers that were passed as an array, or those of the last fit.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        layout: Layout,
        rng: np.random.RandomState,
        filled: TensorBlocks | None = None,
    ) -> None:
        self._estimator, self._X, self._layout, self._rng = estimator, X, layout, rng
        self._filled = filled
        self._shape = int(estimator.n_clusters), layout.n_features
        init, n_init = estimator.init, estimator.n_init
        if estimator.warm_start and hasattr(estimator, "cluster_centers_"):
            init, n_init = estimator.cluster_centers_, 1
            shape, wanted = tuple(init.shape), (estimator.n_clusters, estimator.n_features_in_)
            if shape != wanted:
                raise ValueError(
                    f"warm_start: the last centers have the shape {shape}, and {wanted} is wanted "
                    "now (clusters, features); pass warm_start=False to begin again"
                )
        given = is_array(init)
        if n_init == "auto":
            # A search for good centers, or a pool of solutions, makes up for restarts.
            n_init = 1 if given or init in SEARCHED or estimator._n_pool > 1 else 10
        if given and n_init != 1:
            warn_user(
                "Explicit initial center position passed: performing only one init in "
                f"{type(estimator).__name__} instead of n_init={n_init}.",
                RuntimeWarning,
            )
            n_init = 1
        self._init, self.n_restarts = init, int(n_init)
        self.given = self._check(init) if given else None

    def generate(self, session: Session, per_restart: int = 1) -> Iterator[Tensor]:
        """Yield `per_restart` initial centers (k, d) in float64 for each restart.

        Given centers come first; the others of a pool are made by k-means++.
        """
        if self._filled is None or self.given is not None:
            yield from self._generate(session, per_restart)
            return
        # A center has no missing values. Filled in by means, a row with few values lies near the
        # middle and is seldom drawn, which is right: little is known of it.
        with choose(self._estimator.engine, self._filled).open(self._filled) as complete:
            yield from self._generate(complete, per_restart)

    def _generate(self, session: Session, per_restart: int) -> Iterator[Tensor]:
        """Yield the initial centers, drawn from the rows of this session."""
        count, init, k = self.n_restarts * per_restart, self._init, self._shape[0]
        if self.given is not None:
            yield self.given
            count -= 1
        if self.given is not None or (isinstance(init, str) and init == "k-means++"):
            if count > 0:
                # All starts at once: an engine may seed several in one call.
                for rows in seeds_of_starts(session, k, self._rng, count):
                    yield session.gather(rows).double()
            return
        for _ in range(count):
            if callable(init):
                with callers_cores():
                    centers = init(self._X, k, random_state=self._rng)
                yield self._check(centers)
            elif init == "random":
                yield session.gather(random_rows(session, k, self._rng)).double()
            elif init == "robust":
                yield kmeans_robust(session, k, self._rng)
            else:
                yield kmeans_parallel(session, k, self._rng)

    def _check(self, centers: Any) -> Tensor:
        """Return an array of centers in the coordinates of the rows; wrong shapes raise."""
        if get_namespace(centers) is not None:
            centers = to_tensor(centers)
        if isinstance(centers, Tensor) and centers.device == self._layout.device:
            given = centers.detach()
            # On a GPU the values are checked there: a copy to the host would wait for the GPU.
            if given.device.type != "cpu" and given.shape == self._shape:
                return self._check_range(self._layout.to_row_units(given))
        if isinstance(centers, Tensor):
            centers = centers.detach().cpu().numpy()
        if is_float_array(centers):  # scikit-learn's check takes longer than a small fit
            centers = centers.astype(np.float64, copy=False)
            if not np.isfinite(centers).all():
                assert_all_finite(centers)
        else:
            refuse_masked("init", centers)
            centers = check_array(centers, dtype=np.float64, accept_sparse="csr")
        # Sparse centers are as dense as any after the first iteration.
        dense = centers if isinstance(centers, np.ndarray) else centers.toarray()
        if dense.shape != self._shape:
            raise ValueError(
                f"init: the shape of the initial centers {dense.shape} does not match the number "
                f"of clusters {self._shape[0]} and the number of features {self._shape[1]}"
            )
        return self._check_range(self._layout.to_row_units(torch.from_numpy(dense)))

    def _check_range(self, placed: Tensor) -> Tensor:
        """Raise `ValueError` for centers so far from the data that squared distances overflow."""
        layout, far = self._layout, torch.linalg.vector_norm(placed, math.inf).item()
        if not math.isfinite(far):
            raise ValueError("init: found NaN or infinity; pass finite centers")
        if self._estimator._directions:
            return directions("init", placed)
        # Centers may lie outside of the rows, whose own check bounds only distances between rows.
        if far >= largest_value(layout.dtype, layout.n_features, layout.n_rows):
            raise ValueError(
                f"init: found a value {far:.2g} from the middle of the data, whose square "
                f"{layout.dtype} cannot hold; pass centers near the data"
            )
        return placed
