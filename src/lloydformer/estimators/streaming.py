"""Batch after batch: centers that are running means of all the rows so far."""

from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.array_api import to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines import choose
from lloydformer.engines.partitioned import PartitionedBlocks
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.checkpoint import refuse_checkpoint
from lloydformer.estimators.initial_centers import InitialCenters, is_array
from lloydformer.estimators.matching import match_clusters, read_reference_centers
from lloydformer.estimators.parameter_checks import Interval, checked_fit, make_generator
from lloydformer.estimators.source import Source, View, missing_policy
from lloydformer.plans.assign import NearestSums
from lloydformer.plans.contract import Plan, Sums
from lloydformer.plans.session import Session
from lloydformer.solving.driver import Restarts, Result
from lloydformer.solving.minibatches import DrawnRows, MiniBatches, best_on_sample, merge_batch


class Streaming(Clusterer):
    """Base class of estimators that have `partial_fit`: their centers are running means.

    See Also
    --------
    KMeans : Centers are means.
    SphericalKMeans : Centers are directions of sums.

    Examples
    --------
    >>> import lloydformer as lf
    >>> [hasattr(kind, "partial_fit") for kind in (lf.KMeans, lf.SphericalKMeans, lf.SoftKMeans)]
    [True, True, False]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "batch_size": [None, Interval(Integral, 1, None, closed="left")],
        "max_no_improvement": [None, Interval(Integral, 1, None, closed="left")],
        "reassignment_ratio": [Interval(Real, 0, 1, closed="both")],
        "decay": [Interval(Real, 0, 1, closed="both")],
    }

    batch_size: int | Any | None
    max_no_improvement: int | Any | None
    reassignment_ratio: float | Any
    decay: float | Any
    _counts: np.ndarray  # weight of each cluster so far, (k,)

    @checked_fit
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Streaming":
        r"""Update the centers with a batch of rows, as scikit-learn's `MiniBatchKMeans` does.

        Each row goes to its nearest center. A center of total weight $m_j$ so far moves to
        $(m_j c_j + \sum_i w_i x_i) / (m_j + \sum_i w_i)$ over its rows $i$; in `SphericalKMeans` to
        the direction of this sum. A center without rows stays, for every value of `empty`. With
        `decay`, all $m_j$ are multiplied by $1 - \mathrm{decay}$ before each batch.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        Streaming
            The estimator itself. `labels_` and `inertia_` are those of the batch with the updated
            centers; `n_steps_` is the number of batches.

        Raises
        ------
        ValueError
            If the first batch has fewer than `n_clusters` rows, or a later one has other features
            or another precision than the first.

        See Also
        --------
        Clusterer.fit : Iterate over all rows until the centers settle.
        sklearn.cluster.MiniBatchKMeans : The same update in scikit-learn.

        Notes
        -----
        The first batch determines the start by `init`, the precision, and the scaling of data from
        `lf.data.open_dataset`. After `fit`, the centers continue with the weights of their
        clusters.

        Examples
        --------
        >>> import lloydformer as lf
        >>> stream = lf.KMeans(2, init=[[0.0], [10.0]])
        >>> for batch in ([[0.0], [10.0]], [[2.0], [14.0]]):
        ...     stream = stream.partial_fit(batch)
        >>> stream.cluster_centers_[:, 0], stream.n_steps_
        (array([ 1., 12.]), 2)
        """
        if isinstance(X, Shard):
            raise ValueError("X: found a Shard; ranks share a fit, and each partial_fit is its own")
        refuse_checkpoint(self, "partial_fit writes none")
        if (missing := missing_policy(self)) != "error":
            raise ValueError(
                f"missing: found {missing!r} in partial_fit, whose centers are running means of "
                'complete rows; pass missing="error", or call fit'
            )
        first = not hasattr(self, "cluster_centers_")
        source = self._read(X, sample_weight, reset=first)
        layout = source.blocks.layout
        if first:
            self._check_size(source.blocks)
        else:
            self._check_like_before(layout)
        with choose(self.engine, source.blocks).open(source.blocks) as session:
            if first:
                initial = InitialCenters(self, X, layout, make_generator(self.random_state))
                before = next(initial.generate(session))
                given = getattr(self, "reference_centers", None)
                if given is not None:
                    order = match_clusters(before, read_reference_centers(given, layout))
                    before = before[order.to(before.device)]
                # Initial centers have no weight: the first batch alone determines the means.
                counts = before.new_zeros(len(before))
            else:
                before = layout.to_row_units(to_tensor(self.cluster_centers_)).contiguous()
                # Models of 0.2 have no decay, nor have classes of other packages.
                kept = 1.0 - float(getattr(self, "decay", 0.0))
                counts = torch.as_tensor(self._counts * kept).to(before)
            session.forget()  # what seeding has left in the state of the points
            sums, masses, _ = session.fold(NearestSums(before.to(layout.dtype)))
            new, counts = merge_batch(
                Sums(sums, masses),
                before,
                counts,
                directions=self._directions,
                unit=layout.weight_unit,
            )
            centers = layout.to_data_units(new)
            # Centers as the user gets them, rounded: labels belong to those.
            rounded = layout.to_row_units(centers).to(layout.dtype)
            final = self._plan().finish(session, rounded, layout.to_exact_units(centers))
            (inertia,) = layout.apply_weight_unit(final.inertia)
            labels = session.labels()
        self.labels_ = source.to_input_kind(labels)
        if first:
            self._view = View(layout.origin, layout.scaling)
        self.cluster_centers_, self._counts = source.to_input_kind(centers), counts.cpu().numpy()
        self.inertia_ = inertia
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        self._n_features_out = len(centers)
        return self

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        super()._store(result, source, plan)
        assert result.outcome.masses is not None
        self._counts = np.array(result.outcome.masses)
        self.__dict__.pop("n_steps_", None)  # of an earlier `partial_fit`
        if result.outcome.n_steps is not None:
            self.n_steps_ = result.outcome.n_steps

    def _prepare_batches(self, opened: Preparation) -> Prepared:
        plan, blocks, size = self._plan(opened.rng), opened.blocks, self.batch_size
        assert size is not None
        if self.empty != "farthest":
            raise ValueError(
                f"empty: found {self.empty!r} with batch_size={size}; leave it at "
                '"farthest", and set reassignment_ratio instead (0 keeps every center)'
            )
        assert isinstance(blocks, TensorBlocks | SparseBlocks | PartitionedBlocks)
        n_rows, seed = blocks.layout.n_rows, opened.rng.randint(2**31 - 1)
        rows = DrawnRows.by_weight(blocks.weights(0, n_rows), n_rows, seed)
        batches = MiniBatches(
            rows,
            min(int(size), n_rows),
            self.max_no_improvement,
            float(self.reassignment_ratio),
            not is_array(self.init),
        )

        def open_rows(some: Tensor) -> AbstractContextManager[Session]:
            if isinstance(blocks, PartitionedBlocks):
                return blocks.open_subset(some)
            subset = blocks.subset(some)
            return choose(self.engine, subset).open(subset)

        sample = rows.sample(batches.sample_size(int(self.n_clusters)))
        centers = best_on_sample(opened.initial.generate, open_rows, plan, sample)
        return plan, Restarts(1, centers), batches

    def _check_like_before(self, layout: Layout) -> None:
        """Raise `ValueError` for a batch that cannot follow the ones before it."""
        if self.n_clusters != self.cluster_centers_.shape[0]:
            raise ValueError(
                f"n_clusters: found {self.n_clusters}, and {self.cluster_centers_.shape[0]} "
                "centers from earlier rows; call fit, or restore n_clusters"
            )
        precision = to_tensor(self.cluster_centers_).dtype
        if layout.dtype != precision:
            raise ValueError(
                f"X: found {layout.dtype}, and centers in {precision} from before; "
                "pass every batch in the same precision"
            )
