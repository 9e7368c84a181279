"""Checkpoints: the state of training in a folder, written atomically, without pickle."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from lloydformer.data.storage.model_folder import CONFIG, read_folder, write_folder
from lloydformer.learning.optimiser import TrainingState
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.trainer import Evaluation

_COLUMNS = ("step", "loss", "relative", "rate")


@dataclass(frozen=True)
class TrainingCheckpoint:
    """Everything a resume needs.

    Attributes
    ----------
    settings : Settings
        Settings of all runs.
    runs : tuple of Run
        The runs.
    tensors : dict
        Tensors of the `TrainingState` of all runs.
    history : tuple of Evaluation
        The evaluations so far.
    together : int
        Number of runs of a group. A resume must use the same groups, since sums of matrix
        products depend on them.
    """

    settings: Settings
    runs: tuple[Run, ...]
    tensors: dict[str, Tensor]
    history: tuple[Evaluation, ...]
    together: int


def save_checkpoint(folder: Path, checkpoint: TrainingCheckpoint) -> None:
    """Replace the checkpoint atomically: a killed process leaves the old one or the new one."""
    history = []
    for e in checkpoint.history:
        columns = ((float(e.step),), e.loss, e.relative, e.rate)
        # JSON has neither NaN nor infinity
        finite = [[v if math.isfinite(v) else None for v in column] for column in columns]
        history.append(dict(zip(_COLUMNS, finite, strict=True)))
    config = {
        "kind": "training",
        "settings": checkpoint.settings.written(),
        "runs": [asdict(run) for run in checkpoint.runs],
        "together": checkpoint.together,
        "history": history,
    }
    arrays = {name: tensor.cpu().numpy() for name, tensor in checkpoint.tensors.items()}
    write_folder(folder, config, arrays, force=True)


def load_checkpoint(folder: Path) -> TrainingCheckpoint:
    """Read what `save_checkpoint` wrote; raises `ValueError` for anything else."""
    config, arrays = read_folder(folder)
    if config.get("kind") != "training":
        raise ValueError(f"{folder / CONFIG}: is not a checkpoint of training")
    try:
        settings = Settings.read(config["settings"])
        runs = tuple(Run(**run) for run in config["runs"])
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        history = []
        for row in config["history"]:
            step, *columns = (
                tuple(math.nan if v is None else v for v in row[name]) for name in _COLUMNS
            )
            history.append(Evaluation(int(step[0]), settings.n_steps, *columns))
        # checkpoints of 0.1 have no groups: all runs were trained in one batch
        together = int(config.get("together", len(runs)))
        # training would run into errors much later if shapes or dtypes were others
        known = TrainingState.begin(tensors["weights"], 1.0).tensors()
        if tensors.keys() != known.keys():
            raise ValueError(f"found tensors {sorted(tensors)}; expected {sorted(known)}")
        for name, tensor in tensors.items():
            wanted = known[name]
            if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
                raise ValueError(
                    f"{name}: found shape {tuple(tensor.shape)} and {tensor.dtype}; "
                    f"expected {tuple(wanted.shape)} and {wanted.dtype}"
                )
        if together < 1:
            raise ValueError(f"together: found {together}; expected at least 1")
        if len(runs) != len(tensors["weights"]):
            raise ValueError(f"found {len(runs)} runs, and weights of {len(tensors['weights'])}")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{folder / CONFIG}: is damaged ({why}); start again with force") from None
    return TrainingCheckpoint(settings, runs, tensors, tuple(history), together)
