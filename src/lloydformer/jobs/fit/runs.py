"""Fits for one or several numbers of clusters; the best silhouette is chosen."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lloydformer.data.blocks import TensorBlocks
from lloydformer.jobs.fit.assignment import assign_rows
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.sample import Sample, draw_sample
from lloydformer.jobs.fit.selection import SelectionCurve, sampled_curve, score_of
from lloydformer.jobs.fit.settings import FitSettings


@dataclass(frozen=True)
class FitRun:
    """The numbers of one fit."""

    k: int
    objective: float
    silhouette: float | None
    n_iter: int
    seconds: float
    criterion: str = "silhouette"
    selected: float | None = None
    """The criterion by which the number of clusters is chosen; its value, if it is another one."""

    @property
    def score(self) -> float:
        """The score by which the number is chosen; below all others if there is none."""
        return -math.inf if self.value is None else self.value

    @property
    def value(self) -> float | None:
        """The value of the criterion."""
        return self.silhouette if self.criterion == "silhouette" else self.selected

    def as_dict(self) -> dict[str, Any]:
        left_out = ("k", "criterion", "selected")
        found = {name: value for name, value in asdict(self).items() if name not in left_out}
        return found if self.criterion == "silhouette" else {**found, self.criterion: self.selected}


@dataclass
class FitRuns:
    """The fits done so far (`done`), the warnings that they gave (`notes`), and advice.

    `select`: the criterion by which the number of clusters is chosen.
    """

    settings: FitSettings
    seed: int = 0
    select: str = "silhouette"
    done: list[FitRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def fit_each(
        self,
        blocks: TensorBlocks,
        numbers: Sequence[int],
        callback: Any = None,
        after: Callable[[FitRun], None] = lambda run: None,
    ) -> FitResult:
        """Fit each number of clusters; returns the one that the criterion chooses.

        Scores are of the same sample for every number, so they can be compared. `callback`
        is the estimators' callback; `after` is called after each fit.
        """
        directions = self.settings.model(1).compares_directions
        blocks = replace(blocks, directions=directions)  # the same for all fits: caches its extent
        sample = draw_sample(blocks, self.seed)
        curve = None
        if len(numbers) > 1:
            curve = sampled_curve(self.select, sample, numbers, self.settings, self.seed)
        best: FitResult | None = None
        for k in numbers:
            result = self._fit(k, blocks, sample, callback)
            run = self._run(k, result, curve)
            better = run.score > max((other.score for other in self.done), default=-math.inf)
            if best is None or (better if curve is None else k == curve.chosen):
                best = result
            self.done.append(run)
            after(run)
        assert best is not None, "numbers is not empty"
        return best

    def _run(self, k: int, result: FitResult, curve: SelectionCurve | None) -> FitRun:
        model, other = result.model, None
        if self.select != "silhouette":
            other = score_of(self.select, result) if curve is None else curve.values[k]
        return FitRun(
            k, model.inertia_, result.silhouette, model.n_iter_, result.seconds, self.select, other
        )

    def _fit(self, k: int, blocks: TensorBlocks, sample: Sample, callback: Any) -> FitResult:
        model = self.settings.model(k, callback=callback)
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(blocks)
        seconds = time.perf_counter() - began
        self.notes += [f"k {k}: {' '.join(str(w.message).split())}" for w in caught]
        assignment = assign_rows(model, blocks, model.labels_)
        return FitResult(model, blocks, assignment, sample, seconds)
