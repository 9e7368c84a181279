"""Workbooks: damage of every kind is one error with the file, and no cell far away costs memory."""

import io
import os
from contextlib import suppress
from zipfile import ZipFile

import openpyxl
import pytest
from workbooks import pack, save, unpack

import lloydformer as lf
from lloydformer.data import spreadsheets

SHEET = "xl/worksheets/sheet1.xml"
FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def workbook(n_rows=4):
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    for i in range(n_rows):
        book.active.append([i, i + 0.5])
    return save(book)


def change(old, new, name=SHEET):
    """The workbook with other XML in one of its parts."""
    parts = unpack(workbook())
    assert old.encode() in parts[name]
    return pack({**parts, name: parts[name].replace(old.encode(), new.encode(), 1)})


def lacking(name):
    return pack({part: content for part, content in unpack(workbook()).items() if part != name})


def flip(name, place=10):
    """The workbook with one wrong bit in the compressed bytes of a part."""
    content = bytearray(workbook())
    with ZipFile(io.BytesIO(content)) as archive:
        start = archive.getinfo(name).header_offset + 30 + len(name)
    content[start + place] ^= 4
    return bytes(content)


def with_rows(rows, n_rows=4):
    parts = unpack(workbook(n_rows))
    sheet = parts[SHEET].replace(b"</sheetData>", rows.encode() + b"</sheetData>")
    return pack({**parts, SHEET: sheet})


DAMAGED = {
    "no zip": (b"PK nothing", "not a readable Excel file .File is not a zip file.; save it again"),
    "cut": (workbook()[:-100], "not a readable Excel file"),
    "a broken stream": (flip(SHEET), "not a readable Excel file"),
    "broken texts": (flip("xl/sharedStrings.xml"), "not a readable Excel file"),
    "no XML": (change("<v>", "<<>"), "not a readable Excel file .not well-formed"),
    "no list of parts": (lacking("[Content_Types].xml"), "not a readable Excel file"),
    "no workbook": (lacking("xl/workbook.xml"), "not a readable Excel file"),
    "no sheet": (lacking(SHEET), "found no sheet with cells; save it again, or as .csv"),
    "no texts": (lacking("xl/sharedStrings.xml"), "not a readable Excel file"),
    "a text that is not there": (change("<v>0</v>", "<v>99</v>"), "not a readable Excel file"),
    "a number that is none": (change("<v>0.5</v>", "<v>0.5.</v>"), "not a readable Excel file"),
    "no place of a cell": (change('"A2"', '"AAAAAAA2"'), "not a readable Excel file"),
    "a date that is none": (change('r="A2" t="n"', 'r="A2" t="d"'), "not a readable Excel file"),
    "a row far below": (
        with_rows('<row r="99999999999"/>'),
        "found a row beyond line 1,048,576, the last one of a sheet; save it again, or as .csv",
    ),
    "a bomb": (
        with_rows("<row>" + "<c/>" * (2 << 20) + "</row>"),
        "'xl/worksheets/sheet1.xml' in it unpacks to 8,38.,... bytes, 9.. times its size; save",
    ),
    "a stray cell": (
        with_rows(FAR, 3000),
        "line 1048576: found a value in column number 16,384, where only 6,003 of 49,184,768 cells",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", DAMAGED)
def test_damage_is_one_error_with_the_file(tmp_path, fault):
    content, words = DAMAGED[fault]
    path = tmp_path / "p.xlsx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as error:
        lf.data.open_dataset(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_our_own_mistakes_are_not_taken_for_damage(tmp_path, monkeypatch):
    def fail(value):
        raise AttributeError("a mistake")

    monkeypatch.setattr(spreadsheets, "_cell_text", fail)
    (tmp_path / "p.xlsx").write_bytes(workbook())
    with pytest.raises(AttributeError, match="a mistake"):
        lf.data.open_dataset(tmp_path / "p.xlsx")


def test_the_file_is_closed(tmp_path):
    path, content = tmp_path / "p.xlsx", workbook()
    for damaged in (content, content[:-100], flip(SHEET), b"PK"):
        path.write_bytes(damaged)
        with suppress(ValueError):
            lf.data.open_dataset(path)
        if os.path.isdir("/proc/self/fd"):
            opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
            assert str(path) not in [os.readlink(one) for one in opened if os.path.lexists(one)]


@pytest.mark.parametrize("dimension", ["A1:B5", "A1:XFD1048576", "A1:A2", "A1"])
def test_dimensions_that_the_file_gives_do_not_matter(tmp_path, dimension):
    (tmp_path / "p.xlsx").write_bytes(change('ref="A1:B5"', f'ref="{dimension}"'))
    points = lf.data.open_dataset(tmp_path / "p.xlsx").points.tolist()
    assert points == [[0, 0.5], [1, 1.5], [2, 2.5], [3, 3.5]]


def test_warnings_of_openpyxl_are_not_shown(tmp_path):
    """Warnings are errors in tests."""
    (tmp_path / "p.xlsx").write_bytes(lacking("xl/styles.xml"))
    assert lf.data.open_dataset(tmp_path / "p.xlsx").points.shape == (4, 2)
