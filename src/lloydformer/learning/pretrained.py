"""Trained weights: cards of both kinds, and the weights for one d and k.

A card is a JSON file that describes trained weights and how they were trained. Weights for one d
and k are in a safetensors file next to their card; the symmetric kind, which serves every d and k,
has its few weights in the card itself (`symmetric/model.py`).
"""

import json
import re
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import as_file
from importlib.resources import files as resource_files
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
from lloydformer.data.storage.atomic_files import lock_folder
from lloydformer.data.storage.bounded_read import read_json
from lloydformer.data.storage.model_folder import read_weights, write_card_and_weights
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.stacked_layer import FlatLayer

# Version of the format of a card; increased when older cards cannot be read any more.
FORMAT = 1

# Name of the model for every n, d and k, and the entry "kind" of its card.
SYMMETRIC = "symmetric"


def available() -> list[str]:
    """List the trained weights in the package.

    Returns
    -------
    list of str
        Names: those for one number of features d and of clusters k, as "d32-k10", then
        "symmetric", the weights for every d and k.

    See Also
    --------
    load_pretrained : Load trained weights.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.learning.available()[0], lf.learning.available()[-1]
    ('d4-k6', 'symmetric')
    """
    files = [entry.name for entry in weights_folder().iterdir()]
    names = [name.removesuffix(".json") for name in files if name.endswith(".json")]

    def order(name: str) -> tuple[bool, list[int]]:
        sizes = re.fullmatch(r"d(\d+)-k(\d+)", name)
        return (False, [*map(int, sizes.groups())]) if sizes else (True, [])

    return sorted(names, key=order)


@dataclass(frozen=True)
class ModelCard:
    """A card that was read.

    Attributes
    ----------
    folder : Traversable
        The folder of its file.
    name : str
        The name of its file without the ending.
    entries : dict
        Its entries.
    """

    folder: Traversable
    name: str
    entries: dict[str, Any]

    @property
    def where(self) -> str:
        """Folder and name, with which error messages begin."""
        return f"{self.folder}/{self.name}"

    @property
    def is_symmetric(self) -> bool:
        """True if the weights are those of the layer for every n, d and k."""
        return self.entries.get("kind") == SYMMETRIC

    @classmethod
    def read(cls, folder: Traversable, name: str) -> "ModelCard":
        """Read the card NAME.json of a folder; raises `ValueError` if the file is not a card."""
        try:
            with as_file(folder / f"{name}.json") as path:
                entries = read_json(path)
        except (FileNotFoundError, NotADirectoryError):
            raise ValueError(f"{folder}/{name}.json: there is no such file") from None
        if not isinstance(entries, dict) or entries.get("library") != "lloydformer":
            raise ValueError(f"{folder}/{name}.json: is not a card of lloydformer")
        if entries.get("format") != FORMAT:
            found = entries.get("format")
            raise ValueError(
                f"{folder}/{name}.json: found format {found!r}; this version reads {FORMAT}"
            )
        return cls(folder, name, entries)

    def read_weights(self) -> bytes | None:
        """Read the weights; None if no file of the card has the hash that is in the card."""
        return read_weights(self.folder, self.name, str(self.entries.get("sha256")))

    def invalid(self, error: Exception) -> ValueError:
        """Return the error for entries from which no model can be made."""
        why = " ".join(str(error).split())
        return ValueError(f"{self.where}.json: is not a valid card ({why})")


def read_card(pretrained: str | Path) -> ModelCard:
    """Read a card by name (`available()`) or by path; raises `ValueError` if there is none."""
    if str(pretrained) in available():
        return ModelCard.read(weights_folder(), str(pretrained))
    path = Path(pretrained)
    if path.suffix not in (".json", ".safetensors"):
        raise ValueError(
            f"pretrained: found {str(pretrained)!r}; there are {', '.join(available())}, or pass "
            "the path of a card (.json) that lloydformer train has written"
        )
    return ModelCard.read(path.parent, path.stem)


def weights_folder() -> Traversable:
    """Return the folder of the weights in the package."""
    return resource_files("lloydformer.learning") / "weights"


@dataclass(frozen=True)
class Pretrained:
    """A trained layer for one number of features and of clusters.

    Parameters
    ----------
    name : str
        Name of the weights, as "d32-k10".
    settings : Settings
        Settings of the training.
    run : Run
        The run that trained them.
    weights : Tensor of shape (1, p)
        All weights in one row, in the order of `layer.shapes`.
    card : dict
        The card: how the weights were trained, their scores and the log of training.

    See Also
    --------
    load_pretrained : Load trained weights.
    compare : Compare a layer with Lloyd's algorithm.
    lloydformer.LearnedKMeans : The estimator.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.learning.load_pretrained("d4-k6")
    >>> found.settings.n_features, found.settings.n_clusters, found.run.family
    (4, 6, 'normal')
    """

    name: str
    settings: Settings
    run: Run
    weights: Float[Tensor, "1 p"]
    card: dict[str, Any]

    @property
    def layer(self) -> FlatLayer:
        """Return the layer: a function of weights, points and centers.

        See Also
        --------
        Pretrained.circuit : The same as a circuit.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> found = lf.learning.load_pretrained("d4-k6")
        >>> points = torch.rand(1, 2, 50, 4)  # one run, two tasks
        >>> found.layer(found.weights, points, points[:, :, :6]).shape
        torch.Size([1, 2, 6, 4])
        """
        return self.settings.layer

    def circuit(self) -> Circuit:
        """Build a circuit with these weights, whose intermediate values can be read.

        Returns
        -------
        Circuit
            The circuit in evaluation mode; its weights are parameters.

        See Also
        --------
        lloydformer.Circuit : Runs the layers and keeps a trace.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> circuit = lf.learning.load_pretrained("d4-k6").circuit()
        >>> points = torch.rand(50, 4)
        >>> circuit(points, points[:6], n_layers=3).centers.shape
        torch.Size([4, 6, 4])
        """
        return self.layer.circuit_of(self.weights[0])


def load(pretrained: str | Path) -> Pretrained:
    """Load trained weights for one number of features and of clusters.

    Raises `ValueError` if there are none, if a file is damaged, or if the card is symmetric.
    """
    return load_from_card(read_card(pretrained))


def save(path: Path, settings: Settings, run: Run, weights: Tensor, notes: dict[str, Any]) -> None:
    """Write PATH.safetensors and its card PATH.json, which holds the hash of the weights."""
    parts = settings.layer.named(weights.reshape(1, -1)).items()
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
    write_card_and_weights(path, json.dumps(card, indent=1) + "\n", data)


def load_from_card(card: ModelCard) -> Pretrained:
    """Load the weights that a card describes; raises `ValueError` if they are damaged."""
    if card.is_symmetric:
        raise ValueError(f"{card.where}.json: is symmetric, for every d and k; use load_pretrained")
    data = card.read_weights()
    if data is None and isinstance(card.folder, Path):
        # The file is missing or its hash differs: another process may be replacing card and
        # weights, which it does under a lock. Read both again when it has finished.
        with lock_folder(card.folder):
            card = ModelCard.read(card.folder, card.name)
            data = card.read_weights()
    if data is None and not (card.folder / f"{card.name}.safetensors").is_file():
        raise ValueError(f"{card.where}.safetensors: there is no such file next to its card")
    if data is None:
        raise ValueError(
            f"{card.where}.safetensors: is damaged (its hash differs from the one in its card)"
        )
    try:
        settings, run = Settings.read(card.entries["settings"]), Run(**card.entries["run"])
        tensors, shapes = load_tensors(data), settings.layer.shapes
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ValueError("its weights are not those of its settings")
        weights = torch.cat([tensors[name].float().flatten() for name in shapes]).unsqueeze(0)
        if not torch.isfinite(weights).all():
            raise ValueError("found weights that are not finite")
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise card.invalid(error) from None
    return Pretrained(card.name, settings, run, weights, card.entries)
