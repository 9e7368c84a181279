"""A trained symmetric layer: a card in JSON that holds its numbers, by name and invariant."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.symmetric import symmetric
from lloydformer.learning.cards import FORMAT, SYMMETRIC, located, not_a_card, read_card
from lloydformer.learning.symmetric.circuit import Learned
from lloydformer.learning.symmetric.layer import SymmetricLayer
from lloydformer.learning.symmetric.numbers import INVARIANTS, Numbers
from lloydformer.learning.symmetric.settings import SymmetricRun, SymmetricSettings
from lloydformer.storage.atomic import write_whole


@dataclass(frozen=True)
class SymmetricModel:
    """Trained numbers, with the card that says how they were made.

    settings, runs: what was trained together. chosen: which of the runs this is.
    """

    name: str
    numbers: Numbers
    weights: Float[Tensor, "1 p"]
    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    chosen: int
    card: dict[str, Any]

    @property
    def layer(self) -> SymmetricLayer:
        return SymmetricLayer(self.numbers, by_differences=True)

    @property
    def theta(self) -> Float[Tensor, "p f"]:
        """Each number's weights of the invariants."""
        return self.weights.view(self.numbers.count, len(INVARIANTS))

    def circuit(self, n_features: int, n_clusters: int) -> Circuit:
        """The same steps as a literal circuit, to look into."""
        weights = tuple(self.weights.flatten().tolist())
        learned = Learned(weights, self.numbers.n_heads, self.numbers.n_apart)
        return Circuit(symmetric(learned), n_features, n_clusters)


def load_symmetric(pretrained: str | Path = SYMMETRIC) -> SymmetricModel:
    """The package's model, or one by the path of its card."""
    folder, name = located(pretrained)
    return read_symmetric(folder, name, read_card(folder, name))


def read_symmetric(folder: Traversable, name: str, card: dict[str, Any]) -> SymmetricModel:
    try:
        if card.get("kind") != SYMMETRIC:
            raise ValueError(f"its kind is {card.get('kind')!r}, not {SYMMETRIC!r}")
        numbers = Numbers(card["n_heads"], card["n_apart"])
        settings = SymmetricSettings.read(card["settings"])
        runs, chosen = tuple(SymmetricRun(**run) for run in card["runs"]), int(card["chosen"])
        if not 0 <= chosen < len(runs):
            raise ValueError(f"it has {len(runs)} runs, and run {chosen} is chosen")
        weights = _flat(numbers, card["numbers"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise not_a_card(f"{folder}/{name}", error) from None
    return SymmetricModel(name, numbers, weights, settings, runs, chosen, card)


def save_symmetric(
    path: Path,
    numbers: Numbers,
    weights: Float[Tensor, " p"],
    settings: SymmetricSettings,
    runs: tuple[SymmetricRun, ...],
    chosen: int = 0,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """PATH.json, in which every number can be read; notes: scores, history, machine."""
    card = {
        "library": "lloydformer",
        "format": FORMAT,
        "kind": SYMMETRIC,
        "name": path.name,
        "n_heads": numbers.n_heads,
        "n_apart": numbers.n_apart,
        "numbers": named(numbers, weights),
        "settings": settings.written(),
        "runs": [asdict(run) for run in runs],
        "chosen": chosen,
        **(notes or {}),
    }
    written = path.with_name(f"{path.name}.json")
    write_whole(written, json.dumps(card, indent=1) + "\n")
    return written


def named(numbers: Numbers, weights: Float[Tensor, " p"]) -> dict[str, list[dict[str, float]]]:
    """Each number's weights by invariant, in the fewest digits that tell them apart."""
    theta = weights.float().view(numbers.count, len(INVARIANTS)).cpu().numpy()
    return {
        name: [
            {which: float(str(np.float32(w))) for which, w in zip(INVARIANTS, row, strict=True)}
            for row in theta[numbers.rows(name)]
        ]
        for name in numbers.sizes
    }


def _flat(numbers: Numbers, found: dict[str, list[dict[str, float]]]) -> Float[Tensor, "1 p"]:
    sizes = {name: len(rows) for name, rows in found.items()}
    if sizes != numbers.sizes or list(sizes) != list(numbers.sizes):
        raise ValueError(f"it has numbers {sizes}, and its layer {numbers.sizes}")
    rows = [row for part in found.values() for row in part]
    if any(set(row) != set(INVARIANTS) for row in rows):
        raise ValueError(f"its invariants are not {', '.join(INVARIANTS)}")
    flat = torch.tensor([[float(row[name]) for name in INVARIANTS] for row in rows]).view(1, -1)
    if not torch.isfinite(flat).all():
        raise ValueError("found weights that are not numbers")
    return flat
