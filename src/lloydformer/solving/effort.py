"""How much a relocating fit searches: patience, pool and children for each effort."""

from dataclasses import dataclass

LAYERS = 2000
"""Layers of each start and child at most, if the user sets no limit."""


FEW_CLUSTERS = 25
"""Below this number of clusters, children relocate less, and there are fewer of them."""


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
    n_children_of_few : int or None
        The same for few clusters, where a solution is found sooner; None: no fewer.
    """

    patience: int
    n_pool: int = 1
    n_children: int = 0
    n_children_of_few: int | None = None

    @property
    def max_layers(self) -> int:
        """Layers in all, if the user sets no limit."""
        return LAYERS * (self.n_pool + self.n_children)

    def children(self, n_clusters: int) -> int:
        """Number of recombinations for so many clusters."""
        few = n_clusters < FEW_CLUSTERS and self.n_children_of_few is not None
        return self.n_children_of_few or 0 if few else self.n_children

    def child_patience(self, n_clusters: int) -> int:
        """As `patience`, for a child."""
        return 1 if n_clusters < FEW_CLUSTERS else 2

    def n_moved(self, n_clusters: int) -> int:
        """Number of clusters that a relocation splits."""
        return 5 if self.n_pool == 1 else min(max(5, n_clusters // 6), 10)


EFFORTS = {
    "low": Effort(patience=5),
    "medium": Effort(patience=1, n_pool=4, n_children=16, n_children_of_few=12),
    "high": Effort(patience=1, n_pool=10, n_children=96, n_children_of_few=40),
    "best": Effort(patience=3, n_pool=16, n_children=400),
}
"""Efforts by name."""


def effort_of(wanted: str | int) -> Effort:
    """The effort of a name, or of a number of recombinations.

    A number gets a pool of a sixth of it, at least 4 and at most 16; 0 is "low".
    """
    if isinstance(wanted, str):
        return EFFORTS[wanted]
    if wanted == 0:
        return EFFORTS["low"]
    return Effort(patience=1, n_pool=min(max(4, int(wanted) // 6), 16), n_children=int(wanted))
