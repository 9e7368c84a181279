"""Many columns take time in proportion to their number; long fields and lines are named."""

import time

import numpy as np
import pyarrow
import pytest

import lloydformer as lf
from lloydformer.data import csv_table
from lloydformer.data.conversion import Conversion, Feature
from lloydformer.data.table import Table
from lloydformer.data.table_options import TableOptions
from lloydformer.data.typed_tables import ArrayTable

COUNT = 2000


class Compared(str):
    """A name that counts how often it is compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def table_of(names):
    return Table("p", names, len(names), TableOptions())


@pytest.fixture
def names():
    Compared.times = 0
    yield [Compared(f"column{i}") for i in range(COUNT)]
    assert Compared.times < 20 * COUNT


def test_columns_are_found_without_comparing_each_with_all(names):
    wanted = [str(name) for name in names[::-1]]
    assert table_of(names).find(wanted) == [*range(COUNT)][::-1]


def test_duplicates_are_found_without_comparing_each_with_all(names):
    table_of(names).refuse_duplicates(range(COUNT))
    with pytest.raises(ValueError, match="column column7 appears twice"):
        table_of([*names, "column7"]).refuse_duplicates(range(COUNT + 1))


def test_columns_of_a_model_are_found_without_comparing_each_with_all(names):
    fitted = Conversion(tuple(Feature(str(name)) for name in names[::-1]), named=True)
    table = ArrayTable("p", np.zeros((1, COUNT)), TableOptions(), names)
    assert fitted.find_columns(table)[0] == [*range(COUNT)][::-1]


@pytest.mark.long
def test_twenty_thousand_columns_take_seconds(tmp_path):
    """The time of the processor, which does not depend on other work on the machine."""
    count = 20_000
    names = [f"column{i}" for i in range(count)]
    row = ",".join(["0.12345678901234567", *map(str, range(1, count))])
    (tmp_path / "p.csv").write_text("\n".join([",".join(names), row, row]))
    began = time.process_time()
    assert lf.data.open_dataset(tmp_path / "p.csv").names == tuple(names)
    backwards = lf.data.open_dataset(tmp_path / "p.csv", columns=names[::-1]).points
    table = pyarrow.table({name: [1.0] for name in names})
    lf.data.open_dataset(table, columns=names[::-1])
    assert time.process_time() - began < 8
    assert backwards[0, -1] == 0.12345678901234567


def test_lines_longer_than_a_megabyte_are_read(tmp_path):
    row = ",".join(f"{i}.{'0' * 60_000}" for i in range(30))
    names = ",".join(f"c{i}" for i in range(30))
    (tmp_path / "p.csv").write_text("\n".join([names, row, row]))
    assert lf.data.open_dataset(tmp_path / "p.csv").points.tolist() == [[*range(30)]] * 2


def test_errors_name_some_of_many_columns(tmp_path):
    (tmp_path / "p.csv").write_text(",".join(f"c{i}" for i in range(500)) + "\n")
    with pytest.raises(ValueError, match=r"found 'z'; there are c0, .*, c19 and 480 more"):
        lf.data.open_dataset(tmp_path / "p.csv", columns=["z"])


LONG = "x" * 200_000
FIELDS = {
    "a name": (f"a,{LONG}\n1,2\n", "line 1: found a field of more than 131,072 characters"),
    "a quoted name": (f'a,"{LONG}"\n1,2\n', "line 1: found a field of more than 131,072 char"),
    "a fault after it": (f"a,b\n1,{LONG}\nfour,2\n", "column a: found 'four'; correct it"),
    "an open quote": (f'a,"{LONG}\n1,2\n', "line 1: found a quote that is not closed"),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_long_fields_are_not_called_open_quotes(tmp_path, kind):
    text, words = FIELDS[kind]
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        lf.data.open_dataset(tmp_path / "p.csv", columns=["a"])
    assert len(str(error.value)) < 1000


def test_a_long_text_in_another_column_is_no_fault(tmp_path):
    (tmp_path / "p.csv").write_text(f'a,b\n1,{LONG}\n2,"{LONG},\n{LONG}"\n')
    assert lf.data.open_dataset(tmp_path / "p.csv", columns=["a"]).points.tolist() == [[1], [2]]


def test_a_file_without_ends_of_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "_LONGEST", 1 << 20)
    (tmp_path / "p.csv").write_text("1," * (1 << 20))
    with pytest.raises(ValueError, match="line 1: found a record of more than 1 million char"):
        lf.data.open_dataset(tmp_path / "p.csv")


def test_a_line_longer_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "_BLOCK", 1 << 16)
    (tmp_path / "p.csv").write_text(f"a,b\n1,{LONG}\n2,{LONG}\n")
    with pytest.raises(ValueError, match="found a line of more than"):
        lf.data.open_dataset(tmp_path / "p.csv", columns=["a"])
