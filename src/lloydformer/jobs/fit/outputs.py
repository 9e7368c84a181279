"""The output folder of a fit: labels, centers, summary, model, and optionally a page."""

import csv
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lloydformer import __version__
from lloydformer.data.spreadsheet_names import guarded
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.label_file import KINDS, check_kind, write_labels
from lloydformer.jobs.fit.model_columns import COLUMNS, write_columns
from lloydformer.jobs.fit.result import FitResult
from lloydformer.plots.axes import require_matplotlib
from lloydformer.storage.atomic import check_apart, check_writable
from lloydformer.storage.model_folder import CONFIG, TENSORS
from lloydformer.storage.whole_folder import filling

FILES = (*(f"labels.{kind}" for kind in KINDS), "report.html", "centers.csv",
         f"model/{TENSORS}", f"model/{CONFIG}", f"model/{COLUMNS}", "summary.json")  # fmt: skip
"""What a fit may write; some depend on the options. summary.json completes a run."""


@dataclass(frozen=True)
class FitOutputs:
    """The output folder, and which files are written to it."""

    folder: Path
    labels: str = "csv"
    report: bool = False
    force: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        always = (f"labels.{self.labels}", "centers.csv", "summary.json", "model")
        return (*always, "report.html") if self.report else always

    def check(self, data: str) -> None:
        """Raise ValueError before the fit for everything that would fail after it."""
        check_kind(self.labels, "--labels")
        if self.report:
            _check_matplotlib()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; pass the name of a folder with --output")
        names = sorted({Path(file).parts[0] for file in FILES})
        for name in names:
            check_apart(self.folder / name, data)
        there = [name for name in names if (self.folder / name).exists()]
        if there and not self.force:
            raise ValueError(f"{self.folder / there[0]} exists; pass --force to replace it, or "
                             "--output for another folder")  # fmt: skip
        for path in (self.folder / name for name in there):
            if path.is_dir() != (path.name == "model"):
                kind = "a folder" if path.is_dir() else "a file"
                raise ValueError(
                    f"{path} is {kind}, which fit did not write; remove it, or pass another "
                    "--output"
                )
        check_writable(self.folder)

    def write(
        self, result: FitResult, summary: dict[str, Any], page: str | None,
        missing: str = "error",
    ) -> None:  # fmt: skip
        """Write all files, or none if one fails, in place of those of an earlier fit."""
        with filling(self.folder, FILES, force=self.force) as folder:
            with (folder / f"labels.{self.labels}").open("wb") as file:
                write_labels(file, self.labels, result.assignment, result.table)
            write_centers(folder / "centers.csv", result.columns, result.sizes, result.model)
            write_summary(folder, summary)
            result.model.save_pretrained(folder / "model")
            if result.table is not None:
                write_columns(folder / "model", result.table, missing)
            if page is not None:
                (folder / "report.html").write_text(page, encoding="utf-8")


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Write summary.json."""
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    (folder / "summary.json").write_text(text, encoding="utf-8")


def _check_matplotlib() -> None:
    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(f"--report: {error}") from None


def write_centers(
    path: Path, columns: Sequence[str], sizes: Sequence[int], model: Clusterer
) -> None:
    """Write a line for each cluster: its number, its size, its center in the data's units."""
    names = ["cluster", "size", *map(guarded, columns)]
    returns = any("\r" in name for name in names)  # csv does not quote them by itself
    with path.open("w", encoding="utf-8", newline="") as file:
        header = csv.writer(
            file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        )
        header.writerow(names)
        writer = csv.writer(file, lineterminator="\n")
        for number, center in enumerate(np.asarray(model.cluster_centers_).tolist()):
            writer.writerow([number, sizes[number], *center])


def notes_on_names(columns: Sequence[str]) -> list[str]:
    """A note, in one line, about the names that `guarded` changes; empty if it changes none."""
    changed = [name for name in columns if guarded(name) != name]
    if not changed:
        return []
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [
        f"centers.csv: an apostrophe is written before the name {changed[0]!r}{more}, so that "
        "spreadsheets do not run it as a formula"
    ]


def versions() -> dict[str, str]:
    """The versions of the software that made the files."""
    return {
        "lloydformer": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
