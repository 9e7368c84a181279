"""A recipe and an algorithm on a problem, and what their comparison gives."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy import ndarray

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.verify.compare import ComparedLayer
from lloydformer.verify.margins import assignment_scores, margins
from lloydformer.verify.problems import Problem
from lloydformer.verify.user_algorithm import GuardedAlgorithm, StepAlgorithm

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}
"""Largest difference of centers that counts as equal, in spreads."""
SHARE_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
"""Largest difference of a point's shares in the centers that counts as equal."""
Kind = Literal["assignment", "weight", "center"]


@dataclass(frozen=True)
class Trial:
    """A recipe and an algorithm on a problem.

    seed: of the noise, for recipes that draw. drawn: seed and number of the problem in its family.
    """

    recipe: AnyRecipe
    algorithm: GuardedAlgorithm | StepAlgorithm
    problem: Problem
    n_layers: int
    seed: int = 0
    dtype: torch.dtype = torch.float64
    drawn: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of a circuit from its algorithm on a problem.

    kind: what differs: the shares of a point in the centers, whether a point has weight for a new
    center, or a new center. layer: counted from 0. point, center: those that it is about.
    expected: the value of the algorithm. found: that of the circuit. start: the centers before the
    layer. compared: the layer, started from the algorithm's centers; None if the difference
    appears only in a run over all layers.
    """

    kind: Kind
    layer: int
    point: int | None
    center: int | None
    expected: ndarray | float
    found: ndarray | float
    start: ndarray
    trial: Trial
    compared: ComparedLayer | None = None

    @property
    def nature(self) -> tuple[str, bool, bool, bool]:
        """What a smaller problem with the same difference must share.

        The kind; whether it appears only in a run; whether the point is tied between centers, or
        the center has no points; whether the circuit's value is not a number.
        """
        layer, start, i = self.compared, self.start, self.point
        special = False
        if self.kind == "assignment" and i is not None:
            scores = assignment_scores(self.trial.algorithm, self.trial.problem.points, start)
            special = bool(margins(scores)[i] == 0)
        if self.kind == "center" and layer is not None:
            special = not (layer.assignments.argmax(axis=1) == self.center).any()
        return self.kind, layer is None, special, bool(np.isnan(self.found).any())


@dataclass(frozen=True)
class TrialOutcome:
    """The comparison on one problem.

    deviation: largest difference of centers, in spreads, where rounding does not decide it.
    undecided: number of layers that rounding decides. undefined: number of layers that are left
    out because the algorithm's centers are not numbers.
    """

    trial: Trial
    difference: FirstDifference | None = None
    deviation: float = 0.0
    undecided: int = 0
    undefined: int = 0


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of what is not a number: it is reported as a difference."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
