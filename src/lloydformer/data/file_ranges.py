"""Ranges of files, each of which one worker reads: row groups, rows of an array, lines of a text.

Files are opened with fsspec, so they may be on this machine, on s3, or wherever it reads from.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from lloydformer.data.csv_values import MISSING_VALUES, is_number
from lloydformer.data.numpy_files import declared_array
from lloydformer.data.paths import PACKED, TEXTS, kind_of
from lloydformer.data.table_options import TableOptions
from lloydformer.data.tables import import_pyarrow, stacked_columns

RANGE_BYTES = 1 << 26
"""Bytes of a range, about."""
_HEADER = 1 << 20
"""Bytes in which the header of a file must end."""
_KINDS = (".parquet", ".npy", *TEXTS)


@dataclass(frozen=True)
class FileRange:
    """Some rows of a file.

    Attributes
    ----------
    url : str
        The file.
    start, stop : int
        Row groups of a Parquet file, rows of an NPY file, bytes of a text.
    names : tuple of str or None
        Names of the columns of the file.
    width : int
        Number of columns.
    skip : int
        Bytes of the header of a text.
    """

    url: str
    start: int
    stop: int
    names: tuple[str, ...] | None
    width: int
    skip: int = 0

    @property
    def words(self) -> str:
        unit = {".parquet": "row groups", ".npy": "rows"}.get(_kind(self.url), "bytes")
        return f"{self.url}, {unit} {self.start} to {self.stop}"


def find_files(pattern: str) -> list[str]:
    """The files of a pattern with * and ?, of a folder, or the file itself, by their names.

    Raises ValueError if there are none, or files of a kind that is not read in ranges.
    """
    with _readable(pattern):
        fs, path = _filesystem(pattern)
        if any(sign in path for sign in "*?["):
            found = sorted(fs.glob(path))
        elif fs.isdir(path):
            found = sorted(str(p) for p in fs.ls(path, detail=False) if _kind(str(p)) in _KINDS)
        else:
            found = [path] if fs.exists(path) else []
    if not found:
        raise ValueError(f"{pattern}: no such file; check the path, and put patterns in quotes")
    urls = [str(fs.unstrip_protocol(path)) for path in found]
    for url in urls:
        if _kind(url) not in _KINDS:
            raise ValueError(
                f"{url}: is not read by workers; pass .parquet, .npy or .csv files, or leave out "
                "--cluster and --workers"
            )
    return urls


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    return fsspec.core.url_to_fs(url)


def _kind(url: str) -> str:
    return kind_of(Path(PurePosixPath(url.rpartition("::")[2]).name))


def ranges_of(url: str, options: TableOptions, size: int = RANGE_BYTES) -> list[FileRange]:
    """The ranges that a file is read in. Only its header is read here."""
    with _readable(url):
        fs, path = _filesystem(url)
        if _kind(url) == ".parquet":
            return _parquet_ranges(url, fs, path, size)
        if _kind(url) == ".npy":
            return _array_ranges(url, fs, path, size)
        return _text_ranges(url, fs, path, options, size)


def _parquet_ranges(url: str, fs: Any, path: str, size: int) -> list[FileRange]:
    parquet = import_pyarrow().parquet
    with fs.open(path, "rb") as file:
        metadata = parquet.ParquetFile(file).metadata
    names = tuple(metadata.schema.to_arrow_schema().names)
    found, start, held = list[FileRange](), 0, 0
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= size or group == metadata.num_row_groups - 1:
            found.append(FileRange(url, start, group + 1, names, len(names)))
            start, held = group + 1, 0
    return found


def _array_ranges(url: str, fs: Any, path: str, size: int) -> list[FileRange]:
    with fs.open(path, "rb") as file:
        shape, _, dtype, skip = declared_array(file.read(_HEADER), fs.size(path))
    if len(shape) != 2 or dtype.kind not in "iubf":
        raise ValueError(f"found dtype {dtype} and shape {shape}; points are rows of numbers")
    step = max(1, size // max(1, shape[1] * dtype.itemsize))
    starts = range(0, max(shape[0], 1), step)
    ends = (min(start + step, shape[0]) for start in starts)
    return [FileRange(url, a, b, None, shape[1], skip) for a, b in zip(starts, ends, strict=True)]


def _text_ranges(url: str, fs: Any, path: str, options: TableOptions, size: int) -> list[FileRange]:
    with fs.open(path, "rb", compression="infer") as file:
        line = file.readline(_HEADER)
    fields = next(csv.reader([line.decode("utf-8-sig")], delimiter=_separator(url, options)), [])
    if not fields:
        raise ValueError("found no rows; points are rows of numbers")
    header = options.header
    if header is None:
        header = not all(is_number(field, ".") or field in MISSING_VALUES for field in fields)
    names, skip = (tuple(fields), len(line)) if header else (None, 0)
    packed = PurePosixPath(url).suffix.lower() in PACKED  # is read as a whole
    stop = -1 if packed else fs.size(path)
    starts = [skip] if packed else list(range(skip, max(stop, skip + 1), size))
    ends = [*starts[1:], stop]
    return [
        FileRange(url, a, b, names, len(fields), skip) for a, b in zip(starts, ends, strict=True)
    ]


def _separator(url: str, options: TableOptions) -> str:
    return options.separator or ("\t" if _kind(url) in (".tsv", ".tab") else ",")


def read_range(part: FileRange, columns: Sequence[int], options: TableOptions) -> np.ndarray:
    """The rows of a range, (m, d): float32 if all numbers are, otherwise float64."""
    with _readable(part.words):
        fs, path = _filesystem(part.url)
        if _kind(part.url) == ".parquet":
            return _read_groups(part, fs, path, columns)
        if _kind(part.url) == ".npy":
            return _read_rows(part, fs, path)[:, list(columns)]
        return _read_lines(part, fs, path, columns, options)


def _read_groups(part: FileRange, fs: Any, path: str, columns: Sequence[int]) -> np.ndarray:
    assert part.names is not None
    names = [part.names[i] for i in columns]
    with fs.open(path, "rb") as file:
        parquet = import_pyarrow().parquet.ParquetFile(file)
        table = parquet.read_row_groups(list(range(part.start, part.stop)), columns=names)
    return stacked_columns([table.column(name).combine_chunks() for name in names], table.num_rows)


def _read_rows(part: FileRange, fs: Any, path: str) -> np.ndarray:
    with fs.open(path, "rb") as file:
        shape, column_major, dtype, skip = declared_array(file.read(_HEADER), fs.size(path))
        if column_major:
            file.seek(skip)
            whole = np.frombuffer(file.read(), dtype=dtype).reshape(shape[::-1]).T
            rows = whole[part.start : part.stop]
        else:
            row = shape[1] * dtype.itemsize
            file.seek(skip + part.start * row)
            content = file.read((part.stop - part.start) * row)
            rows = np.frombuffer(content, dtype=dtype).reshape(-1, shape[1])
    return np.array(rows, dtype=np.float32 if dtype == np.float32 else np.float64, order="C")


def _read_lines(
    part: FileRange, fs: Any, path: str, columns: Sequence[int], options: TableOptions
) -> np.ndarray:
    """Lines that begin in the range; the last one may end after it."""
    with fs.open(path, "rb", compression="infer") as file:
        file.seek(max(part.start - 1, 0))
        if part.start > part.skip:
            file.readline()  # the line before begins in another range
        else:
            file.seek(part.start)
        if part.stop < 0:
            content = file.read()
        else:
            content = file.read(max(0, part.stop - file.tell()))
            if content and not content.endswith(b"\n"):
                content += file.readline()
    if not content.strip():
        return np.empty((0, len(columns)))
    arrow = import_pyarrow()
    import pyarrow.csv

    labels = [str(i) for i in range(part.width)]
    chosen = [labels[i] for i in columns]
    table = pyarrow.csv.read_csv(
        io.BytesIO(content),
        pyarrow.csv.ReadOptions(column_names=labels, use_threads=False),
        pyarrow.csv.ParseOptions(delimiter=_separator(part.url, options)),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(chosen, arrow.float64()), include_columns=chosen,
            null_values=list(MISSING_VALUES), decimal_point=options.decimal or ".",
        ),
    )  # fmt: skip
    return stacked_columns([table.column(i).combine_chunks() for i in chosen], table.num_rows)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Errors of file systems and formats, in words, with the name of the file."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{name}: {error}") from None
    except (OSError, ValueError, EOFError, KeyError) as error:
        words = " ".join(str(error).split())[:300] or type(error).__name__
        known = words if words.startswith(name) else f"{name}: {words}"
        raise ValueError(known) from None
