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
"""The name of standard input."""
TEXTS = (".csv", ".tsv", ".txt", ".tab", ".dat", ".data")
PACKED = (".gz", ".zst", ".bz2", ".xz")
"""Endings of compressed files, after that of a text."""
SHEETS = (".xlsx", ".xlsm")
_SUFFIXES = (*TEXTS, *SHEETS, ".parquet", ".npy", ".npz")
_OLD = (".xls", ".xlsb", ".ods")
_NAMES = 1000
"""Files of a folder that are compared with a missing one."""


def check_source(source: str) -> None:
    """Raise ValueError if the source names no file, folder or set; the network is not asked."""
    if source != STANDARD_INPUT and not source.startswith(PREFIX):
        check_path(path_of(source))


def kind_of(path: Path) -> str:
    """The ending that tells what a file holds: .csv for points.csv.gz; of standard input, .csv.

    >>> kind_of(Path("points.tsv.gz")), kind_of(Path("a.Parquet")), kind_of(Path("-"))
    ('.tsv', '.parquet', '.csv')
    """
    ending = path.suffix.lower()
    if str(path) == STANDARD_INPUT:
        return ".csv"
    if ending in PACKED:
        inner = Path(path.stem).suffix.lower()
        return inner if inner in TEXTS else ".csv" if not inner else f"{inner}{ending}"
    return ending


def path_of(source: str) -> Path:
    """The path of a source, which may be the name of a set in the folder LLOYDFORMER_DATA."""
    if not source:
        raise ValueError("source: found an empty name; pass a file, a folder or openml:NAME")
    path = Path(source)
    if path.exists() or path.suffix or path.name != source:
        return path
    return in_data_folder(path.name) or _no_such_name(path)


def _no_such_name(path: Path) -> Path:
    near = near_name(path)
    did_you_mean = f"did you mean {near}? Or " if near else ""
    name = path.name if OPENML_NAME.fullmatch(path.name) else "NAME"
    raise ValueError(
        f"{path}: no such file or folder; {did_you_mean}pass {PREFIX}{name} to fetch a data set "
        "of this name from OpenML"
    )


def check_path(path: Path) -> None:
    """Raise ValueError if there is no folder of this name, and no file that can be read."""
    if path.is_dir():
        return
    if not path.exists():
        near = near_name(path)
        repair = f"did you mean {near}?" if near else "check the path"
        raise ValueError(f"{path}: no such file or folder; {repair}")
    if not path.is_file():
        raise ValueError(f"{path}: is a pipe or a device; pass a regular file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; pass one with rows of numbers")
    if kind_of(path) in _OLD:
        raise ValueError(f"{path}: {path.suffix} files are not supported; save it as .xlsx or .csv")
    if kind_of(path) not in _SUFFIXES:
        raise ValueError(f"{path}: {path.suffix or 'extensionless'} files are not supported; "
                         "pass .csv, .tsv, .xlsx, .parquet, .npy, .npz or a folder of them"
                         )  # fmt: skip


def near_name(path: Path) -> str | None:
    """A file or folder beside a missing one with a similar name, with or without its ending."""
    names: dict[str, str] = {}
    with suppress(OSError):
        for other in islice(path.parent.iterdir(), _NAMES):
            names |= {other.name: other.name, other.stem: other.name}
    found = get_close_matches(path.name, names, n=1, cutoff=0.75)
    return str(path.with_name(names[found[0]])) if found else None


def in_data_folder(name: str) -> Path | None:
    """The file NAME.npz in the folder LLOYDFORMER_DATA, or None if there is no such file."""
    folder = os.environ.get("LLOYDFORMER_DATA")
    path = Path(folder) / f"{name}.npz" if folder else None
    return path if path is not None and path.exists() else None
