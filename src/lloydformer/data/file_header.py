"""What is known of a file before its rows are read, and ranges of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lloydformer.data.csv_format import CsvFormat
from lloydformer.data.paths import kind_of
from lloydformer.data.record_source import refuse_words
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey


def kind_of_url(url: str) -> str:
    """The ending that tells what a file holds.

    >>> kind_of_url("s3://bucket/points.csv.gz"), kind_of_url("zip://a.npy::/tmp/all.zip")
    ('.csv', '.zip')
    """
    return kind_of(Path(PurePosixPath(url.rpartition("::")[2]).name))


@dataclass(frozen=True)
class FileHeader:
    """The columns of a file, and how it is written.

    Attributes
    ----------
    name : str
        The address of the file.
    names : tuple of str or None
        Names of the columns.
    width : int
        Number of columns.
    row_numbers : frozenset of str
        Columns that are used only if they are chosen: the index of a pandas data frame.
    other_types : dict of int to str
        The types of columns that are not numbers.
    written : CsvFormat
        Separator and decimal point of a text.
    skip : int
        Bytes of a text before its first row.
    """

    name: str
    names: tuple[str, ...] | None
    width: int
    row_numbers: frozenset[str] = frozenset()
    other_types: dict[int, str] | None = None
    written: CsvFormat = CsvFormat()  # noqa: RUF009 (frozen)
    skip: int = 0

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """The columns by their types, without a look at the rows."""
        found = [ColumnSurvey(numbers=1) for _ in range(self.width)]
        for i, kind in (self.other_types or {}).items():
            found[i] = ColumnSurvey()
            found[i].add_word(kind, "type")
        return found

    def check_types(self, columns: Sequence[int], options: TableOptions) -> None:
        """Raise ValueError if one of these columns is not made of numbers."""
        refuse_words(self, self.survey(), columns, options)


@dataclass(frozen=True)
class FileRange:
    """Some rows of a file.

    Attributes
    ----------
    header : FileHeader
        The file.
    start, stop : int
        Row groups of a Parquet file, rows of an NPY file, bytes of a text (stop -1: to its end).
    first_row : int or None
        The number of the first row in the file, if it is known.
    """

    header: FileHeader
    start: int
    stop: int
    first_row: int | None = None

    @property
    def words(self) -> str:
        name = self.header.name
        unit = {".parquet": "row groups", ".npy": "rows"}.get(kind_of_url(name), "bytes")
        return name if self.stop < 0 else f"{name}, {unit} {self.start} to {self.stop}"

    def place(self, row: int) -> str:
        """Where a row of the range is, counted from 1 in the file if possible."""
        if self.first_row is None:
            return f"{self.words}, row {row + 1} of these"
        return f"{self.header.name}, row {self.first_row + row + 1}"
