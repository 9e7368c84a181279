"""How much of a table or figure to reproduce."""

from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Scope:
    """How much to run, on which device, from which seed.

    full: run the paper's protocol as far as the text gives it, training included; otherwise a short
    version that takes minutes and uses the weights and training logs in the package. trials:
    number of trials of each setting; None for the default of the label. seed: of all
    random numbers.
    """

    full: bool = False
    trials: int | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise ValueError(f"trials: found {self.trials}; pass a number above 0")
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError):  # which of the two depends on the build of torch
            raise ValueError(
                f"device: found {self.device!r}, which is not available; pass cpu, or see "
                "lloydformer doctor"
            ) from None

    def count(self, quick: int, full: int) -> int:
        """The number of trials: `trials` if set, else `quick` or `full`."""
        return self.trials or (full if self.full else quick)

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
