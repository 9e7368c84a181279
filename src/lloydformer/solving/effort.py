"""The efforts of a relocating fit: patience, pool and children for each.

The numbers were chosen by the study in docs/recombining.md, on the sets that it names.
"""

from dataclasses import dataclass, replace

# If the user sets no limit, all starts and children share a budget of this many layers times their
# number. Patience ends them long before (for k = 50 a child has 45 layers).
LAYERS = 2000
# Fewest layers of a start, chosen by hand: if the user's limit leaves less for each, there are
# fewer starts.
FEWEST_LAYERS = 20
# Below this number of clusters, children relocate less, and there are fewer of them: patience 2
# is better than 1 for k = 50 (0.09 % instead of 0.18 % above the best known), but not for k = 10.
FEW_CLUSTERS = 25
# Below this number of rows for each cluster, there are more children: with 96 of them the set with
# 11 rows for each cluster was 0.152 % above the best known, and the aim is 0.15 %.
FEW_ROWS = 16


@dataclass(frozen=True)
class Effort:
    """Starts, children and their patience.

    Attributes
    ----------
    patience : int
        A start ends after this number of relocations in a row that are not kept.
    n_pool : int
        Number of starts, and of solutions that are kept at a time. 1: no recombinations.
    n_children : int
        Number of recombinations.
    n_children_of_few : int or None
        Number of recombinations for fewer than `FEW_CLUSTERS` clusters, which need fewer of them.
        None: `n_children`.
    n_children_of_small : int or None
        Number of recombinations for at least `FEW_CLUSTERS` clusters of fewer than `FEW_ROWS` rows
        each, which need more of them. None: `n_children`.
    """

    patience: int
    n_pool: int = 1
    n_children: int = 0
    n_children_of_few: int | None = None
    n_children_of_small: int | None = None

    @property
    def max_layers(self) -> int:
        """Maximum number of layers of all starts and children, if the user sets no limit."""
        return LAYERS * (self.n_pool + self.n_children)

    def within(self, max_layers: int | None) -> "Effort":
        """Shrink the pool until each start has at least `FEWEST_LAYERS`; fall back to "low"."""
        if max_layers is None:
            return self
        n_pool = min(self.n_pool, max_layers // FEWEST_LAYERS)
        return replace(self, n_pool=n_pool) if n_pool > 1 else EFFORTS["low"]

    def n_children_for(self, n_clusters: int, n_rows: int) -> int:
        """Return the number of recombinations for a problem of this size."""
        special = None
        if n_clusters < FEW_CLUSTERS:
            special = self.n_children_of_few
        elif n_rows < FEW_ROWS * n_clusters:
            special = self.n_children_of_small
        return self.n_children if special is None else special

    def child_patience(self, n_clusters: int) -> int:
        """Return the patience of a child."""
        return 1 if n_clusters < FEW_CLUSTERS else 2

    def relocation_size(self, n_clusters: int) -> int:
        """Return the number of clusters that a relocation splits."""
        # A sixth of the centers, from 5 to 10: for k = 50, 5 and 6 are worse than 7 to 15 (0.09 %
        # instead of 0.06 to 0.07 % above the best known). Without a pool it is 5
        # (docs/relocating.md).
        return 5 if self.n_pool == 1 else min(max(5, n_clusters // 6), 10)


# Mean excess over the best known objective, and time, relative to "low": 0.392 %; "medium" 0.112 %,
# 4.2 times; "high" 0.039 %, 14.7 times (32 problems of docs/recombining.md). "best" was chosen
# by hand.
EFFORTS = {
    "low": Effort(patience=5),
    "medium": Effort(patience=1, n_pool=4, n_children=16, n_children_of_few=12),
    "high": Effort(1, n_pool=10, n_children=96, n_children_of_few=40, n_children_of_small=128),
    "best": Effort(patience=3, n_pool=16, n_children=400),
}


def effort_of(wanted: str | int) -> Effort:
    """Return the effort of a name, or of a number of recombinations; 0 is "low".

    For a number, the pool has a sixth as many starts, from 4 to 16.
    """
    if isinstance(wanted, str):
        return EFFORTS[wanted]
    if wanted == 0:
        return EFFORTS["low"]
    return Effort(patience=1, n_pool=min(max(4, int(wanted) // 6), 16), n_children=int(wanted))
