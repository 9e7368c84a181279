"""Batch after batch: centers that are running means of all the rows so far."""

from typing import Any

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.source import Source, View
from lloydformer.estimators.starts import Starts
from lloydformer.plans.contract import Plan, Sums, moved
from lloydformer.plans.session import Session
from lloydformer.solving.solve import Result


class Streaming(Clusterer):
    """Estimators whose centers are means, or directions of sums, and move with each batch."""

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Streaming":
        r"""Move the centers by a batch of rows, as scikit-learn's `MiniBatchKMeans` does.

        Each row goes to its nearest center, and a center that stands for the weight $m_j$ so far
        moves to $(m_j c_j + \sum_i w_i x_i) / (m_j + \sum_i w_i)$ over its rows $i$; a spherical
        one to the direction of the sum. A center without rows stays, whatever `empty` says.

        The first batch chooses the start by `init`, once, and how rows are looked at: in which
        scaling and precision. After `fit`, it goes on from the fitted centers, each with the
        weight of its cluster. `labels_` and `inertia_` are of the batch and the moved centers,
        `n_steps_` is the number of batches.
        """
        first = not hasattr(self, "cluster_centers_")
        source = self._read(X, sample_weight, reset=first)
        layout = source.blocks.layout
        if first:
            self._check_size(source.blocks)
        else:
            self._check_like_before(layout)
        plan = self._plan()
        with self._open(source.blocks) as session:
            before = self._begun(X, session) if first else self._so_far(layout)
            session.forget()
            grown_centers, counts = grown(plan, session, *before)
            centers = layout.returned(grown_centers)
            final = plan.finish(session, layout.place(centers).to(layout.dtype))
            self.labels_ = source.out(session.labels())
        if first:
            self._view = View(layout.origin, layout.scaling)
        self.cluster_centers_, self._counts = source.out(centers), counts.cpu().numpy()
        self.inertia_ = final.inertia
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        self._n_features_out = len(centers)
        return self

    def _keep(self, result: Result, source: Source) -> None:
        super()._keep(result, source)
        assert result.outcome.masses is not None
        self._counts = np.array(result.outcome.masses)
        self.__dict__.pop("n_steps_", None)

    def _begun(self, X: Any, session: Session) -> tuple[Tensor, Tensor]:
        """Initial centers, with weight 0."""
        starts = Starts(self, X, session.layout, check_random_state(self.random_state))
        centers = next(starts(session))
        return centers, centers.new_zeros(len(centers))

    def _so_far(self, layout: Layout) -> tuple[Tensor, Tensor]:
        """The centers in the coordinates of the rows, and the weight that each stands for."""
        placed = layout.place(torch.as_tensor(self.cluster_centers_)).contiguous()
        return placed, torch.as_tensor(self._counts).to(placed)

    def _check_like_before(self, layout: Layout) -> None:
        if self.n_clusters != len(self.cluster_centers_):
            raise ValueError(
                f"n_clusters: found {self.n_clusters}, and {len(self.cluster_centers_)} centers "
                "from before; call fit, or set n_clusters back"
            )
        precision = torch.as_tensor(self.cluster_centers_).dtype
        if layout.dtype != precision:
            raise ValueError(
                f"X: found {layout.dtype}, and centers in {precision} from before; "
                "pass every batch in the same precision"
            )


def grown(plan: Plan, session: Session, centers: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Centers (k, d) and the weights that they stand for (k,), in float64, after a batch."""
    update = plan.step(session, centers.to(session.layout.dtype), 0).update
    assert isinstance(update, Sums), "centers that are running means are sums over masses"
    both = Sums(update.sums + counts[:, None] * centers, update.masses + counts)
    new = moved(both, centers, plan.directions)
    weights = both.sums.norm(dim=1) if plan.directions else both.masses
    met = update.masses > 0
    return torch.where(met[:, None], new, centers), torch.where(met, weights, counts)
