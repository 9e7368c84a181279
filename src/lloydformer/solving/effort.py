"""How much a relocating fit searches: patience, pool and children for each effort."""

from dataclasses import dataclass

LAYERS = 2000
"""Layers of each start and child at most, if the user sets no limit."""


@dataclass(frozen=True)
class Effort:
    """Starts, children and their patience.

    Attributes
    ----------
    patience : int
        Relocations in a row that are not kept before a start ends.
    n_pool : int
        Number of starts, and of solutions that are kept at a time. 1: there is nothing to combine.
    n_children : int
        Number of recombinations.
    child_patience : int
        As `patience`, for a child.
    """

    patience: int
    n_pool: int = 1
    n_children: int = 0
    child_patience: int = 1

    @property
    def max_layers(self) -> int:
        """Layers in all, if the user sets no limit."""
        return LAYERS * (self.n_pool + self.n_children)


EFFORTS = {
    "low": Effort(patience=5),
    "medium": Effort(patience=1, n_pool=5, n_children=12),
    "high": Effort(patience=3, n_pool=12, n_children=40),
    "best": Effort(patience=3, n_pool=24, n_children=400),
}
"""Efforts by name."""


def effort_of(wanted: str | int) -> Effort:
    """The effort of a name, or of a number of recombinations.

    A number gets a pool of a third of it, at least 4 and at most 24; 0 is "low".
    """
    if isinstance(wanted, str):
        return EFFORTS[wanted]
    if wanted == 0:
        return EFFORTS["low"]
    return Effort(patience=3, n_pool=min(max(4, wanted // 3), 24), n_children=int(wanted))
