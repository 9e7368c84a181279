"""A fit from the data file to the output folder, in three steps: read, fit, write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from lloydformer.app.jobs.fit import outputs
from lloydformer.app.jobs.fit.advice import give_advice
from lloydformer.app.jobs.fit.automatic import default_numbers
from lloydformer.app.jobs.fit.result import FitResult, FitRun
from lloydformer.app.jobs.fit.scale_notes import note_scales
from lloydformer.app.jobs.fit.selection import fit_numbers
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.app.jobs.text_values import parse_clusters
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_scales import Scale
from lloydformer.data.sources import (
    OpenedTable,
    open_table,
    rows_in_table,
    scale_columns,
    to_blocks,
)
from lloydformer.estimators.source import NoDirectionError
from lloydformer.numerics.checks import ArgumentError, RefusedArgumentError


class FitJob:
    """Read the data, fit each number of clusters, write the files of the best fit.

    The constructor raises ValueError for settings that are not possible, and for files that exist
    or cannot be written.

    Parameters
    ----------
    settings : FitSettings
        What the user asks for.
    command : str
        The command line, for summary.json.
    """

    def __init__(self, settings: FitSettings, command: str = "") -> None:
        # Everything that can be refused is refused here, before minutes of reading and fitting.
        settings.check()
        asked = settings.clusters
        self.start_model = None
        if settings.start_from is not None:
            self.start_model = outputs.load_model(settings.start_from)
            centers = self.start_model.cluster_centers_
            # Compared as ranges: a huge one would not fit into memory as a list.
            if asked is not None and parse_clusters(asked) != range(len(centers), len(centers) + 1):
                raise ValueError(
                    f"-k: found {asked}, but the model of --start-from has {len(centers)} "
                    "clusters; leave one of the two out"
                )
            asked = str(len(centers))
            settings = replace(settings, clusters=asked, start_centers=centers)
        self.settings, self.command = settings, command
        # Without -k, the rows say how many numbers are tried.
        self.numbers = default_numbers() if asked is None else parse_clusters(asked)
        if len(self.numbers) > 1 and settings.checkpoint is not None:
            found = "without -k" if asked is None else f"together with -k {settings.clusters}"
            raise ValueError(f"--checkpoint: found {found}; pass one number of clusters")
        outputs.check_outputs(settings)

    def read(self) -> tuple[OpenedTable, TensorBlocks]:
        """Open the data; raises ValueError if they have too few rows or other columns."""
        settings, model, conversion = self.settings, self.start_model, None
        options = settings.table_options()
        # A model that the fit starts from knows its columns, unless the user chooses others.
        if model is not None and not (options.columns or options.exclude or options.one_hot):
            assert settings.start_from is not None
            conversion = outputs.load_columns(settings.start_from, model).conversion
        table = open_table(settings.data, options, conversion)
        scaling, method = None, settings.scale_method
        if method == "model":
            assert model is not None
            scaling = model.scaling if model.n_features_in_ == table.points.shape[1] else None
        elif method != "none":
            try:
                scaling = scale_columns(table, cast("Scale", method))
            except ValueError as error:
                words = str(error).removeprefix("scale: ")
                raise ValueError(f"{settings.data}: {words}") from None
            table = replace(table, choices=scaling.choices)
        blocks = to_blocks(table, scaling)
        if settings.clusters is None:
            self.numbers = default_numbers(blocks.n_rows)
        if self.numbers[-1] > blocks.n_rows:
            raise ValueError(
                f"-k: found {self.numbers[-1]} clusters for the {blocks.n_rows} rows of "
                f"{settings.data}; pass at most {blocks.n_rows}"
            )
        if model is not None and blocks.n_features != model.n_features_in_:
            raise ValueError(
                f"{settings.data}: found {blocks.n_features} columns; the model of --start-from "
                f"has {model.n_features_in_}; choose them with --columns"
            )
        return table, blocks

    def fit(
        self,
        table: OpenedTable,
        blocks: TensorBlocks,
        callback: Any = None,
        after: Callable[[FitRun], None] = lambda run: None,
    ) -> FitResult:
        """Fit each number of clusters; see `fit_numbers`."""
        with name_data(self.settings.data, table):
            result = fit_numbers(self.settings, table, blocks, self.numbers, callback, after)
        notes = (
            *table.notes,
            *note_scales(self.settings.scale_method, result.columns, table.choices),
            *result.notes,
            *outputs.notes_on_names(result.columns),
        )
        return replace(
            result, notes=notes, advice=tuple(give_advice(result, self.settings.scale_method))
        )

    def write(self, result: FitResult) -> dict[str, Any]:
        """Write the files; returns the content of summary.json."""
        summary = outputs.summarize(self.settings, self.command, result)
        # Drawn before the folder is opened: nothing is written if it fails.
        page = None
        if self.settings.report:
            from lloydformer.app.jobs.fit.page import fit_page  # matplotlib takes a second

            page = fit_page(self.settings, self.command, result)
        outputs.write_outputs(self.settings, result, summary, page)
        return summary


@contextmanager
def name_data(data: str, table: OpenedTable) -> Iterator[None]:
    """Name the file and the options in an estimator's errors: it knows them as X and parameters."""
    try:
        yield
    except ArgumentError as error:
        raise ValueError(describe_error(error, data, table)) from None
    except ValueError as error:
        raise ValueError(f"{data}: {error}") from None


def describe_error(error: ArgumentError, data: str, table: OpenedTable | None = None) -> str:
    """Return an estimator's error in the words of the command line."""
    # The estimator counts points; the user sees rows of the table, of which some were dropped.
    if isinstance(error, NoDirectionError) and table is not None:
        row = rows_in_table(np.array([error.row]), table.dropped)[0]
        return (
            f"{data}: found only zeros in {table.source.locate(int(row))}, counted from 1, which "
            "has no direction; remove rows of zeros, or use an algorithm that compares positions"
        )
    if error.argument == "X":
        return f"{data}: {error.problem}"
    if error.argument == "checkpoint":
        repair = "; leave it out" if isinstance(error, RefusedArgumentError) else ""
        return f"--checkpoint: {error.problem}{repair}"
    return f"{data}: {error}"
