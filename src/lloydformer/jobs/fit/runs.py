"""Fits for one or several numbers of clusters; the best silhouette is chosen."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lloydformer.data.blocks import TensorBlocks
from lloydformer.jobs.fit.assignment import assign_rows
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.sample import Sample, draw_sample
from lloydformer.jobs.fit.settings import FitSettings


@dataclass(frozen=True)
class FitRun:
    """The numbers of one fit."""

    k: int
    objective: float
    silhouette: float | None
    n_iter: int
    seconds: float

    @property
    def score(self) -> float:
        """The silhouette; below all silhouettes (-1 to 1) if there is none."""
        return -2.0 if self.silhouette is None else self.silhouette

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "k"}


@dataclass
class FitRuns:
    """The fits done so far (`done`) and the warnings that they gave (`notes`)."""

    settings: FitSettings
    seed: int = 0
    done: list[FitRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fit_each(
        self,
        blocks: TensorBlocks,
        numbers: Sequence[int],
        callback: Any = None,
        after: Callable[[FitRun], None] = lambda run: None,
    ) -> FitResult:
        """Fit each number of clusters; returns the fit with the best silhouette.

        Silhouettes are of the same sample for every number, so they can be compared. `callback`
        is the estimators' callback; `after` is called after each fit.
        """
        directions = self.settings.model(1).compares_directions
        blocks = replace(blocks, directions=directions)  # the same for all fits: caches its extent
        sample = draw_sample(blocks, self.seed)
        best: FitResult | None = None
        for k in numbers:
            result = self._fit(k, blocks, sample, callback)
            model = result.model
            run = FitRun(k, model.inertia_, result.silhouette, model.n_iter_, result.seconds)
            if best is None or run.score > max(other.score for other in self.done):
                best = result
            self.done.append(run)
            after(run)
        assert best is not None, "numbers is not empty"
        return best

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
