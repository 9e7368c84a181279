"""A training that an exception ends early, so that it can be resumed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lloydformer.learning import Run, Settings, train
from lloydformer.learning.trainer import Evaluation


class EnoughError(Exception):
    """Ends a training."""


def train_until(
    step: int,
    settings: Settings,
    runs: Sequence[Run],
    folder: Path,
    checkpoint_every: int,
    together: int | None = None,
) -> None:
    """Train until the evaluation of this step; the checkpoint stays in the folder."""

    def stop(evaluation: Evaluation) -> None:
        if evaluation.step == step:
            raise EnoughError

    with pytest.raises(EnoughError):
        train(settings, runs, device="cpu", folder=folder, checkpoint_every=checkpoint_every,
              callback=stop, together=together)  # fmt: skip
