"""What a user asks `fit` to do: the data, the columns, the algorithm, the numbers of clusters."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast, get_args

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.conversion import Conversion
from lloydformer.data.opened import OpenedTable, open_table
from lloydformer.data.scaling import Scale
from lloydformer.data.sources import blocks_of
from lloydformer.data.table_options import TableOptions
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.saved_model import load_columns, load_model
from lloydformer.jobs.fit.settings import FitSettings, check_criterion, numbers_of_clusters

SCALES = get_args(Scale)


@dataclass(frozen=True)
class FitRequest:
    """A fit as a user asked for it; the constructor raises ValueError if it is not possible."""

    data: str
    settings: FitSettings
    clusters: str | None
    table: TableOptions = TableOptions(shell=True)  # noqa: RUF009 (frozen)
    scale: str | None = None
    start_from: Path | None = None
    command: str = ""
    select: str = "silhouette"

    def __post_init__(self) -> None:
        check_criterion(self.select)
        if self.scale is not None and self.scale not in SCALES:
            raise ValueError(f"--scale: found {self.scale!r}; pass {' or '.join(SCALES)}")
        if self.start_from is not None and {"init", "n_init"} & self.settings.given.keys():
            raise ValueError(
                "--start-from: found together with --init or --n-init; pass only one of them"
            )
        if len(self.numbers) > 1 and "checkpoint" in self.settings.given:
            raise ValueError(
                f"--checkpoint: found together with -k {self.clusters}; pass one number of clusters"
            )

    @cached_property
    def start_model(self) -> Clusterer | None:
        """The model of --start-from, whose centers the fit starts from."""
        return None if self.start_from is None else load_model(self.start_from)

    @cached_property
    def numbers(self) -> range:
        """The numbers of clusters to fit; with --start-from, the number of that model."""
        if self.start_model is None and self.clusters is None:
            raise ValueError("-k: missing; pass a number such as -k 8, or a range such as -k 2:20")
        if self.start_model is None:
            assert self.clusters is not None
            return numbers_of_clusters(self.clusters)
        own = len(self.start_model.cluster_centers_)
        only = range(own, own + 1)
        if self.clusters is not None and numbers_of_clusters(self.clusters) != only:
            raise ValueError(
                f"-k: found {self.clusters}, but the model of --start-from has {own} clusters; "
                "leave one of the two out"
            )
        return only

    @cached_property
    def start_settings(self) -> FitSettings:
        """The settings, with the centers of the model of --start-from as `init`."""
        if self.start_model is None:
            return self.settings
        centers = {"init": self.start_model.cluster_centers_, "n_init": 1}
        return replace(self.settings, options={**self.settings.options, **centers})

    @cached_property
    def start_conversion(self) -> Conversion | None:
        """The columns of the model of --start-from, unless the user chooses others."""
        chosen = self.table.columns or self.table.exclude or self.table.one_hot
        if self.start_from is None or self.start_model is None or chosen:
            return None
        return load_columns(self.start_from, self.start_model).conversion

    def open_data(self) -> tuple[OpenedTable, TensorBlocks]:
        """Open the data; raises ValueError if they have too few rows or other columns."""
        table = open_table(self.data, self.table, self.start_conversion)
        blocks = blocks_of(table, cast("Scale | None", self.scale))
        if self.numbers[-1] > blocks.n_rows:
            raise ValueError(
                f"-k: found {self.numbers[-1]} clusters for the {blocks.n_rows} rows of "
                f"{self.data}; pass at most {blocks.n_rows}"
            )
        if self.start_model is not None and blocks.n_features != self.start_model.n_features_in_:
            raise ValueError(
                f"{self.data}: found {blocks.n_features} columns; the model of --start-from has "
                f"{self.start_model.n_features_in_}; choose them with --columns"
            )
        return table, blocks
