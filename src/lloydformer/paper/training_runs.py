"""The training runs behind fig:tr-cvg-lambda and fig:tr-cvg-vary, in groups.

The runs of a group are trained together, in one batched program. The package has the logs of five
trials of each setting; the paper's protocol has ten.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import CHECKPOINT, Trained, train
from lloydformer.paper.artefact import Record
from lloydformer.paper.scope import Scope
from lloydformer.storage.cache_folder import cache_folder
from lloydformer.storage.model_folder import CONFIG

TRIALS = 10
"""Trials of each setting in the paper."""
TEMPERATURES = (1.0, 0.25, 0.14, 0.1)


@dataclass(frozen=True)
class TrainingGroup:
    """Runs with the same d and k, with codes (d_emb = d + k) or without (d_emb = d)."""

    n_features: int
    n_clusters: int
    codes: str | None = "onehot"

    @property
    def name(self) -> str:
        """Also the stem of its log file."""
        return f"d{self.n_features}-k{self.n_clusters}-{self.codes or 'none'}"

    @property
    def settings(self) -> Settings:
        """The paper's protocol."""
        return Settings(Tasks(self.n_features, self.n_clusters), codes=self.codes)

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Loss temperatures: 0.1, or all four where fig:tr-cvg-lambda varies them."""
        varied = (self.n_features, self.n_clusters) in ((4, 6), (32, 6))
        return TEMPERATURES if varied else (0.1,)

    def runs(self, trials: int, seed: int) -> list[Run]:
        """One run for each temperature and trial; the trials differ by their seeds."""
        return [
            Run(seed + trial, temperature)
            for temperature in self.temperatures
            for trial in range(trials)
        ]


def logs(group: TrainingGroup, scope: Scope) -> Record:
    """Loss and relative objective of each run at each evaluation, and where it was trained."""
    if not scope.full:
        return shipped_logs(group, scope.trials)
    trials = scope.count(TRIALS, TRIALS)
    return written(group, train_group(group, scope, trials), scope.device)


def shipped_logs(group: TrainingGroup, trials: int | None = None) -> Record:
    """The logs in the package, of at most `trials` trials."""
    path = files("lloydformer.paper") / "training_logs" / f"{group.name}.json"
    found: Record = json.loads(path.read_text(encoding="utf-8"))
    seeds = sorted({run["seed"] for run in found["runs"]})[:trials]
    found["runs"] = [run for run in found["runs"] if run["seed"] in seeds]
    return found


def train_group(
    group: TrainingGroup, scope: Scope, trials: int, settings: Settings | None = None
) -> Trained:
    """Train a group, resume its interrupted training, or load it if it is complete.

    Checkpoints are saved in the user's cache folder, since several labels use the same groups.
    """
    settings = settings or group.settings
    name = f"{group.name}-{settings.n_steps}-steps-{trials}-trials-seed-{scope.seed}"
    folder = checkpoint_folder() / f"{name}-{scope.device.replace(':', '-')}"
    begun = (folder / CHECKPOINT / CONFIG).exists()
    runs = group.runs(trials, scope.seed)
    return train(settings, runs, device=scope.device, folder=folder, resume=begun)


def checkpoint_folder() -> Path:
    """The folder of all training checkpoints; delete it to train again."""
    return cache_folder("trainings")


def written(group: TrainingGroup, trained: Trained, device: str) -> Record:
    """The log of a training, in the format of the logs in the package."""
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
    """Four significant digits; None for NaN and infinity."""
    return float(f"{value:.4g}") if abs(value) < float("inf") else None
