"""Where the model of a fit is. Imports little."""

from pathlib import Path

from lloydformer.storage.model_folder import read_config


def folder_of_model(path: Path) -> Path:
    """The folder of a model, which may be inside the output folder of a fit."""
    inner = path / "model"
    return inner if inner.is_dir() else path


def check_model(path: Path) -> None:
    """Raise ValueError if there is no model."""
    read_config(folder_of_model(path))
