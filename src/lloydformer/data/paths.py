"""Names of data: paths of files and folders, and sets of OpenML. Reads nothing, imports little."""

import os
import re
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

PREFIX = "openml:"
OPENML_NAME = re.compile(r"(?P<name>\w[\w.,()+' -]*)(@(?P<version>\d{1,9}))?")
STANDARD_INPUT = "-"
TEXTS = (".csv", ".tsv", ".txt", ".tab", ".dat", ".data")
# Endings of compressed files, after that of a text.
PACKED = (".gz", ".zst", ".bz2", ".xz")
SHEETS = (".xlsx", ".xlsm")
KINDS = (*TEXTS, *SHEETS, ".parquet", ".npy", ".npz")
_OLD_SHEETS = (".xls", ".xlsb", ".ods")
# Files of a folder that are compared with a missing one; bounds the time in huge folders.
_COMPARED = 1000


def check_source(source: str) -> None:
    """Raise `ValueError` if the source names no file, folder or set; uses no network."""
    if source != STANDARD_INPUT and not source.startswith(PREFIX):
        check_path(resolve_path(source))


def file_kind(path: Path) -> str:
    """Return the ending that tells what a file holds: .csv for points.csv.gz, and for `-`.

    >>> file_kind(Path("points.tsv.gz")), file_kind(Path("a.Parquet")), file_kind(Path("-"))
    ('.tsv', '.parquet', '.csv')
    """
    ending = path.suffix.lower()
    if str(path) == STANDARD_INPUT:
        return ".csv"
    if ending in PACKED:
        inner = Path(path.stem).suffix.lower()
        return inner if inner in TEXTS else ".csv" if not inner else f"{inner}{ending}"
    return ending


def resolve_path(source: str) -> Path:
    """Return the path of a source, which may be the name of a set in LLOYDFORMER_DATA.

    Raises `ValueError` for a bare name without a file.
    """
    if not source:
        raise ValueError("source: found an empty name; pass a file, a folder or openml:NAME")
    path = Path(source)
    if path.exists() or path.suffix or path.name != source:
        return path
    if (local := find_in_data_folder(path.name)) is not None:
        return local
    similar = _similar_path(path)
    did_you_mean = f"did you mean {similar}? Or " if similar else ""
    name = path.name if OPENML_NAME.fullmatch(path.name) else "NAME"
    raise ValueError(
        f"{path}: no such file or folder; {did_you_mean}pass {PREFIX}{name} to fetch a data set "
        "of this name from OpenML"
    )


def check_path(path: Path) -> None:
    """Raise `ValueError` if there is no folder of this name, and no file that can be read."""
    if path.is_dir():
        return
    if not path.exists():
        similar = _similar_path(path)
        repair = f"did you mean {similar}?" if similar else "check the path"
        raise ValueError(f"{path}: no such file or folder; {repair}")
    if not path.is_file():
        raise ValueError(f"{path}: is a pipe or a device; pass a regular file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; pass one with rows of numbers")
    kind = file_kind(path)
    if kind in _OLD_SHEETS:
        raise ValueError(f"{path}: {path.suffix} files are not supported; save it as .xlsx or .csv")
    if kind not in KINDS:
        raise ValueError(
            f"{path}: {path.suffix or 'extensionless'} files are not supported; "
            "pass .csv, .tsv, .xlsx, .parquet, .npy, .npz or a folder of them"
        )


def _similar_path(path: Path) -> str | None:
    """Return a file or folder next to a missing one with a similar name, or with another ending."""
    names: dict[str, str] = {}
    with suppress(OSError):
        for other in islice(path.parent.iterdir(), _COMPARED):
            names |= {other.name: other.name, other.stem: other.name}
    # 0.75, chosen by hand: a slip or two in a name of usual length.
    similar = get_close_matches(path.name, names, n=1, cutoff=0.75)
    return str(path.with_name(names[similar[0]])) if similar else None


def find_in_data_folder(name: str) -> Path | None:
    """Return the file NAME.npz in the folder LLOYDFORMER_DATA, or None if there is none."""
    folder = os.environ.get("LLOYDFORMER_DATA")
    path = Path(folder) / f"{name}.npz" if folder else None
    return path if path is not None and path.exists() else None
