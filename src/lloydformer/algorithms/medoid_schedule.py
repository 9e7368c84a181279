"""The order of the moves of a search for medoids, for the plain search and for kernels alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy import ndarray


@runtime_checkable
class SearchMoves(Protocol):
    """A search in progress: its medoids, their loss, and the moves, which return if it fell."""

    @property
    def medoids(self) -> ndarray: ...

    @property
    def loss(self) -> float: ...

    def begin(self, medoids: ndarray) -> None: ...

    def descend(self, rounds: int, slack: float) -> bool: ...

    def exchange(self, seed: int, layer: int) -> bool: ...

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool: ...

    def sweep(self, reach: int) -> bool: ...


FEW = 256
"""Rows up to which time does not count: a search has its full patience, and a matrix ten starts."""


@dataclass(frozen=True)
class MedoidEffort:
    """How long a search goes on.

    Attributes
    ----------
    patience : int
        Stop relocating after so many relocations in a row that were not kept.
    quiet : int
        Stop drawing candidates after so many batches of them in a row without success.
    pairs : int
        The last sweep compares about so many pairs of candidates and rows, at least `fewest`
        candidates of each cluster.
    fewest : int
        See `pairs`.
    n_moved, n_draws : int
        Clusters that a relocation splits, and draws for each split.
    slack : float
        Share of a cluster's rows that must have changed before a relocation looks at it again.
    rows_each : int
        `patience` is at most the mean number of rows of a cluster over this, for more than `FEW`
        rows; 0: it is as given.
    """

    patience: int = 5
    quiet: int = 3
    pairs: int = 1 << 28
    fewest: int = 64
    n_moved: int = 5
    n_draws: int = 3
    slack: float = 0.1
    rows_each: int = 10

    def patience_for(self, n_rows: int, n_clusters: int) -> int:
        """`patience`, or less where clusters are so small that exchanges find as much."""
        if self.rows_each == 0 or n_rows <= FEW:
            return self.patience
        return min(self.patience, max(1, n_rows // (self.rows_each * n_clusters)))

    def reach(self, n_rows: int, n_clusters: int) -> int:
        """Candidates of each cluster in the last sweep."""
        return max(self.fewest, self.pairs // (n_rows * n_clusters))


EFFORTS = {
    "quick": MedoidEffort(patience=0, pairs=1 << 22, fewest=16),
    "balanced": MedoidEffort(),
    "thorough": MedoidEffort(patience=20, quiet=10, pairs=1 << 31, fewest=256, rows_each=0),
}
"""Presets by name."""
ROUNDS, SLACK = 100, 0.02
"""Rounds of the first descent at most, and its slack."""


def relocating_rounds(
    search: SearchMoves, effort: MedoidEffort, seed: int, n_rows: int, first: int = 0
) -> Iterator[bool]:
    """Run a search move by move; yields after each whether the loss fell.

    first: number of the first layer of the noise, so that restarts draw different noise.
    """
    k, layer = len(search.medoids), first
    yield search.descend(ROUNDS, SLACK)
    idle = 0
    while idle < effort.quiet:
        fell = search.exchange(seed, layer)
        idle, layer = 0 if fell else idle + 1, layer + 1
        yield fell
    idle, patience = 0, effort.patience_for(n_rows, k) if k > 1 else 0
    while idle < patience:
        fell = search.relocate(seed, layer, effort.n_moved, effort.n_draws, effort.slack)
        idle, layer = 0 if fell else idle + 1, layer + 1
        yield fell
    yield search.sweep(effort.reach(n_rows, k))


def swapping_rounds(search: SearchMoves, n_rows: int) -> Iterator[bool]:
    """FasterPAM's swaps: exchanges with every row, until none lowers the loss."""
    yield search.sweep(n_rows)
