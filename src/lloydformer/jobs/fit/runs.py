"""The runs: one number of clusters, or several of which the best silhouette is chosen."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lloydformer.data.blocks import TensorBlocks
from lloydformer.jobs.fit.found import Found, assigned
from lloydformer.jobs.fit.sample import Sample, draw
from lloydformer.jobs.fit.settings import ALGORITHMS, Settings


@dataclass(frozen=True)
class Run:
    """One fit in a few numbers."""

    k: int
    objective: float
    silhouette: float | None
    n_iter: int
    seconds: float

    @property
    def score(self) -> float:
        """What is compared: one cluster has no silhouette, and is the last choice."""
        return -2.0 if self.silhouette is None else self.silhouette

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "k"}


@dataclass
class Runs:
    """Fits the data for each number of clusters, and keeps what the best one found."""

    settings: Settings
    seed: int = 0
    done: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def over(
        self,
        blocks: TensorBlocks,
        numbers: Sequence[int],
        callback: Any = None,
        after: Callable[[Run], None] = lambda run: None,
    ) -> Found:
        """What was found with the best number of clusters; a single one is the best.

        The sample is the same for every number, so that silhouettes can be compared.
        """
        directions = ALGORITHMS[self.settings.algorithm]._directions
        sample = draw(replace(blocks, directions=directions), self.seed)
        best: Found | None = None
        for k in numbers:
            found = self._fit(k, blocks, sample, callback)
            run = Run(k, found.model.inertia_, found.silhouette, found.model.n_iter_, found.seconds)
            if best is None or run.score > max(other.score for other in self.done):
                best = found
            self.done.append(run)
            after(run)
        assert best is not None, "there is at least one number"
        return best

    def _fit(self, k: int, blocks: TensorBlocks, sample: Sample, callback: Any) -> Found:
        model = self.settings.model(k, callback=callback)
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(blocks)
        seconds = time.perf_counter() - began
        self.notes += [f"k {k}: {' '.join(str(w.message).split())}" for w in said]
        assignment = assigned(model, blocks, model.labels_)
        return Found(model, blocks, assignment, sample, seconds)
