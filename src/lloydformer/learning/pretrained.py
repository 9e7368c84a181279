"""Trained weights for one d and k: a safetensors file and a JSON card, saved and loaded."""

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
from lloydformer.learning.flat_layer import FlatLayer
from lloydformer.learning.settings import Run, Settings
from lloydformer.storage.card_and_weights import read_weights, write_card_and_weights
from lloydformer.storage.locks import locked


@dataclass(frozen=True)
class Pretrained:
    """Hold a trained layer for one number of features and of clusters.

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
    load : Load trained weights.
    compare : Compare a layer with Lloyd's algorithm.
    lloydformer.LearnedKMeans : The estimator.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.learning.load("d4-k6")
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
        >>> found = lf.learning.load("d4-k6")
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
        >>> circuit = lf.learning.load("d4-k6").circuit()
        >>> points = torch.rand(50, 4)
        >>> circuit(points, points[:6], n_layers=3).centers.shape
        torch.Size([4, 6, 4])
        """
        return self.layer.circuit_of(self.weights[0])


def load(pretrained: str | Path) -> Pretrained:
    """Load trained weights for one number of features and of clusters.

    Parameters
    ----------
    pretrained : str or Path
        A name of `available()`, or the path of a card (.json) or of its weights (.safetensors).

    Returns
    -------
    Pretrained
        The weights and their card.

    Raises
    ------
    ValueError
        If there are no such weights, if a file is damaged, or if the card is of the symmetric
        kind.

    See Also
    --------
    available : Names of the weights in the package.
    load_symmetric : Load the weights for every d and k.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.learning.load("d32-k10")
    >>> sorted(found.card["scores"]["mean_log_objective"])
    ['initial', 'lloyd', 'n_steps', 'n_tasks', 'transformer']
    """
    folder, name = located(pretrained)
    return _read(folder, name)


def save(path: Path, settings: Settings, run: Run, weights: Tensor, notes: dict[str, Any]) -> None:
    """Write PATH.safetensors and its card, PATH.json, which has the hash of the former."""
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


def _read(folder: Traversable, name: str) -> Pretrained:
    where = f"{folder}/{name}"
    card, data = _read_files(folder, name)
    if data is None and isinstance(folder, Path):  # another process may be writing them
        with locked(folder, shared=True):
            card, data = _read_files(folder, name)
    if data is None and not (folder / f"{name}.safetensors").is_file():
        raise ValueError(f"{where}.safetensors: there is no such file beside its card")
    if data is None:
        raise ValueError(
            f"{where}.safetensors: is damaged (its hash differs from the one in its card)"
        )
    try:
        settings, run = Settings.read(card["settings"]), Run(**card["run"])
        weights = _flat(settings.layer, load_tensors(data))
    except (KeyError, TypeError, AttributeError, ValueError, SafetensorError) as error:
        raise not_a_card(where, error) from None
    return Pretrained(name, settings, run, weights, card)


def _read_files(folder: Traversable, name: str) -> tuple[dict[str, Any], bytes | None]:
    """Read a card and its weights; None if they do not belong together."""
    where, card = f"{folder}/{name}", read_card(folder, name)
    if card.get("kind") == SYMMETRIC:
        raise ValueError(f"{where}.json: is symmetric, for every d and k; use load_symmetric")
    return card, read_weights(folder, name, str(card.get("sha256")))


def _flat(layer: FlatLayer, tensors: dict[str, Tensor]) -> Float[Tensor, "1 p"]:
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if found != layer.shapes:
        raise ValueError("its weights are not those of its settings")
    row = torch.cat([tensors[name].float().flatten() for name in layer.shapes])
    if not torch.isfinite(row).all():
        raise ValueError("found weights that are not finite")
    return row.unsqueeze(0)
