"""One pass over the points, beside the matrix product that it contains."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.native import Native
from lloydformer.jobs.bench.problem import BenchProblem, Fitted, Work
from lloydformer.plans.assign import Nearest
from lloydformer.plans.session import Session


@dataclass(frozen=True)
class PassContender:
    """One pass of the native engine over all points: labels, sums and masses, without bounds."""

    name: str = "lloydformer"
    package: str = "lloydformer"

    def does(self, work: str) -> bool:
        return work == "pass"

    def prepared(self, problem: BenchProblem) -> Work:
        points = torch.from_numpy(problem.points)
        blocks = TensorBlocks(points, seen_from=torch.zeros_like(points[0]))
        opened = ExitStack()  # closed with the work that holds it
        session = opened.enter_context(Native(bounded=False).open(blocks))
        return partial(self._pass, opened, session, problem)

    def _pass(
        self, opened: ExitStack, session: Session, problem: BenchProblem, seed: int
    ) -> Fitted:
        assert problem.start is not None
        session.forget()
        session.fold(Nearest(torch.from_numpy(problem.start)))
        return Fitted(problem.start, 1, session.labels().numpy())


@dataclass(frozen=True)
class ProductContender:
    """The matrix product of points and centers alone, which every pass contains."""

    name: str
    package: str
    product: Callable[..., Any]
    array: Callable[[np.ndarray], Any]

    def does(self, work: str) -> bool:
        return work == "pass"

    def prepared(self, problem: BenchProblem) -> Work:
        assert problem.start is not None
        points, centers = self.array(problem.points), self.array(problem.start)
        product = self.product(points, centers.T)
        return partial(self._multiply, points, centers, product, problem)

    def _multiply(
        self, points: Any, centers: Any, product: Any, problem: BenchProblem, seed: int
    ) -> Fitted:
        assert problem.start is not None
        self.product(points, centers.T, out=product)
        return Fitted(problem.start, 1)


PASS = PassContender()
PRODUCTS = (
    ProductContender("sgemm of NumPy", "numpy", np.matmul, np.asarray),
    ProductContender("sgemm of torch", "torch", torch.mm, torch.from_numpy),
)
