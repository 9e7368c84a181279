"""The trainings behind fig:tr-cvg-lambda and fig:tr-cvg-vary, group by group.

A group is trained together in one batched program. The package has the logs of five trials of
each setting; the paper's protocol is ten.
"""

import json
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import CHECKPOINT, Trained, train
from lloydformer.paper.artefact import Found
from lloydformer.paper.scope import Scope
from lloydformer.storage.model_folder import CONFIG

TRIALS = 10
"""Of each setting in the paper."""
TEMPERATURES = (1.0, 0.25, 0.14, 0.1)


@dataclass(frozen=True)
class Group:
    """Runs of one d and k, with codes (d_emb = d + k) or without (d_emb = d)."""

    n_features: int
    n_clusters: int
    codes: str | None = "onehot"

    @property
    def name(self) -> str:
        return f"d{self.n_features}-k{self.n_clusters}-{self.codes or 'none'}"

    @property
    def settings(self) -> Settings:
        """The paper's protocol."""
        return Settings(Tasks(self.n_features, self.n_clusters), codes=self.codes)

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The loss is smoothed by 0.1, but where fig:tr-cvg-lambda varies that."""
        varied = (self.n_features, self.n_clusters) in ((4, 6), (32, 6))
        return TEMPERATURES if varied else (0.1,)

    def runs(self, trials: int, seed: int) -> list[Run]:
        return [
            Run(seed + trial, temperature)
            for temperature in self.temperatures
            for trial in range(trials)
        ]


def logs(group: Group, scope: Scope) -> Found:
    """Loss and relative objective of each run at each evaluation, and where it was trained."""
    return _trained_logs(group, scope) if scope.full else shipped(group, scope.trials)


def shipped(group: Group, trials: int | None = None) -> Found:
    """The logs in the package, of at most so many trials."""
    path = files("lloydformer.paper") / "trained" / f"{group.name}.json"
    found: Found = json.loads(path.read_text(encoding="utf-8"))
    seeds = sorted({run["seed"] for run in found["runs"]})[:trials]
    found["runs"] = [run for run in found["runs"] if run["seed"] in seeds]
    return found


def again(group: Group, scope: Scope, trials: int, settings: Settings | None = None) -> Trained:
    """Train a group, or go on where an earlier run of the same was ended, or take what it found.

    Checkpoints are kept in the user's cache folder: several labels need the same groups.
    """
    settings = settings or group.settings
    name = f"{group.name}-{settings.n_steps}-steps-{trials}-trials-seed-{scope.seed}"
    folder = kept() / f"{name}-{scope.device.replace(':', '-')}"
    begun = (folder / CHECKPOINT / CONFIG).exists()
    runs = group.runs(trials, scope.seed)
    return train(settings, runs, device=scope.device, folder=folder, resume=begun)


def kept() -> Path:
    """Where checkpoints of trainings are; delete it to train anew."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lloydformer" / "trainings"


def _trained_logs(group: Group, scope: Scope) -> Found:
    return written(group, again(group, scope, scope.count(TRIALS, TRIALS)), scope.device)


def written(group: Group, trained: Trained, device: str) -> Found:
    """A training as its log, in the form of those in the package."""
    return {
        "n_features": group.n_features, "n_clusters": group.n_clusters, "codes": group.codes,
        "device": device, "seconds": trained.seconds,
        "steps": [e.step for e in trained.history],
        "runs": [
            {
                "seed": run.seed, "loss_temperature": run.loss_temperature,
                "loss": [_short(e.loss[number]) for e in trained.history],
                "relative": [_short(e.relative[number]) for e in trained.history],
            }
            for number, run in enumerate(trained.runs)
        ],
    }  # fmt: skip


def _short(value: float) -> float | None:
    """Four digits; None is a run that has lost its numbers."""
    return float(f"{value:.4g}") if abs(value) < float("inf") else None
