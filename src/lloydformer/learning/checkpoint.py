"""Checkpoints: the state of training in a folder, whole at every moment, without pickle."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lloydformer.learning.optimiser import State
from lloydformer.learning.settings import Run, Settings
from lloydformer.storage.model_folder import CONFIG, read_folder, write_folder

Row = dict[str, list[float | None]]
"""One evaluation: step, and loss, relative objective and rate of each run; None is no number."""


@dataclass(frozen=True)
class Checkpoint:
    """What it takes to go on: settings, runs, the state's tensors and the evaluations so far."""

    settings: Settings
    runs: tuple[Run, ...]
    tensors: dict[str, Tensor]
    history: tuple[Row, ...]

    @property
    def step(self) -> int:
        return int(self.tensors["step"])


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write it in place of the one before; whoever is killed meanwhile leaves one of the two."""
    config = {
        "kind": "training",
        "settings": checkpoint.settings.written(),
        "runs": [asdict(run) for run in checkpoint.runs],
        "history": list(checkpoint.history),
    }
    arrays = {name: tensor.cpu().numpy() for name, tensor in checkpoint.tensors.items()}
    write_folder(folder, config, arrays, force=True)


def load_checkpoint(folder: Path) -> Checkpoint:
    """What `save_checkpoint` wrote; anything else is a `ValueError`."""
    config, arrays = read_folder(folder)
    if config.get("kind") != "training":
        raise ValueError(f"{folder / CONFIG}: is not a checkpoint of training")
    try:
        settings = Settings.read(config["settings"])
        runs = tuple(Run(**run) for run in config["runs"])
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        checkpoint = Checkpoint(settings, runs, tensors, tuple(config["history"]))
        _check(checkpoint)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{folder / CONFIG}: is not whole ({' '.join(str(error).split())}); train anew with "
            "force"
        ) from None
    return checkpoint


def _check(checkpoint: Checkpoint) -> None:
    """Has every tensor the shape and the type that training gives it?"""
    known: dict[str, Any] = State.begin(checkpoint.tensors["weights"], 1.0).tensors()
    if checkpoint.tensors.keys() != known.keys():
        raise ValueError(f"found tensors {sorted(checkpoint.tensors)}; they are {sorted(known)}")
    for name, tensor in checkpoint.tensors.items():
        wanted = known[name]
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(f"{name}: found {tuple(tensor.shape)} of {tensor.dtype}")
    if len(checkpoint.runs) != len(checkpoint.tensors["weights"]):
        raise ValueError(f"found {len(checkpoint.runs)} runs for other weights")
