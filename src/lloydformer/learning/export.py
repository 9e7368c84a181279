"""Export of trained runs: for each a file of weights, and a card with settings, scores and log."""

import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lloydformer.learning.evaluation import Comparison, compare
from lloydformer.learning.pretrained import save
from lloydformer.learning.settings import Run
from lloydformer.learning.training import Trained

TEST_SEED = 1
"""Seed of the tasks that trained layers and Lloyd's algorithm are compared on."""


def card_names(trained: Trained) -> list[str]:
    """Return a name for each run: `d32-k10`, with a suffix if there are several runs."""
    if len(trained.runs) == 1:
        return [trained.settings.name]
    return [f"{trained.settings.name}-{_suffix(run, trained.runs)}" for run in trained.runs]


def _suffix(run: Run, runs: tuple[Run, ...]) -> str:
    """Name what distinguishes a run from the others."""
    parts = {"seed": run.seed, "lambda": run.loss_temperature, "family": run.family}
    fields = {"seed": "seed", "lambda": "loss_temperature", "family": "family"}
    differ = [word for word, name in fields.items() if len({getattr(r, name) for r in runs}) > 1]
    return "-".join(f"{word}{parts[word]}" for word in differ or ["seed"])


def scores(
    trained: Trained, device: str | torch.device = "cpu", n_tasks: int = 320, n_steps: int = 20
) -> Comparison:
    """Compare all runs with Lloyd's algorithm on new tasks of the first run's family."""
    s = trained.settings
    weights = trained.weights.to(device)
    return compare(s.layer, weights, s.tasks, trained.runs[0].family, n_tasks, n_steps, TEST_SEED)


def export_runs(
    folder: Path, trained: Trained, comparison: Comparison, where: dict[str, Any] | None = None
) -> list[Path]:
    """Write the weights and the card of every run; return the paths of the cards.

    `where`: the entry "trained" of the cards, by default `machine(trained)`.
    """
    paths = [folder / name for name in card_names(trained)]
    for number, path in enumerate(paths):
        notes = card_notes(trained, number, comparison) | {"trained": where or machine(trained)}
        save(path, trained.settings, trained.runs[number], trained.weights[number], notes)
    return [path.with_name(f"{path.name}.json") for path in paths]


def card_notes(trained: Trained, number: int, comparison: Comparison) -> dict[str, Any]:
    """Return the entries "scores" and "log" of a run's card."""
    return {
        "scores": {
            "relative_objective": trained.history[-1].relative[number],
            "mean_log_objective": {
                "initial": _rounded(comparison.lloyd[number, 0]),
                "lloyd": _rounded(comparison.lloyd[number, -1]),
                "transformer": _rounded(comparison.transformer[number, -1]),
                "n_steps": comparison.lloyd.shape[1] - 1,
                "n_tasks": comparison.n_tasks,
            },
        },
        "log": {
            "columns": ["step", "loss", "relative_objective", "learning_rate"],
            "rows": [
                [e.step, _short(e.loss[number]), _short(e.relative[number]), _short(e.rate[number])]
                for e in trained.history
            ],
        },
    }


def machine(trained: Trained) -> dict[str, Any]:
    """Return the machine, the version of torch and the seconds of training."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    return {
        "device": device,
        "torch": torch.__version__,
        "n_runs_together": trained.together or len(trained.runs),
        "seconds": round(trained.seconds, 1),
    }


def _rounded(value: Tensor) -> float:
    return _short(float(value))


def _short(value: float) -> float:
    return float(f"{value:.6g}")
