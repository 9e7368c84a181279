"""CSV files with all kinds of headers, and the errors for faulty ones."""

import bz2
import gzip
import io
import lzma
import sys

import pyarrow
import pytest

import lloydformer as lf
from lloydformer.data import csv_table
from lloydformer.data.csv_format import CsvFormat
from lloydformer.data.sources import open_file
from lloydformer.data.table_options import TableOptions
from lloydformer.data.text_file import TextFile


def column_names(path):
    return open_file(path, TableOptions()).names


READ = {
    "quoted names": ('"a, b",c\n1,2\n3,4\n', ("a, b", "c")),
    "spaces around names": ("a , b\r\n1,2\r\n3,4\r\n", ("a", "b")),
    "byte order mark": ("\ufeffa,b\n1,2\n3,4\n", ("a", "b")),
    "byte order mark without names": ("\ufeff1,2\n3,4\n", None),
    "empty lines before": ("\n\na,b\n1,2\n3,4\n", ("a", "b")),
    "empty lines between": ("a,b\n1,2\n\n3,4\n\n", ("a", "b")),
    "a name in two lines": ('"a\nb",c\n1,2\n3,4\n', ("a\nb", "c")),
    "no names": ("1,2\n3,4\n", None),
    "no end of the last line": ("a,b\n1,2\n3,4", ("a", "b")),
    "a comma at the end": ("a,b,\n1,2,\n3,4,\n", ("a", "b")),
    "semicolons": ("a;b\n1;2\n3;4\n", ("a", "b")),
    "decimal commas": ("a;b\n1,0;2,00\n3;4,0\n", ("a", "b")),
}


@pytest.mark.parametrize("kind", READ)
def test_headers_and_rows_are_read(tmp_path, kind):
    text, names = READ[kind]
    path = tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8", newline="")
    blocks = lf.data.open_dataset(path)
    assert blocks.points.tolist() == [[1, 2], [3, 4]]
    assert blocks.names == names
    assert (column_names(path) or (None,))[:2] == (names or (None,))
    assert column_names(tmp_path) == column_names(path)


WRONG = {
    "too many": ("a,b\n1,2\n\n3,4,5\n", "line 4: found 3 values for 2 columns; give every row"),
    "too few, without names": ("1,2\n3\n", "line 2: found 1 values for 2 columns"),
    "a word": ("a,b\n1,2\nx,4\n", "line 3, column a: found 'x'; correct it, or choose columns"),
    "a word, without names": ("1,2\n3,x\n", "line 2, column number 2: found 'x'"),
    "a name twice": ("a,a\n1,2\n", "column a appears twice"),
    "only empty lines": ("\n\n", "found no rows"),
    "only names": ("a,b\n", "found no rows"),
    "row numbers": (",a\n0,1\n1,2\n", "column 1 has no name .*; name it, or choose"),
    "a missing value": ("a,b\n1,2\n3,\n", "line 3, column b: found a missing value; fill in"),
    "missing in the first row": ("1,NA\n3,4\n", "line 1, column number 2: found a missing value"),
    "open quote": ('a,b\n1,2\n3,"4\n' + "5,6\n" * 50_000, "line 3: found a quote that is not"),
    "open quote among names": ('a,"b\n' + "5,6\n" * 50_000, "line 1: found a quote that is not"),
    "a row in two lines": ('a,b\n1,"2\n3"\n', "b is not numeric .line 2: '2.n3'.; use"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_errors_name_the_line(tmp_path, kind):
    text, words = WRONG[kind]
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        lf.data.open_dataset(path)
    assert str(error.value).startswith(f"{path}: ")


PACK = {
    "csv": bytes,
    "csv.gz": gzip.compress,
    "csv.bz2": bz2.compress,
    "csv.xz": lzma.compress,
    "csv.zst": lambda text: pyarrow.compress(text, "zstd", asbytes=True),
}
ENDLESS = {
    "an open quote": ('3,"4\n', "5,6\n", "found a quote that is not closed; close it, or"),
    "an open quote in one line": (
        '3,"',
        "4444",
        "found a record of more than 1 million char",
    ),
    "quotes around ends of lines": ('3,"\n', '","\n', "found a record of more than 1 million char"),
    "no ends of lines": ("3,", "4,", "found a record of more than 1 million char"),
}


@pytest.fixture
def short_records(monkeypatch):
    monkeypatch.setattr(csv_table, "_LONGEST", 1 << 20)


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("case", ENDLESS)
def test_a_record_without_an_end_is_an_error_with_its_line(tmp_path, short_records, kind, case):
    begin, rest, words = ENDLESS[case]
    path = tmp_path / f"p.{kind}"
    path.write_bytes(PACK[kind](("a,b\n1,2\n" + begin + rest * (3 << 18)).encode()))
    with pytest.raises(ValueError, match=f"line 3: {words}") as error:
        lf.data.open_dataset(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("case", ENDLESS)
def test_a_record_without_an_end_on_standard_input(monkeypatch, short_records, case):
    begin, rest, words = ENDLESS[case]
    text = "a,b\n1,2\n" + begin + rest * (3 << 18)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(ValueError, match=f"standard input: line 3: {words}"):
        lf.data.open_dataset("-")


class Counted(io.BytesIO):
    """Bytes that know how many of them were read."""

    n_read = 0

    def readinto(self, target):
        count = super().readinto(target)
        self.n_read += count
        return count


@pytest.mark.parametrize("case", ENDLESS)
def test_the_rest_of_a_file_is_not_read_for_a_record_without_an_end(short_records, case):
    """A compressed file may hold a thousand times its bytes, so this took minutes."""
    begin, rest, words = ENDLESS[case]
    file = Counted(("a,b\n1,2\n" + begin + rest * (4 << 20)).encode())
    with pytest.raises(ValueError, match=words):
        list(csv_table.csv_records(TextFile("p", lambda: file, plain=True), CsvFormat()))
    assert file.n_read < 2 << 20


def test_a_long_record_in_many_lines_is_read(tmp_path, short_records):
    """The limit is one of a record, not of a file."""
    path = tmp_path / "p.csv"
    path.write_text("a,b\n" + f'1,"{"x" * 1000}\n{"y" * 1000}"\n' * 2000)
    assert len(lf.data.open_dataset(path, columns=["a"]).points) == 2000


def test_faults_in_other_columns_are_ignored(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\n1,2\nx,4\n")
    assert lf.data.open_dataset(path, columns=["b"]).points.tolist() == [[2], [4]]


def test_text_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-16-le")  # without a byte order mark
    with pytest.raises(ValueError, match="is not text in UTF-8; save it as UTF-8"):
        lf.data.open_dataset(path)


def test_row_numbers_count_over_all_batches(tmp_path):
    """pyarrow reads the file in batches."""
    path = tmp_path / "p.csv"
    path.write_text("a,b\n" + "1.25,2.5\n" * 300_000 + "3,\n")
    with pytest.raises(ValueError, match="line 300002, column b: found a missing value"):
        lf.data.open_dataset(path)


def test_threads_of_pyarrow_have_released_the_text_after_an_error(tmp_path, monkeypatch):
    """One that released it while the interpreter ends would abort the process."""
    lent = []

    def lend(text, encoding):
        lent.append(bytearray(to_utf8(text, encoding)))
        return lent[-1]

    to_utf8 = TextFile.to_utf8
    monkeypatch.setattr(TextFile, "to_utf8", lend)
    rows = ["größe,b", *["1.5,2.5"] * 50, "1,2,3", *["1.5,2.5"] * 50_000]
    (tmp_path / "long.csv").write_text("\n".join(rows), encoding="latin-1")
    with pytest.raises(ValueError, match="line 52: found 3 values"):
        lf.data.open_dataset(tmp_path / "long.csv")
    lent[0].append(0)  # BufferError if anything still has its memory
