"""How much of a table or figure is made again."""

from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Scope:
    """full: the paper's own protocol, where training is really done; else what fits into minutes,
    from the weights and training logs in the package. trials: of each setting, in place of the
    label's own number. seed: of everything that is drawn.
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
        except (RuntimeError, AssertionError):  # torch says either, by how it was built
            raise ValueError(
                f"device: found {self.device!r}, which is not there; pass cpu, or see "
                "lloydformer doctor"
            ) from None

    def count(self, quick: int, full: int) -> int:
        """How many trials: those asked for, else the one or the other number."""
        return self.trials or (full if self.full else quick)

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
