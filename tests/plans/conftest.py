"""Folds over a few points in tiny leaves."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import State


class Small:
    """Points, their state, and a way to run folds over them, two points at a time."""

    def __init__(self, points, weights=None, leaf=2, **how):
        points = torch.as_tensor(np.asarray(points))
        weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float64)
        self.data = TensorBlocks(points, weights, leaf, torch.zeros_like(points[0]), **how)
        self.state = State.of(self.data)
        self.state.clear()

    def run(self, fold):
        with Chunked(1).over(self.data, self.state) as run:
            return run(fold)

    def step(self, plan, centers):
        """New centers and the step itself."""
        centers = torch.as_tensor(centers, dtype=self.data.dtype)
        step = plan.step(self.run, centers, 0)
        return plan.place(step, centers.double()), step


@pytest.fixture(scope="session")
def small():
    return Small
