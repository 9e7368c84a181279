"""Checkpoints: the state of training in a folder, written atomically, without pickle."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lloydformer.learning.optimiser import TrainingState
from lloydformer.learning.settings import Run, Settings
from lloydformer.storage.model_folder import CONFIG, read_folder, write_folder

Row = dict[str, list[float | None]]
"""One evaluation: step, and of each run loss, relative objective and rate; None if not finite."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a resume needs: settings, runs, tensors of the state, evaluations so far.

    `together`: number of runs of a group; a resume must use the same groups.
    """

    settings: Settings
    runs: tuple[Run, ...]
    tensors: dict[str, Tensor]
    history: tuple[Row, ...]
    together: int

    @property
    def step(self) -> int:
        """Number of training steps done."""
        return int(self.tensors["step"])


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint atomically: a killed process leaves the old one or the new one."""
    config = {
        "kind": "training",
        "settings": checkpoint.settings.written(),
        "runs": [asdict(run) for run in checkpoint.runs],
        "together": checkpoint.together,
        "history": list(checkpoint.history),
    }
    arrays = {name: tensor.cpu().numpy() for name, tensor in checkpoint.tensors.items()}
    write_folder(folder, config, arrays, force=True)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote; raises `ValueError` for anything else."""
    config, arrays = read_folder(folder)
    if config.get("kind") != "training":
        raise ValueError(f"{folder / CONFIG}: is not a checkpoint of training")
    try:
        settings = Settings.read(config["settings"])
        runs = tuple(Run(**run) for run in config["runs"])
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        together = int(config.get("together", len(runs)))  # before 0.3 all runs were one group
        checkpoint = Checkpoint(settings, runs, tensors, tuple(config["history"]), together)
        _check(checkpoint)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{folder / CONFIG}: is damaged ({why}); start again with force") from None
    return checkpoint


def _check(checkpoint: Checkpoint) -> None:
    """Raise `ValueError` unless every tensor has the expected shape and dtype."""
    known: dict[str, Any] = TrainingState.begin(checkpoint.tensors["weights"], 1.0).tensors()
    if checkpoint.tensors.keys() != known.keys():
        raise ValueError(f"found tensors {sorted(checkpoint.tensors)}; expected {sorted(known)}")
    for name, tensor in checkpoint.tensors.items():
        wanted = known[name]
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(
                f"{name}: found shape {tuple(tensor.shape)} and {tensor.dtype}; "
                f"expected {tuple(wanted.shape)} and {wanted.dtype}"
            )
    if checkpoint.together < 1:
        raise ValueError(f"together: found {checkpoint.together}; expected at least 1")
    if len(checkpoint.runs) != len(checkpoint.tensors["weights"]):
        n_rows = len(checkpoint.tensors["weights"])
        raise ValueError(f"found {len(checkpoint.runs)} runs, and weights of {n_rows}")
