"""Ranges of files, each of which one worker reads: row groups, rows of an array, lines of a text.

Files are opened with fsspec, so they may be on this machine, on s3, or wherever it reads from.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from lloydformer.data.file_header import FileHeader, FileRange, kind_of_url
from lloydformer.data.numpy_files import declared_array
from lloydformer.data.paths import TEXTS
from lloydformer.data.table_options import TableOptions
from lloydformer.data.tables import import_pyarrow, index_columns, other_types, stacked_columns
from lloydformer.data.text_ranges import RemoteText, read_lines, text_ranges

RANGE_BYTES = 1 << 26
"""Target size of a range, in bytes."""
_HEADER = 1 << 20
"""Bytes in which the header of an array must end."""
_KINDS = (".parquet", ".npy", *TEXTS)


def find_files(pattern: str) -> list[str]:
    """The files of a pattern with * and ?, of a folder, or the file itself, by their names.

    Raises ValueError if there are none, or files of a kind that is not read in ranges.
    """
    with _readable(pattern):
        fs, path = _filesystem(pattern)
        if fs.isdir(path):
            found = sorted(
                str(p) for p in fs.ls(path, detail=False) if kind_of_url(str(p)) in _KINDS
            )
        else:  # a name with [ may be that of a file
            found = [path] if fs.exists(path) else sorted(fs.glob(path))
    if not found:
        raise ValueError(f"{pattern}: no such file; check the path, and put patterns in quotes")
    urls = [str(fs.unstrip_protocol(path)) for path in found]
    for url in urls:
        if kind_of_url(url) not in _KINDS:
            raise ValueError(
                f"{url}: is not read by workers; pass .parquet, .npy or .csv files, or leave out "
                "--cluster and --workers"
            )
    return urls


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    return fsspec.core.url_to_fs(url)


def ranges_of(url: str, options: TableOptions, size: int = RANGE_BYTES) -> list[FileRange]:
    """The ranges that a file is read in, at least one. Only its beginning is read here."""
    with _readable(url):
        fs, path = _filesystem(url)
        if kind_of_url(url) == ".parquet":
            return _parquet_ranges(url, fs, path, options, size)
        if kind_of_url(url) == ".npy":
            return _array_ranges(url, fs, path, size)
        return text_ranges(RemoteText(url, fs, path), options, size)


def _parquet_ranges(
    url: str, fs: Any, path: str, options: TableOptions, size: int
) -> list[FileRange]:
    with fs.open(path, "rb") as file:
        parquet = import_pyarrow().parquet.ParquetFile(file)
        schema, metadata = parquet.schema_arrow, parquet.metadata
    names = tuple(schema.names)
    index = frozenset() if options.columns else frozenset(index_columns(url, schema))
    header = FileHeader(url, names, len(names), index, other_types(schema))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = [0, *accumulate(group.num_rows for group in groups)]
    ends, held = [0], 0
    for number, group in enumerate(groups, start=1):
        held += group.total_byte_size
        if held >= size or number == len(groups):
            ends.append(number)
            held = 0
    return [FileRange(header, a, b, rows[a]) for a, b in pairwise(ends)] or [
        FileRange(header, 0, 0, 0)  # has no rows, and columns
    ]


def _array_ranges(url: str, fs: Any, path: str, size: int) -> list[FileRange]:
    with fs.open(path, "rb") as file:
        shape, _, dtype, _ = declared_array(file.read(_HEADER), fs.size(path))
    if len(shape) != 2 or dtype.kind not in "iubf":
        raise ValueError(f"found dtype {dtype} and shape {shape}; points are rows of numbers")
    header = FileHeader(url, None, shape[1])
    step = max(1, size // max(1, shape[1] * dtype.itemsize))
    starts = range(0, max(shape[0], 1), step)
    return [FileRange(header, a, min(a + step, shape[0]), a) for a in starts]


def read_range(part: FileRange, columns: Sequence[int], options: TableOptions) -> np.ndarray:
    """The rows of a range, (m, d): float32 if all numbers are, otherwise float64."""
    with _readable(part.words):
        url = part.header.name
        fs, path = _filesystem(url)
        if kind_of_url(url) == ".parquet":
            return _read_groups(part, fs, path, columns)
        if kind_of_url(url) == ".npy":
            return _read_rows(part, fs, path)[:, list(columns)]
        return read_lines(part, RemoteText(url, fs, path), columns, options)


def _read_groups(part: FileRange, fs: Any, path: str, columns: Sequence[int]) -> np.ndarray:
    assert part.header.names is not None
    names = [part.header.names[i] for i in columns]
    with fs.open(path, "rb") as file:
        parquet = import_pyarrow().parquet.ParquetFile(file)
        table = parquet.read_row_groups(list(range(part.start, part.stop)), columns=names)
    return stacked_columns([table.column(name).combine_chunks() for name in names], table.num_rows)


def _read_rows(part: FileRange, fs: Any, path: str) -> np.ndarray:
    with fs.open(path, "rb") as file:
        shape, column_major, dtype, skip = declared_array(file.read(_HEADER), fs.size(path))
        if column_major:
            file.seek(skip)
            content = file.read(math.prod(shape) * dtype.itemsize)
            whole = np.frombuffer(content, dtype=dtype).reshape(shape[::-1]).T
            rows = whole[part.start : part.stop]
        else:
            row = shape[1] * dtype.itemsize
            file.seek(skip + part.start * row)
            content = file.read((part.stop - part.start) * row)
            rows = np.frombuffer(content, dtype=dtype).reshape(-1, shape[1])
    return np.array(rows, dtype=np.float32 if dtype == np.float32 else np.float64, order="C")


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Errors of file systems and formats, in words, with the name of the file."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{name}: {error}") from None
    except (OSError, ValueError, TypeError, EOFError, KeyError, csv.Error) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        known = words if words.startswith(name) else f"{name}: {words[:300]}"
        raise ValueError(known) from None
