"""`lloydformer train`: train layers, compare them with Lloyd's algorithm, write their weights."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from lloydformer.engines.ranks import Ranks
from lloydformer.learning.export import export_runs, scores
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.training import Evaluation, train
from lloydformer.storage.atomic import replacing


def choose_device(asked: str | None) -> str:
    """The device by name; None chooses CUDA if there is one.

    Raises ValueError for an unknown device, and for CUDA without a GPU.
    """
    cuda = torch.cuda.is_available()
    if asked not in (None, "cpu", "cuda") or (asked == "cuda" and not cuda):
        raise ValueError(f"--device: found {asked!r}; pass cpu" + (" or cuda" if cuda else ""))
    return asked or ("cuda" if cuda else "cpu")


def device_of_rank(device: str, ranks: Ranks) -> str:
    """The device of this rank: with CUDA each rank of a machine has a GPU of its own."""
    if device != "cuda" or ranks.size == 1:
        return device
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


def train_and_export(
    settings: Settings,
    runs: Sequence[Run],
    folder: Path,
    device: str,
    *,
    resume: bool = False,
    force: bool = False,
    callback: Callable[[Evaluation], None] | None = None,
    together: int | None = None,
    ranks: Ranks | None = None,
) -> list[dict[str, Any]]:
    """Train the runs together, and write the weights and the card of each to `folder`.

    Returns a row for each run: its card, its settings, the mean log objectives of Lloyd's
    algorithm and of the trained layer on new tasks. `callback` is called after each evaluation.
    Of several ranks, rank 0 compares and writes; the others return no rows.
    """
    ranks = ranks or Ranks()
    device = device_of_rank(device, ranks)
    trained = train(settings, runs, device=device, folder=folder, resume=resume, force=force,
                    callback=callback, together=together, ranks=ranks)  # fmt: skip
    if ranks.rank > 0:
        return []
    comparison = scores(trained, device)
    cards = export_runs(folder, trained, comparison)
    initial, lloyd = comparison.lloyd[:, 0].tolist(), comparison.lloyd[:, -1].tolist()
    columns = zip(cards, trained.runs, trained.history[-1].relative, initial, lloyd,
                  comparison.transformer[:, -1].tolist(), strict=True)  # fmt: skip
    return [
        {
            "card": str(card), "seed": run.seed, "loss_temperature": run.loss_temperature,
            "family": run.family, "relative_objective": relative,
            "initial": before, "lloyd": reached, "transformer": transformer,
        }
        for card, run, relative, before, reached, transformer in columns
    ]  # fmt: skip


class TrainingPlot:
    """A picture of the evaluations so far, written again after each; a callback of `train`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history: list[Evaluation] = []

    def __call__(self, evaluation: Evaluation) -> None:
        import matplotlib.pyplot as plt  # importing it takes a second

        from lloydformer.plots.training import convergence

        self.history.append(evaluation)
        figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        convergence(self.history, ax=ax)
        with replacing(self.path) as file:
            figure.savefig(file, format=self.path.suffix.lstrip(".") or "png")
        plt.close(figure)
