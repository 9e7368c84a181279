"""The output folder of a fit: labels, centers, summary, page, and the model, which is read back."""

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
from lloydformer.app.jobs.fit.label_file import KINDS, check_kind, write_labels
from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.app.jobs.fit.settings import FitSettings, model_folder
from lloydformer.data.conversion import Conversion, Feature
from lloydformer.data.csv_format import escape_formula
from lloydformer.data.storage.atomic_files import check_apart, check_writable
from lloydformer.data.storage.atomic_folders import atomic_folder
from lloydformer.data.storage.bounded_read import read_json
from lloydformer.data.storage.model_folder import CONFIG, TENSORS
from lloydformer.data.table_options import MISSING
from lloydformer.estimators.mixture import AnyClusterer
from lloydformer.estimators.saved import Saved
from lloydformer.plots.axes import require_matplotlib
from lloydformer.profiles.assignment import ClusterTotals

COLUMNS = "columns.json"
# Everything that a fit may write; some depend on the options. summary.json is the last: it
# completes a run.
FILES = (
    *(f"labels.{kind}" for kind in KINDS),
    *("report.html", "centers.csv"),
    *(f"model/{name}" for name in (TENSORS, CONFIG, COLUMNS)),
    "summary.json",
)
# Version of columns.json; increased when older ones cannot be read any more.
_FORMAT = 1


def output_names(settings: FitSettings) -> tuple[str, ...]:
    """Return the names in the output folder that a fit with these settings writes."""
    names = (f"labels.{settings.labels}", "centers.csv", "summary.json", "model")
    return (*names, "report.html") if settings.report else names


def check_outputs(settings: FitSettings) -> None:
    """Raise ValueError before the fit for everything that would fail after it."""
    check_kind(settings.labels, "--labels")
    if settings.report:
        try:
            require_matplotlib()
        except ImportError as error:
            raise ValueError(f"--report: {error}") from None
    folder = settings.folder
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; pass the name of a folder with --output")
    names = sorted({Path(file).parts[0] for file in FILES})
    # --force must not replace the data; and files in a folder of data would be read as data by the
    # next fit.
    for name in names:
        check_apart(folder / name, settings.data)
    existing = [folder / name for name in names if (folder / name).exists()]
    if existing and not settings.force:
        raise ValueError(
            f"{existing[0]} exists; pass --force to replace it, or --output for another folder"
        )
    for path in existing:
        if path.is_dir() != (path.name == "model"):
            kind = "a folder" if path.is_dir() else "a file"
            raise ValueError(
                f"{path} is {kind}, which fit did not write; remove it, or pass another --output"
            )
    check_writable(folder)


def write_outputs(
    settings: FitSettings, result: FitResult, summary: dict[str, Any], page: str | None
) -> None:
    """Write all files, or none if one fails, in place of those of an earlier fit."""
    with atomic_folder(settings.folder, FILES, force=settings.force) as folder:
        with (folder / f"labels.{settings.labels}").open("wb") as file:
            write_labels(
                *(file, settings.labels, result.assignment, result.table),
                keep_columns=settings.keep_columns,
            )
        write_centers(folder / "centers.csv", result.columns, result.totals.sizes, result.model)
        write_json(folder / "summary.json", summary)
        result.model.save_pretrained(folder / "model")
        conversion = result.table.conversion
        # columns.json is left out where the names of the columns say everything.
        table_options = (settings.missing, settings.id_column)
        if not conversion.is_plain or table_options != ("error", None):
            content = {
                "format": _FORMAT,
                "missing": settings.missing,
                "id_column": settings.id_column,
                **conversion.to_json(),
            }
            write_json(folder / "model" / COLUMNS, content)
        if page is not None:
            (folder / "report.html").write_text(page, encoding="utf-8")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write one JSON object, for reading."""
    # Names of columns in any script stay readable.
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def write_centers(
    path: Path, columns: Sequence[str], sizes: Sequence[int], model: AnyClusterer
) -> None:
    """Write a line for each cluster: its number, its size, its center in the data's units."""
    names = ["cluster", "size", *map(escape_formula, columns)]
    # csv quotes line feeds, but not carriage returns that the line terminator does not have.
    quote_all = any("\r" in name for name in names)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        (header if quote_all else writer).writerow(names)
        for number, center in enumerate(np.asarray(model.cluster_centers_).tolist()):
            writer.writerow([number, sizes[number], *center])


def notes_on_names(columns: Sequence[str]) -> list[str]:
    """Return a note about names that `escape_formula` changes in centers.csv, if there are any."""
    changed = [name for name in columns if escape_formula(name) != name]
    if not changed:
        return []
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [
        f"centers.csv: an apostrophe is written before the name {changed[0]!r}{more}, so that "
        "spreadsheets do not run it as a formula"
    ]


def versions() -> dict[str, str]:
    """Return the versions of the software that made the files."""
    return {
        "lloydformer": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def describe_fit(
    settings: FitSettings,
    command: str,
    model: AnyClusterer,
    *,
    totals: ClusterTotals,
    columns: Sequence[str],
    seconds: float,
) -> dict[str, Any]:
    """Return what summary.json says of every fit, in this process or on a cluster."""
    return {
        "command": command,
        "versions": versions(),
        "data": settings.data,
        "n": totals.n_rows,
        "d": len(columns),
        "columns": list(columns),
        "algorithm": settings.algorithm,
        "options": settings.printable_parameters,
        "k": len(model.cluster_centers_),
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "seconds": seconds,
        # Iterations of the best start, but the seconds of the whole fit.
        "points_per_second": totals.n_rows * max(model.n_iter_, 1) / max(seconds, 1e-9),
        "sizes": totals.sizes,
        "history": model.objective_history_.tolist(),
        "files": {Path(name).stem: str(settings.folder / name) for name in output_names(settings)},
    }


def summarize(settings: FitSettings, command: str, result: FitResult) -> dict[str, Any]:
    """Return the content of summary.json.

    `rows` has a fit for each k; everything else describes the fit that is written.
    """
    model, totals, clusters = result.model, result.totals, dict[str, dict[str, Any]]()
    columns = (totals.sizes, totals.mean_distances, model.cluster_centers_.tolist())
    for number, (size, distance, center) in enumerate(zip(*columns, strict=True)):
        share = size / totals.n_rows
        about = {"size": size, "share": share, "mean_distance": distance, "center": center}
        clusters[str(number)] = about
    for number, count in enumerate(totals.left_out or ()):
        clusters[str(number)]["left_out"] = count
    every = describe_fit(
        *(settings, command, model),
        totals=totals,
        columns=result.columns,
        seconds=result.seconds,
    )
    return every | {
        "n_dropped": len(result.table.dropped),
        "scale": settings.scale_method,
        "scales": {
            column: {"method": choice.method, "reason": choice.reason}
            for column, choice in zip(result.columns, result.table.choices, strict=False)
        },
        "silhouette": result.silhouette,
        "silhouette_sample": len(result.sample_silhouettes[0]),
        "notes": list(result.notes),
        "advice": list(result.advice),
        "select": settings.select,
        "evidence": None if result.evidence is None else result.evidence.as_dict(),
        "clusters": clusters,
        "rows": {str(run.k): run.as_dict() for run in result.runs},
    }


@dataclass(frozen=True)
class ModelColumns:
    """Conversion of the columns of a table to the features of a model.

    Attributes
    ----------
    conversion : Conversion
        The features.
    missing : str
        What the fit did with missing values.
    id_column : str or None
        The column that named the rows in the fit.
    """

    conversion: Conversion
    missing: str = "error"
    id_column: str | None = None


def load_model(path: Path) -> AnyClusterer:
    """Load a model from its folder, or from the output folder of a fit.

    Raises ValueError if there is no model, or if it is not fitted.
    """
    model = Saved.from_pretrained(model_folder(path))
    if not isinstance(model, AnyClusterer):
        raise ValueError(f"{path}: holds a {type(model).__name__}, which has no clusters")
    if not hasattr(model, "cluster_centers_"):
        raise ValueError(f"{path}: this model is not fitted; fit it, and save it again")
    return model


def load_columns(path: Path, model: AnyClusterer) -> ModelColumns:
    """Read columns.json of a model; without it, the columns are the model's features.

    Raises ValueError if the file is damaged.
    """
    path = model_folder(path) / COLUMNS
    if not path.exists():
        names = getattr(model, "feature_names_in_", None)
        columns = map(str, range(1, model.n_features_in_ + 1) if names is None else names)
        return ModelColumns(Conversion(tuple(map(Feature, columns)), names is not None))
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{path}: is not a file of this version of lloydformer; fit again")
    try:
        conversion = Conversion.from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: is damaged ({error}); fit again") from None
    missing, id_column = content.get("missing"), content.get("id_column")
    if missing not in MISSING or len(conversion.labels) != model.n_features_in_:
        raise ValueError(f"{path}: does not belong to this model; fit again")
    if not isinstance(id_column, str | None):
        raise ValueError(f"{path}: is damaged (id_column is not a name); fit again")
    return ModelColumns(conversion, str(missing), id_column)
