"""Random rows as initial centers."""

import numpy as np
import torch
from sklearn.utils.random import sample_without_replacement
from torch import Tensor

from lloydformer.plans.session import Session


def random_rows(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """Different rows (k,), drawn in proportion to their weights."""
    layout = session.layout
    if layout.weighted:
        return session.draw_by_weight(torch.from_numpy(rng.uniform(size=n_clusters)))
    if n_clusters == 1:
        return torch.tensor([rng.randint(layout.n_rows)], device=layout.device)
    drawn = sample_without_replacement(layout.n_rows, n_clusters, random_state=rng)
    return torch.from_numpy(np.asarray(drawn, dtype=np.int64)).to(layout.device)
