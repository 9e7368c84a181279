"""`lloydformer train --like CARD`: train a symmetric layer as its card says."""

from pathlib import Path
from typing import Any

import torch

from lloydformer.cli.terminal import print_json, print_table, progress, stderr
from lloydformer.learning.cards import SYMMETRIC, located, read_card
from lloydformer.learning.symmetric.export import export_symmetric
from lloydformer.learning.symmetric.model import SymmetricModel, load_symmetric
from lloydformer.learning.symmetric.training import Heard, TrainedSymmetric, train_symmetric


def is_symmetric(card: str) -> bool:
    return read_card(*located(card)).get("kind") == SYMMETRIC


def train_like(card: str, folder: Path, device: str, force: bool, json: bool) -> None:
    """All runs of the card together, as before; FOLDER/NAME.json gets the one that is chosen."""
    model = load_symmetric(card)
    path = folder / model.name
    if path.with_suffix(".json").exists() and not force:
        raise ValueError(f"{path}.json: exists; pass --force, or another --output")
    trained = _trained(model, device)
    folder.mkdir(parents=True, exist_ok=True)
    written = export_symmetric(path, trained, model.chosen)
    row = _compared(model, load_symmetric(written), str(written))
    if json:
        return print_json({"settings": model.settings.written(), "rows": [row]})
    print_table(list(row), [[str(value) for value in row.values()]])
    return None


def _trained(model: SymmetricModel, device: str) -> TrainedSymmetric:
    n_updates, heard = model.settings.n_updates, list[Heard]()
    with progress("train", n_updates) as bar:

        def hear(now: Heard) -> None:
            heard.append(now)
            bar.reach(now[0], f"train: loss {now[1][model.chosen]:.4f}")

        try:
            return train_symmetric(model.settings, model.runs, device=device, callback=hear)
        except KeyboardInterrupt:
            done = heard[-1][0] if heard else 0
            stderr.print(f"stopped after update {done} of {n_updates}; nothing is written")
            raise


def _compared(before: SymmetricModel, now: SymmetricModel, written: str) -> dict[str, Any]:
    """How far the numbers are from those of the card that they were trained after."""
    same = bool(torch.equal(before.weights, now.weights))
    scores = now.card["scores"]["mean_log_objective"]["normal"]
    return {
        "card": written, "updates": now.settings.n_updates, "loss": now.card["log"]["rows"][-1][1],
        "mean_log_objective": scores["20"], "same_numbers": same,
        "largest_difference": (before.weights - now.weights).abs().max().item(),
    }  # fmt: skip
