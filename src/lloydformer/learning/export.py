"""Export of trained runs: for each a file of weights, and a card with settings, scores and log."""

import platform
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import Comparison, compare
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.pretrained import save
from lloydformer.learning.symmetric.layer import (
    Frame,
    NumberLayout,
    SymmetricLayer,
    distances_by_product,
)
from lloydformer.learning.symmetric.model import save_symmetric
from lloydformer.learning.symmetric.training import TrainedSymmetric, step_times, weights_of_heads
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import Trained

# Seeds of the tasks that the scores of a card are measured on. They are fixed, so that the scores
# of two cards can be compared.
TEST_SEED = 1
_SYMMETRIC_SEED = 12345

# Tasks that a symmetric layer is scored on together; bounds memory.
_CHUNK = 32


def compare_runs(
    trained: Trained, device: str | torch.device = "cpu", n_tasks: int = 320, n_steps: int = 20
) -> Comparison:
    """Compare all runs with Lloyd's algorithm on new tasks of the first run's family."""
    s = trained.settings
    weights = trained.weights.to(device)
    return compare(s.layer, weights, s.tasks, trained.runs[0].family, n_tasks, n_steps, TEST_SEED)


def export_runs(folder: Path, trained: Trained, comparison: Comparison) -> list[Path]:
    """Write the weights and the card of every run; return the paths of the cards."""
    paths = [folder / name for name in card_names(trained)]
    together = trained.together or len(trained.runs)
    for number, path in enumerate(paths):
        notes = {
            "scores": {
                "relative_objective": trained.history[-1].relative[number],
                "mean_log_objective": {
                    "initial": _round(comparison.lloyd[number, 0]),
                    "lloyd": _round(comparison.lloyd[number, -1]),
                    "transformer": _round(comparison.transformer[number, -1]),
                    "n_steps": comparison.lloyd.shape[1] - 1,
                    "n_tasks": comparison.n_tasks,
                },
            },
            "log": {
                "columns": ["step", "loss", "relative_objective", "learning_rate"],
                "rows": [
                    [e.step, *map(_round, (e.loss[number], e.relative[number], e.rate[number]))]
                    for e in trained.history
                ],
            },
            "trained": _describe_machine(together, trained.seconds),
        }
        save(path, trained.settings, trained.runs[number], trained.weights[number], notes)
    return [path.with_name(f"{path.name}.json") for path in paths]


def card_names(trained: Trained) -> list[str]:
    """Return a name for each run: `d32-k10`, with what distinguishes it from other runs."""
    if len(trained.runs) == 1:
        return [trained.settings.name]
    fields = {"seed": "seed", "lambda": "loss_temperature", "family": "family"}
    values = {word: [getattr(run, name) for run in trained.runs] for word, name in fields.items()}
    differ = [word for word, column in values.items() if len(set(column)) > 1] or ["seed"]
    return [
        "-".join([trained.settings.name, *(f"{word}{values[word][number]}" for word in differ)])
        for number in range(len(trained.runs))
    ]


def export_symmetric(
    path: Path, trained: TrainedSymmetric, chosen: int = 0, n_tasks: int = 320
) -> Path:
    """Write the card PATH.json of the chosen run, with the heads of that run; return its path."""
    heads = trained.runs[chosen].n_heads
    numbers = NumberLayout(heads, trained.settings.n_apart)
    weights = weights_of_heads(trained.weights[chosen], trained.numbers, heads)
    notes = {
        "again": f"lloydformer train --like {path.name}",
        "scores": score_symmetric(numbers, weights, n_tasks),
        "log": {
            "columns": ["update", "loss"],
            "rows": [[update, _round(loss[chosen])] for update, loss in trained.history],
        },
        "trained": _describe_machine(len(trained.runs), trained.seconds),
    }
    return save_symmetric(path, numbers, weights, trained.settings, trained.runs, chosen, notes)


@torch.no_grad()
def score_symmetric(
    numbers: NumberLayout, weights: Float[Tensor, " p"], n_tasks: int
) -> dict[str, Any]:
    """Return mean log objectives on the paper's tasks (d 32, k 10, n 512) after 10 and 20 steps."""
    layer, seed = SymmetricLayer(numbers), torch.tensor([_SYMMETRIC_SEED])
    means: dict[str, dict[str, float]] = {}
    for family in FAMILIES:
        batch = Tasks().draw((family,), seed, torch.tensor(0), n_tasks)
        chunks = [torch.split(part[0], _CHUNK) for part in batch]
        for n_steps in (10, 20):
            objectives = []
            for points, centers in zip(*chunks, strict=True):
                frame = Frame.of(points)
                inside, now = frame.inside(points), frame.inside(centers).unsqueeze(1)
                for time in step_times(n_steps):
                    now = layer(weights[None], inside, now, time)
                nearest = distances_by_product(inside, now)[:, 0].amin(dim=1)
                objectives.append(nearest.sum(dim=1) * frame.unit[:, 0, 0] ** 2)
            mean = torch.cat(objectives).double().log().mean()
            means.setdefault(family, {})[str(n_steps)] = _round(mean)
    return {"mean_log_objective": means, "n_tasks": n_tasks}


def _describe_machine(n_runs: int, seconds: float) -> dict[str, Any]:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    return {
        "device": device,
        "torch": str(torch.__version__),
        "n_runs_together": n_runs,
        "seconds": round(seconds, 1),
    }


def _round(value: float | Tensor) -> float:
    """Return a number with six digits, which are enough to compare runs and keep cards short."""
    return float(f"{float(value):.6g}")
