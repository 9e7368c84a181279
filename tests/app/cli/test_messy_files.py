"""Files as spreadsheets and colleagues send them: a right clustering with a line about what was
recognised or done, or one clear line and status 2; never a wrong answer without a word."""

import bz2
import csv
import gzip
import io
import re
import sys
from zipfile import ZipFile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow
import pytest
from sklearn.metrics import adjusted_rand_score

N = 60
TRUTH = np.arange(N) % 3
RNG = np.random.default_rng(0)
MIDDLES = np.array([[20.0, 30.0, 5.0], [45.0, 60.0, 40.0], [70.0, 15.0, 75.0]])
X = (MIDDLES[TRUTH] + RNG.normal(size=(N, 3))).round(2)
NAMES = ["age", "income", "visits"]
CITIES = [["Köln", "Rome", "Paris"][j] for j in TRUTH]
FRAME = pd.DataFrame(X, columns=NAMES)
MIXED = FRAME.assign(customer_id=[f"C{i:03}" for i in range(N)], city=CITIES,
                     joined=[f"2024-01-{i % 28 + 1:02}" for i in range(N)])  # fmt: skip


def text_of(frame, header=True, quote=csv.QUOTE_MINIMAL, **how):
    return frame.to_csv(index=False, header=header, quoting=quote, **how)


def lacking(frame, *cells):
    """The frame with some values missing."""
    frame = frame.copy()
    for row, column in cells:
        frame.loc[row, column] = np.nan
    return frame


def sheet(frame, title=None, second=False):
    """An Excel file."""
    book = openpyxl.Workbook()
    page = book.active
    if title:
        page.append([title])
    page.append(list(frame.columns))
    for row in frame.itertuples(index=False):
        page.append(list(row))
    if second:
        book.create_sheet("notes").append(["nothing here"])
    found = io.BytesIO()
    book.save(found)
    return found.getvalue()


def damage_sheet(workbook):
    """The workbook with one wrong byte in the XML of its sheet."""
    found = io.BytesIO()
    with ZipFile(io.BytesIO(workbook)) as old, ZipFile(found, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            wrong = content.replace(b"<v>", b"<<>", 1) if "sheet1.xml" in name else content
            new.writestr(name, wrong)
    return found.getvalue()


def zstd(text):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as out:
        out.write(text.encode())
    return sink.getvalue().to_pybytes()


GERMAN = FRAME.rename(columns={"age": "größe", "visits": "fläche"})
GAPS = lacking(FRAME, (3, "age"), (7, "income"), (7, "visits"), (59, "age"))
PLAIN = text_of(FRAME)

RIGHT = {
    "plain": ("p.csv", PLAIN, "", None),
    "semicolons and decimal commas": (
        "p.csv",
        text_of(FRAME, sep=";", decimal=","),
        "",
        "recognised semicolons between values, decimal commas",
    ),
    "Excel's CSV in Germany": (
        "p.csv",
        text_of(GERMAN, sep=";", decimal=",").replace("\n", "\r\n").encode("cp1252"),
        "",
        r"recognised Windows-1252 \(Latin-1\) text, semicolons between values, decimal commas",
    ),
    "Excel's Unicode text": (
        "p.txt",
        text_of(GERMAN, sep="\t").encode("utf-16"),
        "",
        "recognised UTF-16 text, tabs between values",
    ),
    "byte order mark": ("p.csv", ("\ufeff" + text_of(GERMAN)).encode(), "", None),
    "tabs in a .csv": ("p.csv", text_of(FRAME, sep="\t"), "", "recognised tabs between values"),
    "bars, without a header": (
        "p.dat",
        text_of(FRAME, sep="|", header=False),
        "",
        "recognised bars between values",
    ),
    "everything between quotes": ("p.csv", text_of(FRAME, quote=csv.QUOTE_ALL), "", None),
    "names with commas": (
        "p.csv",
        text_of(FRAME.rename(columns={"age": "age, years"})),
        "--columns '\"age, years\",visits'",
        None,
    ),
    "numbers between words": (
        "p.csv",
        text_of(MIXED),
        "--numeric-only",
        "not numeric and left out: customer_id, city, joined",
    ),
    "columns that are left out": (
        "p.csv",
        text_of(MIXED),
        "--exclude customer_id,city,joined",
        None,
    ),
    "categories": (
        "p.csv",
        text_of(MIXED[["city", "age"]]),
        "--one-hot city --id-column age --scale minmax",
        None,  # rows of the file differ by their ids
    ),
    "missing values, dropped": (
        "p.csv",
        text_of(GAPS),
        "--missing drop",
        r"3 of 60 rows with missing values dropped \(age lacks 2, income lacks 1, visits lacks 1\)",
    ),
    "missing values, filled in": (
        "p.csv",
        text_of(lacking(FRAME, (3, "age"))),
        "--missing median",
        r"filled in with the median, or the most common category \(age lacks 1\)",
    ),
    "years as names": (
        "p.csv",
        text_of(FRAME.set_axis(["2019", "2020", "2021"], axis=1)),
        "--header",
        None,
    ),
    "positions": (
        "p.csv",
        text_of(MIXED[["city", *NAMES]], header=False),
        "--no-header --columns 2,4",
        None,
    ),
    "empty columns and lines of a spreadsheet": (
        "p.csv",
        "\n" + text_of(FRAME).replace("\n", ",,\n") + "\n\n",
        "",
        "columns 4, 5 without a name and without values left out",
    ),
    "row numbers of pandas": ("p.csv", FRAME.to_csv(), "--exclude 1", None),
    "gz": ("p.csv.gz", gzip.compress(PLAIN.encode()), "", None),
    "bz2": ("p.csv.bz2", bz2.compress(PLAIN.encode()), "", None),
    "zst": ("p.csv.zst", zstd(PLAIN), "", None),
    "Excel": ("p.xlsx", sheet(FRAME), "", None),
    "Excel with two sheets": (
        "p.xlsx",
        sheet(FRAME, second=True),
        "",
        "sheet 'Sheet' was read; --sheet",
    ),
    "compressed standard input": ("-", gzip.compress(PLAIN.encode()), "", None),
    "standard input": ("-", text_of(FRAME, sep=";"), "", "standard input: recognised semicolons"),
    "spaces and plus signs": (
        "p.csv",
        "age, income, visits\n" + "\n".join(" , ".join(f"+{v}" for v in r) for r in X),
        "",
        None,
    ),
    "columns aligned by spaces": (
        "p.txt",
        "age   income visits\n" + "\n".join("   ".join(f"{v:7.2f}" for v in r) + " " for r in X),
        "",
        "recognised spaces between values",
    ),
    "notes in several lines": (
        "p.csv",
        text_of(FRAME.assign(note='said "no",\nthen yes')),
        "--numeric-only",
        "left out: note",
    ),
}

WRONG = {
    "words": (
        "p.csv",
        text_of(MIXED),
        "",
        r"p.csv: customer_id, city are not numeric \(line 2: 'C000'\); use "
        "--columns age,income,visits, --numeric-only or --one-hot city; joined has dates or times "
        r"\(line 2: '2024-01-01'\); pass --dates days, --dates parts or --dates drop$",
    ),
    "missing values": (
        "p.csv",
        text_of(GAPS),
        "",
        r"line 5, column age: found a missing value \(age lacks 2, income lacks 1, visits lac.*;"
        ".*--missing drop or --missing median$",
    ),
    "a slip": (
        "p.csv",
        PLAIN.replace("\n", "\n12x,3,4\n", 1),
        "",
        "line 2, column age: found '12x'; correct it, or choose columns of numbers: "
        "--columns income,visits$",
    ),
    "years as names": (
        "p.csv",
        text_of(FRAME.set_axis(["2019", "2020", "2021"], axis=1)),
        "",
        r"line 1 \(2019, 2020, 2021\) may be names or a row; pass --header or --no-header$",
    ),
    "numbers of pandas as names": (
        "p.csv",
        pd.DataFrame(X).to_csv(index=False),
        "",
        r"\(0, 1, 2\) may be names or a row; pass",
    ),
    "a row of words and numbers first": (
        "p.csv",
        text_of(MIXED[["city", *NAMES]], header=False),
        "--numeric-only",
        r"line 1 \(Köln, .*may be names or a row; pass --header or --no-header$",
    ),
    "thousands": (
        "p.csv",
        text_of(FRAME.assign(income=[f"{1000 + 17 * i:,}" for i in range(N)])),
        "",
        "income is not numeric .*; if 1,000 is 1.000, pass --decimal ,; if it is 1000, pass",
    ),
    "thousands with points": (
        "p.csv",
        text_of(FRAME.assign(**{n: [f"1.{100 + i}" for i in range(N)] for n in NAMES}), sep=";"),
        "",
        "may be 1.100 or 1100; pass --decimal . for the former, or --thousands . for the latter",
    ),
    "a title above the header": (
        "p.csv",
        "Customers of 2024\n" + PLAIN,
        "",
        r"line 2: found 3 values for 1 columns; if line 1 is a title, pass --skip-rows 1; else",
    ),
    "a line of units": (
        "p.csv",
        PLAIN.replace("\n", "\nyears,EUR,1\n", 1),
        "",
        r"line 2, column age: found 'years' \(income too\); correct.*units, pass --skip-rows 2:2, ",
    ),
    "a column twice": ("p.csv", PLAIN.replace("income", "age"), "", "column age appears twice"),
    "row numbers of pandas": ("p.csv", FRAME.to_csv(), "", r"column 1 has no name .*--exclude 1$"),
    "an empty column": (
        "p.csv",
        text_of(FRAME.assign(note="")),
        "--missing median",
        "column note is empty, so",
    ),
    "every row has a gap": (
        "p.csv",
        text_of(FRAME.assign(note="")),
        "--missing drop",
        r"all 60 rows have a missing value \(note lacks 60\); leave out",
    ),
    "too many categories": (
        "p.csv",
        text_of(FRAME.loc[FRAME.index.repeat(2)].assign(name=[f"n{i}" for i in range(2 * N)])),
        "--one-hot name",
        "column name has 120 different values, and --one-hot takes 1 to 100; use --exclude name",
    ),
    "a column that is not there": (
        "p.csv",
        PLAIN,
        "--columns age,city",
        "columns: found 'city'; there are age, income, visits",
    ),
    "a name with a comma": (
        "p.csv",
        text_of(FRAME.rename(columns={"age": "age, years"})),
        "--columns age,visits",
        "columns: found 'age'; .*put names with commas between double quotes",
    ),
    "bytes without an encoding": (
        "p.csv",
        PLAIN.encode("utf-16-le"),
        "",
        "is not text in UTF-8; save it as UTF-8, or pass",
    ),
    "a compressed file that was cut": (
        "p.csv.gz",
        gzip.compress(PLAIN.encode())[:200],
        "",
        "p.csv.gz: is damaged .*compress it ag",
    ),
    "a compressed file with an open quote": (
        "p.csv.gz",
        gzip.compress((PLAIN + '1,"2,3\n' + "4,5,6\n" * 50_000).encode()),
        "",
        f"p.csv.gz: line {N + 2}: found a quote that is not closed; close it, or remove it",
    ),
    "an Excel file with a title": (
        "p.xlsx",
        sheet(FRAME, "Customers of 2024"),
        "",
        r"only one column has a name \(Customers of 2024\) in line 1; .* pass --skip-rows 1; else",
    ),
    "an Excel file that is none": ("p.xlsx", b"PK nothing", "", "not a readable Excel file"),
    "an Excel file with a damaged sheet": (
        "p.xlsx",
        damage_sheet(sheet(FRAME)),
        "",
        r"p.xlsx: not a readable Excel file \(not well-formed .*save it again, or as .csv",
    ),
    "a cut Excel file": ("p.xlsx", sheet(FRAME)[:2000], "", "p.xlsx: not a readable Excel file"),
    "old Excel": (
        "p.xls",
        b"\xd0\xcf\x11\xe0",
        "",
        ".xls files are not supported; save it as .xlsx",
    ),
    "a workbook called .csv": (
        "p.csv",
        sheet(FRAME),
        "",
        "found a workbook or .npz where a text was expected",
    ),
    "a separator of two signs": ("p.csv", PLAIN, "--sep ;;", "--sep: found ';;'; pass one char"),
    "an encoding that does not exist": ("p.csv", PLAIN, "--encoding x", "--encoding: found 'x'"),
    "a policy that does not exist": (
        "p.csv",
        PLAIN,
        "--missing zero",
        "--missing: found 'zero'; pas",
    ),
    "nothing on standard input": ("-", "", "", "standard input: is empty; pass rows of numbers"),
}


@pytest.fixture
def fit(command, tmp_path, monkeypatch):
    """Write a file, and fit three clusters to it."""
    monkeypatch.chdir(tmp_path)

    def run(name, content, options, *more):
        content = content.encode() if isinstance(content, str) else content
        if name == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        else:
            (tmp_path / name).write_bytes(content)
        words = next(csv.reader([options], delimiter=" ", quotechar="'")) if options else []
        return command("fit", name, "-k", "3", "-o", "out", *words, *more)

    return run


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_clustering_and_a_line_about_it(fit, case):
    *file, words = RIGHT[case]
    status, _, err = fit(*file)
    assert status == 0, err
    labels = pd.read_csv("out/labels.csv")
    assert list(labels["row"]) == list(range(1, N + 1))
    found = labels["cluster"].notna().to_numpy()
    assert adjusted_rand_score(TRUTH[found], labels["cluster"][found]) == 1
    lines = err.splitlines()
    assert len(lines) == (words is not None), err
    assert words is None or re.search(words, lines[0]), err


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_line_and_status_2(fit, case, tmp_path):
    *file, words = WRONG[case]
    status, out, err = fit(*file)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("lloydformer: ")
    assert re.search(words, err.rstrip()), err
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in err


def test_there_are_twenty_and_more_of_each_kind():
    assert len(RIGHT) >= 20
    assert len(WRONG) >= 20
