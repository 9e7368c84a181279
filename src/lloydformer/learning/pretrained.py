"""Trained weights: a safetensors file and a card in JSON, those of the package and one's own."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.learning.cards import FORMAT, SYMMETRIC, located, not_a_card, read_card
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.stacked import StackedLayer
from lloydformer.storage.atomic import replacing, write_whole


@dataclass(frozen=True)
class Pretrained:
    """A trained layer, with the card that says how it was made."""

    name: str
    settings: Settings
    run: Run
    weights: Float[Tensor, "1 p"]
    card: dict[str, Any]

    @property
    def layer(self) -> StackedLayer:
        s = self.settings
        return StackedLayer(s.recipe, s.n_features, s.n_clusters)

    def circuit(self) -> Circuit:
        """The same as a `Circuit`, to look inside: its weights are parameters."""
        circuit = self.layer.circuit(0)
        named = {name: part[0] for name, part in self.layer.named(self.weights).items()}
        circuit.load_state_dict(named)
        return circuit.eval()


def load(pretrained: str | Path) -> Pretrained:
    """Weights of one d and k by name (`available()`), or by the path of a card or of weights."""
    folder, name = located(pretrained)
    return _read(folder, name)


def save(path: Path, settings: Settings, run: Run, weights: Tensor, notes: dict[str, Any]) -> None:
    """PATH.safetensors and then PATH.json, which knows what the former must hold."""
    layer = StackedLayer(settings.recipe, settings.n_features, settings.n_clusters)
    parts = layer.named(weights.reshape(1, -1)).items()
    data = save_tensors({name: part[0].detach().cpu().contiguous() for name, part in parts})
    card = {
        "library": "lloydformer",
        "format": FORMAT,
        "name": path.name,
        "sha256": sha256(data).hexdigest(),
        "settings": settings.written(),
        "run": asdict(run),
        **notes,
    }
    with replacing(path.with_name(f"{path.name}.safetensors")) as file:
        file.write(data)
    write_whole(path.with_name(f"{path.name}.json"), json.dumps(card, indent=1) + "\n")


def _read(folder: Traversable, name: str) -> Pretrained:
    where = f"{folder}/{name}"
    card = read_card(folder, name)
    if card.get("kind") == SYMMETRIC:
        raise ValueError(f"{where}.json: is symmetric, for every d and k; use load_symmetric")
    try:
        data = (folder / f"{name}.safetensors").read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{where}.safetensors: there is no such file beside its card") from None
    if sha256(data).hexdigest() != card.get("sha256"):
        raise ValueError(
            f"{where}.safetensors: is not whole (its content is not what its card says)"
        )
    try:
        settings, run = Settings.read(card["settings"]), Run(**card["run"])
        weights = _flat(StackedLayer(settings.recipe, settings.n_features, settings.n_clusters),
                        load_tensors(data))  # fmt: skip
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise not_a_card(where, error) from None
    return Pretrained(name, settings, run, weights, card)


def _flat(layer: StackedLayer, tensors: dict[str, Tensor]) -> Float[Tensor, "1 p"]:
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if found != layer.shapes:
        raise ValueError("its weights are not those of its settings")
    row = torch.cat([tensors[name].float().flatten() for name in layer.shapes])
    if not torch.isfinite(row).all():
        raise ValueError("found weights that are not numbers")
    return row.unsqueeze(0)
