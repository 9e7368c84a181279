"""Files of points: CSV, Excel, Parquet, NPY, NPZ, and folders of them, as tables."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lloydformer.data.array_source import ArraySource
from lloydformer.data.byte_source import ByteSource
from lloydformer.data.csv_source import open_csv
from lloydformer.data.numpy_files import map_npy, read_npz
from lloydformer.data.paths import PACKED, SHEETS, STANDARD_INPUT, TEXTS, check_path, kind_of
from lloydformer.data.sheets import open_sheet
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey, TableBatch, TableSource
from lloydformer.data.tables import open_parquet

_KINDS = (*TEXTS, *SHEETS, ".parquet", ".npy", ".npz")


def open_file(
    path: Path, options: TableOptions, expected: Sequence[str] | None = None
) -> tuple[TableSource, list[str]]:
    """Open a file, or all files of a folder; returns notes about what was recognised.

    `expected`: names that its header may have.
    """
    if path.is_dir():
        return _open_folder(path, options, expected)
    if str(path) != STANDARD_INPUT:
        check_path(path)
    kind = kind_of(path)
    if kind == ".parquet":
        return open_parquet(path, options), []
    if kind == ".npy":
        return ArraySource(str(path), map_npy(path)), []
    if kind == ".npz":
        return ArraySource(str(path), read_npz(path)), []
    if kind in SHEETS:
        sheet, title = open_sheet(path, options, expected)
        more = f"; {options.spelled('sheet')} chooses another"
        return sheet, [f"{path}: sheet {title!r} was read{more}"] if title else []
    default = "\t" if kind in (".tsv", ".tab") else ","
    source = open_csv(ByteSource(path), options, default, expected)
    return source, _said(source.name, source.written.said, options)


def _said(name: str, said: Sequence[str], options: TableOptions) -> list[str]:
    if not said:
        return []
    more = " (--sep, --decimal and --encoding change that)" if options.shell else ""
    return [f"{name}: recognised {', '.join(said)}{more}"]


def _open_folder(
    path: Path, options: TableOptions, expected: Sequence[str] | None
) -> tuple[TableSource, list[str]]:
    files = files_of(path)
    if not files:
        raise ValueError(f"{path}: no .csv, .parquet, .npy or .npz file in this folder")
    opened = [open_file(file, options, expected) for file in files]
    return FolderSource(path, [source for source, _ in opened]), opened[0][1]


def files_of(folder: Path) -> list[Path]:
    """The files of points in a folder, in the order of their names."""
    named = [f for f in folder.iterdir() if f.suffix.lower() in (*_KINDS, *PACKED)]
    return sorted(f for f in named if kind_of(f) in _KINDS)


class FolderSource:
    """Tables one after the other.

    Parameters
    ----------
    path : Path
        The folder.
    tables : list of TableSource
        The tables; columns are found in each by their names.
    """

    def __init__(self, path: Path, tables: list[TableSource]) -> None:
        self.name, self.tables, first = str(path), tables, tables[0]
        self.names, self.width = first.names, first.width
        self.rows: list[int] = []
        """Rows of the tables that were read."""

    @property
    def row_numbers(self) -> set[str]:
        return getattr(self.tables[0], "row_numbers", set())

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        self.rows = []
        for table in self.tables:
            chosen = [self._same(table, columns) for columns in (numbers, texts)]
            count = 0
            for batch in table.batches(*chosen):
                count += len(batch)
                yield batch
            self.rows.append(count)

    def _same(self, table: TableSource, columns: Sequence[int]) -> list[int]:
        """Where these columns of the first table are in another one."""
        if table.names == self.names and table.width == self.width:
            return list(columns)
        wanted = [self.names[i] for i in columns] if self.names is not None else []
        if self.names is None or table.names is None or not set(wanted) <= set(table.names):
            raise ValueError(
                f"{table.name}: its columns differ from those of "
                f"{Path(self.tables[0].name).name}; put files with the same columns in a folder, "
                "or choose columns"
            )
        return [table.names.index(name) for name in wanted]

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """Of all tables; a column is numeric if it is so in each."""
        found = self.tables[0].survey(n_rows)
        for table in self.tables[1:]:
            for own, other in zip(found, table.survey(n_rows), strict=False):
                own.numbers += other.numbers
                own.missing += other.missing
                own.n_words += other.n_words
                own.place, own.word = own.place or other.place, own.word or other.word
        return found

    def place(self, row: int) -> str:
        for table, count in zip(self.tables, [*self.rows, 0], strict=False):
            if row < count or table is self.tables[-1]:
                return f"{Path(table.name).name}: {table.place(row)}"
            row -= count
        raise IndexError(row)
