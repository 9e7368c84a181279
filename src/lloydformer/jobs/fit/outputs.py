"""The folder that a fit leaves: labels, centers, summary, model, and a page if it is wanted."""

import csv
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lloydformer import __version__
from lloydformer.jobs.fit.found import Found
from lloydformer.jobs.fit.labels import KINDS, check_kind, write_labels
from lloydformer.plots.axes import require_matplotlib
from lloydformer.storage.atomic import check_apart, check_writable, filling

OPTIONAL = (*(f"labels.{kind}" for kind in KINDS), "report.html")
"""Files that one run writes and another does not: they never stay behind beside newer ones."""


@dataclass(frozen=True)
class Outputs:
    """Where the files of a fit go, and which there will be."""

    folder: Path
    labels: str = "csv"
    report: bool = False
    force: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        always = (f"labels.{self.labels}", "centers.csv", "summary.json", "model")
        return (*always, "report.html") if self.report else always

    def check(self, data: str) -> None:
        """Everything that would fail after the work is said before it."""
        check_kind(self.labels, "--labels")
        if self.report:
            check_report()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; pass the name of a folder with --output")
        for name in (*self.names, *OPTIONAL):
            check_apart(self.folder / name, data)
        there = [name for name in (*self.names, *OPTIONAL) if (self.folder / name).exists()]
        if there and not self.force:
            raise ValueError(f"{self.folder / there[0]} exists; pass --force to replace it, or "
                             "--output for another folder")  # fmt: skip
        for path in (self.folder / name for name in there):
            if path.is_dir() != (path.name == "model"):
                raise ValueError(f"{path} is not of a fit; remove it, or pass another --output")
        check_writable(self.folder)

    def write(self, found: Found, summary: dict[str, Any], page: str | None) -> None:
        """All files, or none."""
        with filling(self.folder) as folder:
            with (folder / f"labels.{self.labels}").open("wb") as file:
                write_labels(file, self.labels, found.assignment)
            write_centers(folder / "centers.csv", found)
            text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
            (folder / "summary.json").write_text(text, encoding="utf-8")
            found.model.save_pretrained(folder / "model")
            if page is not None:
                (folder / "report.html").write_text(page, encoding="utf-8")
            tensors = {path.name for path in (folder / "model").iterdir()}
        before = [
            p for p in (self.folder / "model").glob("model-*.safetensors") if p.name not in tensors
        ]
        for path in (*before, *(self.folder / name for name in set(OPTIONAL) - set(self.names))):
            path.unlink(missing_ok=True)


def check_report() -> None:
    """The page is drawn with matplotlib."""
    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(f"--report: {error}") from None


def write_centers(path: Path, found: Found) -> None:
    """A row for each cluster: its number, its size, and its center in the data's units."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["cluster", "size", *found.columns])
        for number, center in enumerate(np.asarray(found.model.cluster_centers_).tolist()):
            writer.writerow([number, found.sizes[number], *center])


def versions() -> dict[str, str]:
    """What made the files."""
    return {
        "lloydformer": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
