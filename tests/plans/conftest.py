"""Folds over a few points in tiny leaves."""

from weakref import finalize

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.plans.contract import apply_update


class Small:
    """A session over a few points, two points a leaf; closed when it is no longer used."""

    def __init__(self, points, weights=None, leaf=2, **how):
        points = torch.as_tensor(np.asarray(points))
        weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float64)
        self.data = TensorBlocks(points, weights, leaf, torch.zeros_like(points[0]), **how)
        opened = Chunked(1).open(self.data)
        self.session = opened.__enter__()
        finalize(self, opened.__exit__, None, None, None)

    def step(self, plan, centers):
        """New centers and the step itself."""
        centers = torch.as_tensor(centers, dtype=self.data.dtype)
        step = plan.step(self.session, centers, 0)
        return apply_update(step.update, centers.double(), plan.directions), step


@pytest.fixture(scope="session")
def small():
    return Small
