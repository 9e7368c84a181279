"""`lloydformer train --like CARD`: train a symmetric layer again with the settings of its card."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lloydformer.learning.cards import SYMMETRIC, located, read_card
from lloydformer.learning.symmetric.export import export_symmetric
from lloydformer.learning.symmetric.model import SymmetricModel, load_symmetric
from lloydformer.learning.symmetric.training import train_symmetric


def is_symmetric(card: str) -> bool:
    """Whether a card, by name or path, is that of a symmetric layer."""
    return read_card(*located(card)).get("kind") == SYMMETRIC


class SymmetricTraining:
    """Train all runs of a card together, and write the chosen one to FOLDER/NAME.json.

    Raises ValueError if that file exists and `force` is not set.
    """

    def __init__(self, card: str, folder: Path, force: bool) -> None:
        self.model = load_symmetric(card)
        self.folder = folder
        if self._path.with_suffix(".json").exists() and not force:
            raise ValueError(f"{self._path}.json: exists; pass --force, or another --output")

    @property
    def _path(self) -> Path:
        return self.folder / self.model.name

    @property
    def n_updates(self) -> int:
        return self.model.settings.n_updates

    def run(self, device: str, callback: Callable[[int, float], None]) -> dict[str, Any]:
        """Train; `callback` gets the number of updates done, and the loss of the chosen run.

        Returns a row: the new card, its scores, and whether its numbers equal the old ones.
        """
        model = self.model
        trained = train_symmetric(
            model.settings, model.runs, device=device,
            callback=lambda heard: callback(heard[0], heard[1][model.chosen]),
        )  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        written = export_symmetric(self._path, trained, model.chosen)
        return {"card": str(written), **_compared(model, load_symmetric(written))}


def _compared(before: SymmetricModel, now: SymmetricModel) -> dict[str, Any]:
    """The scores of the new model, and its largest difference from the old one."""
    same = bool(torch.equal(before.weights, now.weights))
    scores = now.card["scores"]["mean_log_objective"]["normal"]
    return {
        "updates": now.settings.n_updates, "loss": now.card["log"]["rows"][-1][1],
        "mean_log_objective": scores["20"], "same_numbers": same,
        "largest_difference": (before.weights - now.weights).abs().max().item(),
    }  # fmt: skip
