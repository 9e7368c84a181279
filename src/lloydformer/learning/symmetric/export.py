"""Export of a trained symmetric layer: a card with weights, settings, scores and log."""

import platform
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.families import FAMILIES
from lloydformer.learning.symmetric.initial_weights import weights_of_heads
from lloydformer.learning.symmetric.layer import Frame, SymmetricLayer, distances
from lloydformer.learning.symmetric.loss import times
from lloydformer.learning.symmetric.model import save_symmetric
from lloydformer.learning.symmetric.number_layout import NumberLayout
from lloydformer.learning.symmetric.training import TrainedSymmetric
from lloydformer.learning.tasks import Tasks

_SEED = 12345
"""Seed of the tasks that the scores of a card are measured on."""
_CHUNK = 32
"""Tasks that are scored together; bounds memory."""


def export_symmetric(
    path: Path, trained: TrainedSymmetric, chosen: int = 0, n_tasks: int = 320
) -> Path:
    """Write the card PATH.json of the chosen run, with the heads of that run; return its path."""
    heads = trained.runs[chosen].n_heads
    numbers = NumberLayout(heads, trained.settings.n_apart)
    weights = weights_of_heads(trained.weights[chosen], trained.numbers, heads)
    notes = {
        "again": f"lloydformer train --like {path.name}",
        "scores": scores(numbers, weights, n_tasks),
        "log": {
            "columns": ["update", "loss"],
            "rows": [[update, _short(loss[chosen])] for update, loss in trained.history],
        },
        "trained": {
            "device": _device(),
            "torch": str(torch.__version__),
            "n_runs_together": len(trained.runs),
            "seconds": round(trained.seconds, 1),
        },
    }
    return save_symmetric(path, numbers, weights, trained.settings, trained.runs, chosen, notes)


def scores(numbers: NumberLayout, weights: Float[Tensor, " p"], n_tasks: int) -> dict[str, Any]:
    """Return mean log objectives on the paper's tasks (d 32, k 10, n 512) after 10 and 20 steps."""
    layer = SymmetricLayer(numbers)
    found = {
        family: {str(n): _score(layer, weights, family, n, n_tasks) for n in (10, 20)}
        for family in FAMILIES
    }
    return {"mean_log_objective": found, "n_tasks": n_tasks}


@torch.no_grad()
def _score(
    layer: SymmetricLayer, weights: Float[Tensor, " p"], family: str, n_steps: int, n_tasks: int
) -> float:
    drawn = Tasks().draw((family,), torch.tensor([_SEED]), torch.tensor(0), n_tasks)
    parts = []
    for start in range(0, n_tasks, _CHUNK):
        points, centers = (part[0, start : start + _CHUNK] for part in drawn)
        frame = Frame.of(points)
        inside, now = frame.inside(points), frame.inside(centers).unsqueeze(1)
        for time in times(n_steps):
            now = layer(weights[None], inside, now, time)
        parts.append(distances(inside, now)[:, 0].amin(dim=1).sum(dim=1) * frame.unit[:, 0, 0] ** 2)
    return _short(torch.cat(parts).double().log().mean().item())


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()


def _short(value: float) -> float:
    return float(f"{value:.6g}")
