"""The result of a fit: the model, the cluster of every row, and what follows from them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.app.jobs.fit.automatic import Evidence
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sources import OpenedTable, rows_in_table
from lloydformer.estimators.mixture import AnyClusterer
from lloydformer.fork_safety import cached_property
from lloydformer.profiles.assignment import Assignment, ClusterTotals
from lloydformer.profiles.clustering import Clustering
from lloydformer.profiles.sample import Sample
from lloydformer.profiles.words import format_number


@dataclass(frozen=True)
class FitRun:
    """The numbers of one fit, for the comparison of numbers of clusters.

    `criterion` chooses the number; `selected` is its value, if it is not the silhouette.
    """

    k: int
    objective: float
    silhouette: float | None
    n_iter: int
    seconds: float
    criterion: str = "silhouette"
    selected: float | None = None

    @property
    def criterion_name(self) -> str:
        """The criterion in tables and curves; that of `auto` is a score without a name."""
        return "score" if self.criterion == "auto" else self.criterion

    @property
    def value(self) -> float | None:
        """The value of the criterion."""
        return self.silhouette if self.criterion == "silhouette" else self.selected

    @property
    def score(self) -> float:
        """The value of the criterion, larger being better; below all others if there is none."""
        if self.value is None:
            return -math.inf
        return -self.value if self.criterion == "bic" else self.value

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for summary.json, without k, which is their key there."""
        hidden = ("k", "criterion", "selected")
        values = {name: value for name, value in asdict(self).items() if name not in hidden}
        if self.criterion != "silhouette":
            values[self.criterion] = self.selected
        return values


@dataclass(frozen=True)
class FitResult:
    """A fitted model, its data, and the cluster of every row.

    Attributes
    ----------
    model : AnyClusterer
        The fitted model.
    table : OpenedTable
        The table that the data come from.
    blocks : TensorBlocks
        The data as the model compares rows: scaled, as directions if it compares those.
    assignment : Assignment
        The cluster of every row.
    sample : Sample
        Rows for silhouettes and pictures.
    seconds : float
        Duration of the fit.
    runs : tuple of FitRun
        The fits of all numbers of clusters that were tried.
    notes, advice : tuple of str
        What was recognised, left out or warned of; what may mislead.
    evidence : Evidence or None
        How sure it is that there are clusters.
    """

    model: AnyClusterer
    table: OpenedTable
    blocks: TensorBlocks
    assignment: Assignment
    sample: Sample
    seconds: float
    runs: tuple[FitRun, ...] = ()
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    evidence: Evidence | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return len(self.model.cluster_centers_)

    @property
    def reached_max_iter(self) -> bool:
        """True if the fit used all its iterations, so it may not have converged.

        An algorithm that draws has no other end, unless it has `patience`.
        """
        most = getattr(self.model, "max_iter", None)
        draws = hasattr(self.model, "best_objective_history_")
        return most is not None and self.model.n_iter_ >= most and not draws

    @cached_property
    def clustering(self) -> Clustering:
        """The model with its rows, assignment and sample; reports and criteria read from it."""
        return Clustering(
            model=self.model,
            blocks=self.blocks,
            assignment=self.assignment,
            sample=self.sample,
            columns=self.columns,
            categories=tuple(self.categories),
            opposites=self.table.conversion.opposites,
            shown_rows=self.show_rows,
        )

    @property
    def totals(self) -> ClusterTotals:
        """Sizes, mean distances and rows left out of the clusters."""
        return self.clustering.totals

    @property
    def kept_sample(self) -> Bool[Tensor, " m"]:
        """A mask of the sample without rows left out."""
        return self.clustering.kept_sample

    @property
    def sample_silhouettes(self) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
        """The clusters and silhouettes of the sample, without rows left out."""
        return self.clustering.sample_silhouettes

    @property
    def silhouette(self) -> float | None:
        """The mean silhouette of the sample; None if all its rows are in one cluster."""
        return self.clustering.silhouette

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; x1, x2, ... by their numbers if they have none."""
        return self.table.conversion.labels

    @property
    def categories(self) -> list[str | None]:
        """The word that each column of the points encodes; None for columns of numbers."""
        return [
            word for f in self.table.conversion.features for word in f.words or (None,) * f.width
        ]

    def table_rows(self, rows: Sequence[int]) -> list[int]:
        """Return the rows of the table, from 0, that became these rows of points."""
        return rows_in_table(np.array(rows, dtype=np.int64), self.table.dropped).tolist()

    def show_rows(self, rows: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        """Return columns and cells of some rows of points, as the table has them.

        The first cells are the number of a row, from 1, and its name if a column has names of rows.
        """
        table, features, names = self.table, self.table.conversion.features, dict[int, str]()
        places = self.table_rows(rows)
        columns = ["row"]
        if table.id_column is not None:
            columns.append(table.id_column)
            wanted, start = np.unique(places), 0
            for part in table.ids():
                for place in wanted[(wanted >= start) & (wanted < start + len(part))]:
                    names[int(place)] = str(part[place - start])
                start += len(part)
        has_words = any(feature.categories is not None for feature in features)
        for feature in features if has_words else ():
            name = feature.column
            columns += [f"{name} {part}" for part in feature.parts] or [name]
        columns += () if has_words else self.columns
        table_cells = []
        for row, place in zip(rows, places, strict=True):
            cells = [str(place + 1), *([names[place]] if names else [])]
            values = iter(self.blocks.points[row].tolist())
            for feature in features:
                if feature.categories is None:
                    cells += [format_number(next(values)) for _ in range(feature.width)]
                else:  # its columns of 0 and 1 become the word again
                    cells.append(feature.read_word([next(values) for _ in feature.words]))
            table_cells.append(cells)
        return columns, table_cells
