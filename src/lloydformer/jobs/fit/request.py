"""What is asked for: the data, what is done to their columns, and how they are clustered."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from lloydformer import data
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.scaling import Scale
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.matching import columns_for, saved_model
from lloydformer.jobs.fit.settings import Settings, numbers_of_clusters

SCALES = ("minmax", "standard")


@dataclass(frozen=True)
class Request:
    """A fit as it was asked for. What is wrong with it is said when it is made."""

    data: str
    settings: Settings
    clusters: str | None
    columns: tuple[str, ...] | None = None
    scale: str | None = None
    start_from: Path | None = None
    command: str = ""

    def __post_init__(self) -> None:
        if self.scale is not None and self.scale not in SCALES:
            raise ValueError(f"--scale: found {self.scale!r}; pass {' or '.join(SCALES)}")
        if self.start_from is not None and {"init", "n_init"} & self.settings.given.keys():
            raise ValueError("--start-from: found beside --init or --n-init; pass only one of them")
        assert self.numbers  # so that a wrong number is said now

    @cached_property
    def begun(self) -> Clusterer | None:
        """The model whose centers are the start."""
        return None if self.start_from is None else saved_model(self.start_from)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of clusters to fit; that of the model to start from, if there is one."""
        if self.begun is None and self.clusters is None:
            raise ValueError("-k: missing; pass a number such as -k 8, or a range such as -k 2:20")
        numbers = () if self.clusters is None else numbers_of_clusters(self.clusters)
        if self.begun is None:
            return numbers
        own = len(self.begun.cluster_centers_)
        if numbers not in ((), (own,)):
            raise ValueError(
                f"-k: found {self.clusters} with a model of {own} clusters to start from; leave "
                "one of them out"
            )
        return (own,)

    @cached_property
    def started(self) -> Settings:
        """The settings, with the centers of the model to start from."""
        if self.begun is None:
            return self.settings
        centers = {"init": self.begun.cluster_centers_, "n_init": 1}
        return replace(self.settings, options={**self.settings.options, **centers})

    def opened(self) -> TensorBlocks:
        """The data; more clusters than rows are refused."""
        columns = self.columns
        if self.begun is not None and columns is None:
            columns = columns_for(self.begun, self.data)
        blocks = data.open(self.data, columns=columns, scale=cast("Scale | None", self.scale))
        if max(self.numbers) > blocks.n_rows:
            raise ValueError(
                f"-k: found {max(self.numbers)} clusters for the {blocks.n_rows} rows of "
                f"{self.data}; pass at most {blocks.n_rows}"
            )
        if self.begun is not None and blocks.n_features != self.begun.n_features_in_:
            raise ValueError(
                f"{self.data}: found {blocks.n_features} columns; the model to start from has "
                f"{self.begun.n_features_in_}; choose them with --columns"
            )
        return blocks
