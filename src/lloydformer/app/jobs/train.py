"""`lloydformer train`: train layers, compare them with Lloyd's algorithm, write their weights."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from lloydformer.data.storage.atomic_files import atomic_write
from lloydformer.engines.ranks import Ranks
from lloydformer.learning.export import compare_runs, export_runs, export_symmetric
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.symmetric.model import SymmetricModel, load_symmetric
from lloydformer.learning.symmetric.training import train_symmetric
from lloydformer.learning.trainer import Evaluation
from lloydformer.learning.training import train


def choose_device(asked: str | None) -> str:
    """Return the device by name; None chooses CUDA if there is one.

    Raises ValueError for an unknown device, and for CUDA without a GPU.
    """
    cuda = torch.cuda.is_available()
    if asked not in (None, "cpu", "cuda") or (asked == "cuda" and not cuda):
        raise ValueError(f"--device: found {asked!r}; pass cpu" + (" or cuda" if cuda else ""))
    return asked or ("cuda" if cuda else "cpu")


def train_and_export(
    settings: Settings,
    runs: Sequence[Run],
    folder: Path,
    device: str,
    ranks: Ranks | None = None,
    **how: Any,
) -> list[dict[str, Any]]:
    """Train the runs together, and write the weights and the card of each to `folder`.

    `how` are other parameters of `learning.train`. Returns a row for each run: its card, its
    settings, the mean log objectives of Lloyd's algorithm and of the trained layer on new tasks.
    With several ranks, rank 0 compares and writes; the others return no rows.
    """
    ranks = ranks or Ranks()
    if device == "cuda" and ranks.size > 1:  # each rank of a machine has a GPU of its own
        device = f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"
    trained = train(settings, runs, device=device, folder=folder, ranks=ranks, **how)
    if ranks.rank > 0:
        return []
    # On new tasks: those of the validation have steered the learning rate.
    comparison = compare_runs(trained, device)
    cards = export_runs(folder, trained, comparison)
    return [
        {
            "card": str(card),
            "seed": run.seed,
            "loss_temperature": run.loss_temperature,
            "family": run.family,
            "relative_objective": trained.history[-1].relative[i],
            "initial": comparison.lloyd[i, 0].item(),
            "lloyd": comparison.lloyd[i, -1].item(),
            "transformer": comparison.transformer[i, -1].item(),
        }
        for i, (card, run) in enumerate(zip(cards, trained.runs, strict=True))
    ]


class TrainingPlot:
    """A picture of the evaluations so far, written again after each; a callback of `train`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history: list[Evaluation] = []

    def __call__(self, evaluation: Evaluation) -> None:
        # Importing matplotlib takes a second; pyplot would keep figures in memory.
        from matplotlib.figure import Figure

        from lloydformer.plots.curves import convergence

        self.history.append(evaluation)
        figure = Figure(figsize=(6, 4), layout="constrained")
        convergence(self.history, ax=figure.subplots())
        with atomic_write(self.path) as file:
            figure.savefig(file, format=self.path.suffix.lstrip(".") or "png")


def train_symmetric_again(
    model: SymmetricModel,
    folder: Path,
    device: str,
    callback: Callable[[int, float], None],
    force: bool = False,
) -> dict[str, Any]:
    """Train a symmetric layer again with the settings of its card (`--like`).

    All runs of the card are trained together, and the chosen one is written to FOLDER/NAME.json.
    `callback` gets the number of updates done, and the loss of the chosen run. Returns a row: the
    new card, its scores, and whether its numbers equal the old ones. Raises ValueError, before
    training, if the file exists and `force` is not set.
    """
    path = folder / model.name
    if path.with_suffix(".json").exists() and not force:
        raise ValueError(f"{path}.json: exists; pass --force, or another --output")
    trained = train_symmetric(
        model.settings,
        model.runs,
        device=device,
        callback=lambda progress: callback(progress[0], progress[1][model.chosen]),
    )
    folder.mkdir(parents=True, exist_ok=True)
    written = export_symmetric(path, trained, model.chosen)
    # Read back, so that the row describes the file and not what was to be written.
    again = load_symmetric(written)
    return {
        "card": str(written),
        "updates": again.settings.n_updates,
        "loss": again.card["log"]["rows"][-1][1],
        "mean_log_objective": again.card["scores"]["mean_log_objective"]["normal"]["20"],
        "same_numbers": bool(torch.equal(model.weights, again.weights)),
        "largest_difference": (model.weights - again.weights).abs().max().item(),
    }
