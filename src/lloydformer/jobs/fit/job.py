"""A fit from the data file to the output folder, in three steps."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.opened import OpenedTable
from lloydformer.jobs.fit.advice import advice
from lloydformer.jobs.fit.data_errors import errors_about
from lloydformer.jobs.fit.outputs import FitOutputs, notes_on_names
from lloydformer.jobs.fit.request import FitRequest
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.runs import FitRun, FitRuns
from lloydformer.jobs.fit.summary import summarize


class FitJob:
    """Read the data, fit each number of clusters, write the files of the best fit.

    `runs` holds the fits that are done, also after Ctrl-C. Raises ValueError if files that exist
    would be overwritten, or cannot be written.
    """

    def __init__(self, request: FitRequest, outputs: FitOutputs, seed: int = 0) -> None:
        outputs.check(request.data)
        self.request, self.outputs = request, outputs
        self.table: OpenedTable | None = None
        self.runs = FitRuns(request.start_settings, seed, request.select)

    def read(self) -> TensorBlocks:
        """Open the data."""
        self.table, blocks = self.request.open_data()
        self.runs.notes += self.table.notes
        return blocks

    def fit(
        self,
        blocks: TensorBlocks,
        callback: Any = None,
        after: Callable[[FitRun], None] = lambda run: None,
    ) -> FitResult:
        """Fit each number of clusters.

        `callback` is the estimators' callback, called after each iteration; `after` is called
        after each number of clusters.
        """
        with errors_about(self.request.data, self.table):
            result = self.runs.fit_each(blocks, self.request.numbers, callback, after)
        result = replace(result, table=self.table)
        self.runs.notes += notes_on_names(result.columns)
        self.runs.advice += advice(result, [run.k for run in self.runs.done])
        return result

    def write(self, result: FitResult) -> dict[str, Any]:
        """Write the files; returns the content of summary.json."""
        summary = summarize(self.request, self.runs, result, self.outputs)
        self.outputs.write(result, summary, self._page(result), self.request.table.missing)
        return summary

    def _page(self, result: FitResult) -> str | None:
        if not self.outputs.report:
            return None
        from lloydformer.jobs.fit.page import fit_page  # importing matplotlib takes a second

        return fit_page(self.request, self.runs, result)
