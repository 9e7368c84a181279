"""The trainings behind the paper's figures: logs in the package, new ones, and trained layers.

The runs of a group are trained together, in one batched program. The package has the logs of five
trials of each setting; the paper's protocol has ten.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

from lloydformer.data.storage.atomic_files import cache_folder
from lloydformer.data.storage.model_folder import CONFIG
from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import CHECKPOINT, Trained, train
from lloydformer.paper.artefact import Piece, Record, Scope

# Trials of each setting, and temperatures of the smoothed loss, in the paper.
TRIALS = 10
TEMPERATURES = (1.0, 0.25, 0.14, 0.1)


@dataclass(frozen=True)
class TrainingGroup:
    """Runs with the same d and k, with codes (d_emb = d + k) or without (d_emb = d).

    as_in_paper: the layer as the text prints it (eq:l2-trf-updates), which is not that of the
    authors' runs.
    """

    n_features: int
    n_clusters: int
    codes: str | None = "onehot"
    as_in_paper: bool = False

    @property
    def name(self) -> str:
        """Also the stem of its log file."""
        end = "-printed" if self.as_in_paper else ""
        return f"d{self.n_features}-k{self.n_clusters}-{self.codes or 'none'}{end}"

    @property
    def settings(self) -> Settings:
        """The paper's protocol."""
        tasks = Tasks(self.n_features, self.n_clusters)
        if self.as_in_paper:  # eq:l2-trf-updates: dot products in the decoder, matrices alone
            return Settings(tasks, codes=self.codes, decoder="dot", bias=False)
        return Settings(tasks, codes=self.codes)

    def runs(self, trials: int, seed: int) -> list[Run]:
        """Return a run for each temperature and trial; the trials differ by their seeds.

        The temperature is 0.1, or all of TEMPERATURES where fig:tr-cvg-lambda varies it.
        """
        is_varied = (self.n_features, self.n_clusters) in ((4, 6), (32, 6))
        return [
            Run(seed + trial, temperature)
            for temperature in (TEMPERATURES if is_varied else (0.1,))
            for trial in range(trials)
        ]


# The groups whose layers several labels apply: the paper's embedding, that without codes, and the
# model of the text.
PROPOSED, ABLATION = TrainingGroup(32, 10), TrainingGroup(32, 10, codes=None)
PRINTED = TrainingGroup(32, 10, as_in_paper=True)
_ABLATION_WEIGHTS = Path(__file__).parent / "weights" / "d32-k10-ablation.json"
# Number of newly trained layers over which the full protocol averages, chosen by hand: the authors
# take the median of ten, but every layer is applied to all tasks of every label.
N_LAYERS = 3


def load_layers(
    scope: Scope, group: TrainingGroup = PROPOSED, n_layers: int = N_LAYERS
) -> list[Pretrained]:
    """Return the layer in the package; for a full scope, the first trials of a new training."""
    if not scope.full:
        return [load("d32-k10" if group == PROPOSED else _ABLATION_WEIGHTS)]
    # All ten trials, as fig:tr-cvg-vary has them: both then share one training on disk.
    trained = train_group(group, scope, TRIALS)
    return [
        Pretrained(group.name, trained.settings, trained.runs[number], row.unsqueeze(0), {})
        for number, row in enumerate(trained.weights[:n_layers])
    ]


def training_pieces(
    scope: Scope, groups: Mapping[str, TrainingGroup] | None = None
) -> dict[str, Piece]:
    """Return pieces that train the layers, which later pieces load; none unless scope is full.

    groups: by name of the piece; one piece `training` of PROPOSED by default.
    """
    if not scope.full:
        return {}
    groups = groups or {"training": PROPOSED}
    return {name: partial(train_layers, scope, group) for name, group in groups.items()}


def train_layers(scope: Scope, group: TrainingGroup = PROPOSED) -> Record:
    """Train the layers of a group; return its name and the seeds."""
    seeds = [layer.run.seed for layer in load_layers(scope, group)]
    return {"trained": group.name, "seeds": seeds}


def load_printed_layers(scope: Scope) -> list[Pretrained]:
    """Return new layers of the model that the text prints; none unless the scope is full."""
    return load_layers(scope, PRINTED) if scope.full else []


def load_logs(group: TrainingGroup, scope: Scope) -> Record:
    """Return loss and relative objective of each run at each evaluation, and the device.

    They come from the package; for a full scope, from a new training.
    """
    if not scope.full:
        return shipped_logs(group, scope.trials)
    trained = train_group(group, scope, scope.count(TRIALS, TRIALS))
    return {
        "n_features": group.n_features,
        "n_clusters": group.n_clusters,
        "codes": group.codes,
        "device": scope.device,
        "seconds": trained.seconds,
        "steps": [evaluation.step for evaluation in trained.history],
        "runs": [
            {
                "seed": run.seed,
                "loss_temperature": run.loss_temperature,
                "loss": [_shorten(e.loss[number]) for e in trained.history],
                "relative": [_shorten(e.relative[number]) for e in trained.history],
            }
            for number, run in enumerate(trained.runs)
        ],
    }


def shipped_logs(group: TrainingGroup, trials: int | None = None) -> Record:
    """Return the logs in the package, of at most `trials` trials."""
    path = files("lloydformer.paper") / "training_logs" / f"{group.name}.json"
    log: Record = json.loads(path.read_text(encoding="utf-8"))
    # the first trials of each temperature have the smallest seeds
    seeds = sorted({run["seed"] for run in log["runs"]})[:trials]
    log["runs"] = [run for run in log["runs"] if run["seed"] in seeds]
    return log


def train_group(group: TrainingGroup, scope: Scope, trials: int) -> Trained:
    """Train a group, resume its interrupted training, or load it if it is complete.

    Checkpoints are saved in the user's cache folder, since several labels use the same groups.
    """
    settings = group.settings
    # the folder names all that differs between trainings, so that no other one is resumed
    name = f"{group.name}-{settings.n_steps}-steps-{trials}-trials-seed-{scope.seed}"
    folder = checkpoint_folder() / f"{name}-{scope.device.replace(':', '-')}"
    resume = (folder / CHECKPOINT / CONFIG).exists()
    runs = group.runs(trials, scope.seed)
    return train(settings, runs, device=scope.device, folder=folder, resume=resume)


def checkpoint_folder() -> Path:
    """Return the folder of all training checkpoints; delete it to train again."""
    return cache_folder("trainings")


def _shorten(value: float) -> float | None:
    """Return four significant digits; None for NaN and infinity, which JSON cannot hold."""
    return float(f"{value:.4g}") if abs(value) < float("inf") else None
