"""Files as banks, sensors and spreadsheets write them.

pandas with the right options agrees on every value; the clustering is right and one note says what
was converted, or one error asks.
"""

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.data import csv_table

N = 60
TRUTH = np.arange(N) % 3
RNG = np.random.default_rng(0)
MIDDLES = np.array([[20.0, 3000.0, 5.0], [45.0, 6000.0, 40.0], [70.0, 1500.0, 75.0]])
X = (MIDDLES[TRUTH] + RNG.normal(size=(N, 3)) * [1.0, 50.0, 1.0]).round(2)
AGE, INCOME, VISITS = X.T
DAYS = pd.to_datetime("2024-01-05") + pd.to_timedelta(TRUTH * 100 + np.arange(N) % 7, unit="D")
HOURS = DAYS + pd.to_timedelta(np.arange(N) % 11 * 37 + 60, unit="min")
EPOCH = pd.Timestamp("1970-01-01")


def table(sep=",", header=True, **columns):
    """A text with these columns; a name such as `_` stands for an empty one."""
    frame = pd.DataFrame({name: list(values) for name, values in columns.items()})
    return frame.to_csv(index=False, sep=sep, header=header)


def us(values):
    return [f"{v:,.2f}" for v in values]


def german(values):
    swap = str.maketrans(",.", ".,")
    return [f"{v:,.2f}".translate(swap) for v in values]


def with_mark(values, mark, point=","):
    return [f"{v:,.2f}".replace(".", "#").replace(",", mark).replace("#", point) for v in values]


def people(income, age=AGE, sep=",", **more):
    return table(sep, age=age, income=income, visits=VISITS, **more)


def plain(*, skip="", **how):
    """Read by pandas: `skip` is a regular expression of what is removed from the column income."""

    def read(path):
        frame = pd.read_csv(path, **how)
        if skip:
            texts = frame["income"].str.replace(skip, "", regex=True)
            frame["income"] = texts.str.replace(",", ".").astype(float)
        return frame

    return read


def with_words(column, words, **how):
    def read(path):
        frame = pd.read_csv(path, **how)
        frame[column] = frame[column].map(words)
        return frame

    return read


def with_days(how="%Y-%m-%d", **options):
    """Read by pandas, with a column of dates as days."""

    def read(path):
        frame = pd.read_csv(path, **options)
        dates = pd.to_datetime(frame["joined"], format=how, utc=True).dt.tz_localize(None)
        frame["joined"] = (dates - EPOCH) / pd.Timedelta("1D")
        return frame

    return read


def with_parts(path):
    frame = pd.read_csv(path)
    dates = pd.to_datetime(frame.pop("joined"))
    return frame.assign(
        **{
            "joined month": dates.dt.month,
            "joined day": dates.dt.day,
            "joined weekday": dates.dt.day_of_week + 1,
            "joined hour": dates.dt.hour + dates.dt.minute / 60,
        }
    )


def with_hours(path):
    frame = pd.read_csv(path)
    frame["joined"] = pd.to_timedelta(frame["joined"] + ":00") / pd.Timedelta("1D")
    return frame


def lacking(values, word, rows=(4, 17)):
    """The values, with a word in some rows."""
    return [word if i in rows else v for i, v in enumerate(values)]


def workbook(rows):
    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(list(row))
    book.save(content)
    return content.getvalue()


def parquet(**columns):
    content = io.BytesIO()
    pd.DataFrame({name: list(values) for name, values in columns.items()}).to_parquet(content)
    return content.getvalue()


def known(**columns):
    """The values that were written, for kinds of files that pandas reads as texts."""
    return lambda path: pd.DataFrame(columns)


NUMBERS = people(INCOME)
JOINED = {"age": AGE, "visits": VISITS}
US = {"thousands": ","}
GERMAN = {"sep": ";", "decimal": ",", "thousands": "."}
YES_NO = {"yes": 1, "no": 0}
DROP = "--missing drop"

# name: (file, content, options, words of the note or None, what pandas reads)
RIGHT = {
    "dollars": (
        "p.csv",
        people([f"${v}" for v in us(INCOME)]),
        "",
        r"converted: income \(\$, thousands\)$",
        plain(skip="[$,]"),
    ),
    "dollars without thousands": (
        "p.csv",
        people([f"${v}" for v in INCOME]),
        "",
        r"income \(\$\)$",
        plain(skip="[$]"),
    ),
    "a code before": (
        "p.csv",
        people([f"EUR {v}" for v in INCOME]),
        "",
        r"income \(EUR\)$",
        plain(skip="EUR "),
    ),
    "a code behind": (
        "p.csv",
        people([f"{v} USD" for v in us(INCOME)]),
        "",
        r"income \(USD, thousands\)$",
        plain(skip="[,USD ]"),
    ),
    "a sign and a code": (
        "p.csv",
        people([f"${v} USD" for v in INCOME]),
        "",
        r"income \(USD\)$",
        plain(skip="[$USD ]"),
    ),
    "euros in Germany": (
        "p.csv",
        table(
            ";", age=german(AGE), income=[f"{v} €" for v in german(INCOME)], visits=german(VISITS)
        ),
        "",
        r"income \(€, decimal commas, thousands\)",
        plain(skip="[.€ ]", sep=";", decimal=","),
    ),
    "euros behind a space that does not break": (
        "p.csv",
        people([f"{v}\u00a0€" for v in INCOME]),
        "",
        r"income \(€\)$",
        plain(skip="[\u00a0€]"),
    ),
    "pounds below zero": (
        "p.csv",
        people([f"-£{v}" for v in us(INCOME)]),
        "",
        r"income \(£, thousands\)",
        plain(skip="[£,]"),
    ),
    "an accountant's dollars": (
        "p.csv",
        people([f"$ ({v})" for v in us(INCOME)]),
        "",
        r"\(\$, thousands, parentheses as negative\)",
        lambda path: plain(skip="[$(), ]")(path).eval("income = -income"),
    ),
    "kronor": (
        "p.csv",
        people([f"{v} kr" for v in with_mark(INCOME, " ")]),
        "",
        r"\(kr, decimal commas, thousands\)",
        plain(skip=" |kr"),
    ),
    "percent": (
        "p.csv",
        people([f"{v / 100:.2f}%" for v in INCOME]),
        "",
        r"income \(% left out, so that 12 % is 12\)",
        plain(skip="%"),
    ),
    "percent with decimal commas": (
        "p.csv",
        people([f"{v / 100:.2f} %".replace(".", ",") for v in INCOME]),
        "",
        r"so that 12 % is 12, decimal commas\)",
        plain(skip=" %"),
    ),
    "thousands": ("p.csv", people(us(INCOME)), "", r"income \(thousands\)$", plain(**US)),
    "points and decimal commas": (
        "p.csv",
        table(";", age=german(AGE), income=german(INCOME), visits=german(VISITS)),
        "",
        r"recognised semicolons.*; converted: income \(decimal commas, thousands\)",
        plain(**GERMAN),
    ),
    "spaces": (
        "p.csv",
        people(
            with_mark(INCOME, " ", "."),
        ),
        "",
        r"income \(thousands\)",
        plain(thousands=" "),
    ),
    "spaces that do not break": (
        "p.csv",
        people(with_mark(INCOME, "\u00a0", ",")),
        "",
        r"\(decimal commas, thousands\)",
        plain(skip="\u00a0"),
    ),
    "narrow spaces": (
        "p.csv",
        people(with_mark(INCOME, "\u202f", ",")),
        "",
        r"\(decimal commas, thousands\)",
        plain(skip="\u202f"),
    ),
    "apostrophes": (
        "p.csv",
        people(with_mark(INCOME, "'", ".")),
        "",
        r"income \(thousands\)",
        plain(thousands="'"),
    ),
    "curved apostrophes": (
        "p.csv",
        people(with_mark(INCOME, "’", ".")),
        "",
        r"income \(thousands\)",
        plain(skip="’"),
    ),
    "millions have one reading": (
        "p.csv",
        people([f"{v * 1000:,.0f}" for v in INCOME]),
        "",
        r"income \(thousands\)",
        plain(**US),
    ),
    "lakhs": (
        "p.csv",
        people([f"{j + 1},{40 + i % 5},{100 + i}" for i, j in enumerate(TRUTH)]),
        "",
        r"income \(thousands\)",
        plain(**US),
    ),
    "thousands by choice": (
        "p.csv",
        people([f"{v:,.0f}" for v in INCOME]),
        "--thousands comma",
        r"income \(thousands\)",
        plain(**US),
    ),
    "decimal commas by choice": (
        "p.csv",
        people([f"{v:,.0f}" for v in INCOME]),
        "--decimal ,",
        r"age, visits \(decimal points\)",
        plain(skip="Q"),
    ),
    "decimal commas in one column": (
        "p.csv",
        people(INCOME, [f"{v:.1f}".replace(".", ",") for v in AGE], ";"),
        "",
        r"age \(decimal commas\)",
        lambda path: pd.read_csv(
            path, sep=";", converters={"age": lambda text: float(text.replace(",", "."))}
        ),
    ),
    "parentheses": (
        "p.csv",
        people([f"({v})" for v in INCOME]),
        "",
        r"\(parentheses as negative\)",
        lambda path: plain(skip="[()]")(path).eval("income = -income"),
    ),
    "a minus at the end": (
        "p.csv",
        people([f"{v}-" for v in INCOME]),
        "",
        r"\(minus signs at the end\)",
        lambda path: plain(skip="-")(path).eval("income = -income"),
    ),
    "a typographic minus": (
        "p.csv",
        people([f"−{v}" for v in us(INCOME)]),
        "",
        "income",
        lambda path: plain(skip="[−,]")(path).eval("income = -income"),
    ),
    "yes and no": (
        "p.csv",
        people(INCOME, smoker=np.where(TRUTH == 1, "yes", "no")),
        "",
        r"smoker \(yes as 1, no as 0\)",
        with_words("smoker", YES_NO),
    ),
    "true and false": (
        "p.csv",
        people(INCOME, smoker=TRUTH == 1),
        "",
        r"smoker \(True as 1, False as 0\)",
        plain(),
    ),
    "on and off": (
        "p.csv",
        people(INCOME, pump=np.where(TRUTH == 1, "ON", "OFF")),
        "",
        r"pump \(ON as 1, OFF as 0\)",
        with_words("pump", {"ON": 1, "OFF": 0}),
    ),
    "y and n": (
        "p.csv",
        people(INCOME, pump=np.where(TRUTH == 1, "Y", "n")),
        "",
        r"pump \(Y as 1, n as 0\)",
        with_words("pump", {"Y": 1, "n": 0}),
    ),
    "yes, no and unknown": (
        "p.csv",
        people(INCOME, smoker=lacking(np.where(TRUTH == 1, "yes", "no"), "unknown")),
        DROP,
        r"smoker \(yes as 1, no as 0, 'unknown' as missing in 2 rows\)",
        with_words("smoker", YES_NO),
    ),
    "days": (
        "p.csv",
        table(joined=DAYS.strftime("%Y-%m-%d"), **JOINED),
        "--dates days",
        r"joined \(dates as days since 1970-01-01\)",
        with_days(),
    ),
    "days and times": (
        "p.csv",
        table(joined=HOURS.strftime("%Y-%m-%d %H:%M:%S"), **JOINED),
        "--dates days",
        "joined",
        with_days("%Y-%m-%d %H:%M:%S"),
    ),
    "times in universal time": (
        "p.csv",
        table(joined=HOURS.strftime("%Y-%m-%dT%H:%M:%S+02:00"), **JOINED),
        "--dates days",
        "joined",
        with_days("ISO8601"),
    ),
    "days with a day above twelve": (
        "p.csv",
        table(joined=[*(DAYS[:-1].strftime("%d/%m/%Y")), "25/07/2024"], **JOINED),
        "--dates days",
        r"joined \(dates, day first, as days",
        with_days("%d/%m/%Y"),
    ),
    "months first": (
        "p.csv",
        table(joined=[*(DAYS[:-1].strftime("%m/%d/%Y")), "07/25/2024"], **JOINED),
        "--dates days",
        r"joined \(dates, month first, as days",
        with_days("%m/%d/%Y"),
    ),
    "days first by choice": (
        "p.csv",
        table(joined=[f"0{j + 1}/{4 * j + 1:02}/2024" for j in TRUTH], **JOINED),
        "--dates days --date-order dmy",
        "day first",
        with_days("%d/%m/%Y"),
    ),
    "months first by choice": (
        "p.csv",
        table(joined=[f"{4 * j + 1:02}/0{j + 1}/2024" for j in TRUTH], **JOINED),
        "--dates days --date-order mdy",
        "month first",
        with_days("%m/%d/%Y"),
    ),
    "German dates": (
        "p.csv",
        table(joined=[*(DAYS[:-1].strftime("%d.%m.%Y")), "25.07.2024"], **JOINED),
        "--dates days",
        "day first",
        with_days("%d.%m.%Y"),
    ),
    "names of months": (
        "p.csv",
        table(joined=DAYS.strftime("%d-%b-%Y"), **JOINED),
        "--dates days",
        "joined",
        with_days("%d-%b-%Y"),
    ),
    "names of months first": (
        "p.csv",
        table(joined=DAYS.strftime("%B %d, %Y"), **JOINED),
        "--dates days",
        "joined",
        with_days("%B %d, %Y"),
    ),
    "half days": (
        "p.csv",
        table(joined=[*HOURS[:-1].strftime("%m/%d/%Y %I:%M %p"), "07/25/2024 12:30 AM"], **JOINED),
        "--dates days",
        "month first",
        with_days("%m/%d/%Y %I:%M %p"),
    ),
    "parts": (
        "p.csv",
        table(**JOINED, joined=HOURS.strftime("%Y-%m-%d %H:%M")),
        "--dates parts",
        r"joined \(dates as month, day, weekday, hour\)",
        with_parts,
    ),
    "times of a day": (
        "p.csv",
        table(joined=HOURS.strftime("%H:%M"), **JOINED),
        "--dates days",
        r"joined \(times as parts of a day\)",
        with_hours,
    ),
    "dates as numbers": (
        "p.csv",
        table(joined=DAYS.strftime("%Y%m%d"), **JOINED),
        "--dates days",
        r"joined \(dates as days since 1970-01-01\)",
        with_days("%Y%m%d", dtype={"joined": str}),
    ),
    "dates left out": (
        "p.csv",
        table(joined=DAYS.strftime("%Y-%m-%d"), **JOINED),
        "--dates drop",
        r"joined \(dates left out\)",
        plain(usecols=["age", "visits"]),
    ),
    "unknown": (
        "p.csv",
        people(lacking(INCOME, "unknown")),
        DROP,
        r"income \('unknown' as missing in 2 rows\)",
        plain(na_values=["unknown"]),
    ),
    "a point": (
        "p.csv",
        people(lacking(INCOME, ".")),
        DROP,
        r"income \('\.' as missing",
        plain(na_values="."),
    ),
    "several words": (
        "p.csv",
        people(lacking(lacking(INCOME, "TBD", [3]), "missing", [9]), lacking(AGE, "n.a.")),
        DROP,
        "'TBD' as missing in 1 row, 'missing' as missing in 1 row",
        plain(na_values=["TBD", "missing", "n.a."]),
    ),
    "words for missing by choice": (
        "p.csv",
        people(lacking(INCOME, "broken")),
        f"--na-values broken,-7 {DROP}",
        None,
        plain(na_values=["broken"]),
    ),
    "numbers for missing by choice": (
        "p.csv",
        people(lacking(INCOME, -999.0), lacking(AGE, "-999.00", [2])),
        f"--na-values -999 {DROP}",
        None,
        plain(na_values=[-999]),
    ),
    "dollars and words": (
        "p.csv",
        people(lacking([f"${v}" for v in us(INCOME)], "TBD")),
        DROP,
        r"\(\$, thousands, 'TBD' as missing in 2 rows\)",
        plain(skip="[$,]", na_values="TBD"),
    ),
    "comments above": (
        "p.csv",
        "# station 7\n# height, 12\n" + NUMBERS,
        "",
        "recognised lines of comments",
        plain(comment="#"),
    ),
    "names in a comment": (
        "p.csv",
        "# made by numpy\n# " + NUMBERS,
        "",
        r"the last one with the names \(age, income, visits\)",
        plain(skiprows=2, names=["age", "income", "visits"]),
    ),
    "comments between rows": (
        "p.csv",
        re.sub(r"\n(.*\n)", r"\n\1# restarted\n", NUMBERS, count=2),
        "",
        "recognised lines of comments",
        plain(comment="#"),
    ),
    "comments behind values": (
        "p.csv",
        NUMBERS.replace("\n", "; fine\n") + "; the end\n",
        "--comment ; --sep ,",
        None,
        plain(comment=";"),
    ),
    "units": (
        "p.csv",
        NUMBERS.replace("\n", "\nyears,EUR,-\n", 1),
        "",
        r"recognised line 2 as units \(years, EUR, -\)",
        plain(skiprows=[1]),
    ),
    "units by choice": (
        "p.csv",
        NUMBERS.replace("\n", "\nyears,EUR,1\n", 1),
        "--skip-rows 2:2",
        None,
        plain(skiprows=[1]),
    ),
    "a title": (
        "p.csv",
        "Customers of 2024\n" + NUMBERS,
        "--skip-rows 1",
        None,
        plain(skiprows=1),
    ),
    "titles and an empty line": (
        "p.csv",
        'Customers\n"made, today"\n\n' + NUMBERS,
        "--skip-rows 3",
        None,
        plain(skiprows=3),
    ),
    "a title above rows without names": (
        "p.csv",
        "Customers\n" + table(a=AGE, b=INCOME, header=False),
        "--skip-rows 1",
        None,
        plain(skiprows=1, header=None),
    ),
    "lines here and there": (
        "p.csv",
        "Customers\n" + re.sub(r"\n(.*\n)", r"\n\1a,b,c\n", NUMBERS, count=1),
        "--skip-rows 1:1,4:4",
        None,
        plain(skiprows=[0, 3]),
    ),
    "a column twice, by number": (
        "p.csv",
        NUMBERS.replace("visits", "age"),
        "--columns 1,2,3",
        None,
        plain(),
    ),
    "one of two columns with a name": (
        "p.csv",
        NUMBERS.replace("visits", "age"),
        "--exclude 3",
        None,
        plain(usecols=[0, 1]),
    ),
    "a column without a name, by number": (
        "p.csv",
        NUMBERS.replace("visits", ""),
        "--columns age,3",
        None,
        lambda path: pd.read_csv(path).iloc[:, [0, 2]].set_axis(["age", "3"], axis=1),
    ),
    "named columns by number": (
        "p.csv",
        NUMBERS,
        "--columns 3,1",
        None,
        lambda path: pd.read_csv(path)[["visits", "age"]],
    ),
    "-999": (
        "p.csv",
        people(lacking(INCOME, -999), lacking(AGE, -999, [8])),
        f"--sentinels missing {DROP}",
        r"income \(missing: -999 in 2 rows",
        plain(na_values=-999),
    ),
    "9999 and -999": (
        "p.csv",
        people(lacking(lacking(INCOME / 100, 9999), -999, [1, 2])),
        f"--sentinels missing {DROP}",
        r"-999 in 2 rows .* and 9999 in 2 rows",
        plain(na_values=[-999, 9999]),
    ),
    "Excel with dollars": (
        "p.xlsx",
        workbook([("age", "income"), *zip(AGE, [f"${v}" for v in us(INCOME)], strict=True)]),
        "",
        r"income \(\$, thousands\)",
        known(age=AGE, income=INCOME),
    ),
    "Excel with dates": (
        "p.xlsx",
        workbook([("age", "joined"), *zip(AGE, DAYS.to_pydatetime(), strict=True)]),
        "--dates days",
        r"joined \(dates as days",
        known(age=AGE, joined=(DAYS - EPOCH) / pd.Timedelta("1D")),
    ),
    "Excel with true and false": (
        "p.xlsx",
        workbook([("age", "smoker"), *zip(AGE, (TRUTH == 1).tolist(), strict=True)]),
        "",
        r"TRUE as 1, FALSE as 0",
        known(age=AGE, smoker=TRUTH == 1),
    ),
    "Excel with a title and units": (
        "p.xlsx",
        workbook(
            [
                ("Customers",),
                (),
                ("age", "income"),
                ("years", "EUR"),
                *zip(AGE, INCOME, strict=True),
            ]
        ),
        "--skip-rows 2",
        r"recognised line 4 as units",
        known(age=AGE, income=INCOME),
    ),
    "Parquet with dollars": (
        "p.parquet",
        parquet(age=AGE, income=[f"${v}" for v in us(INCOME)]),
        "",
        r"income \(\$, thousands\)",
        known(age=AGE, income=INCOME),
    ),
    "Parquet with dates": (
        "p.parquet",
        parquet(age=AGE, joined=HOURS),
        "--dates days",
        "joined",
        known(age=AGE, joined=(HOURS - EPOCH) / pd.Timedelta("1D")),
    ),
    "a bank": (
        "p.csv",
        (
            "Konto 123\nvon 01.01.2024\n\n"
            + table(
                ";",
                betrag=[f"{v} EUR" for v in german(INCOME)],
                tag=DAYS.strftime("%d.%m.%Y"),
                aktiv=np.where(TRUTH == 2, "ja", "nein"),
                alter=german(AGE),
            )
        ).encode("cp1252"),
        "--skip-rows 3 --dates days",
        r"converted: betrag \(EUR, decimal commas, thousands\); tag \(dates as days|day first",
        lambda path: pd.read_csv(
            path,
            skiprows=3,
            converters={
                "betrag": lambda text: float(text[:-4].replace(".", "").replace(",", ".")),
                "tag": lambda text: (pd.to_datetime(text, format="%d.%m.%Y") - EPOCH).days,
                "aktiv": lambda text: int(text == "ja"),
            },
            sep=";",
            decimal=",",
        ),
    ),
    "a sensor": (
        "p.tsv",
        "# logger 7\n# started 2024\n"
        + table(
            "\t",
            when=HOURS.strftime("%Y-%m-%dT%H:%M:%SZ"),
            level=lacking(AGE, -9999),
            flow=VISITS,
            pump=np.where(TRUTH == 1, "on", "off"),
        ).replace("\n", "\n\t°C\tm/s\t\n", 1),
        f"--dates drop --sentinels missing {DROP}",
        "when .dates left out.; pump .on as 1, off as 0.; level .missing: -9999 in 2 rows",
        lambda path: with_words(
            "pump", {"on": 1, "off": 0}, sep="\t", comment="#", skiprows=[3], na_values=-9999
        )(path).drop(columns="when"),
    ),
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def as_python(options):
    """The options of the command line as those of `lf.data.open_dataset`."""
    words, found = options.split(), {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        lists = ("--columns", "--exclude", "--na-values")
        found[name[2:].replace("-", "_")] = value.split(",") if name in lists else value
    return found


def test_there_are_sixty():
    assert len(RIGHT) >= 60
    assert len(ASKS) >= 15


@pytest.mark.parametrize("case", RIGHT)
def test_pandas_agrees_on_every_value(write, case):
    name, content, options, _, read = RIGHT[case]
    frame = read(write(name, content))
    opened = lf.data.open_dataset(name, **as_python(options))
    if "drop" in options:
        frame = frame.dropna()
    if opened.names is not None:
        assert list(opened.names) == list(map(str, frame.columns))
    # Parts of a day are rounded: to 4e-12 days, which is 0.3 microseconds.
    np.testing.assert_allclose(opened.points, frame.astype(float), rtol=1e-15, atol=1e-11)
    assert len(frame) >= N - 4


@pytest.mark.parametrize("case", RIGHT)
def test_the_clusters_are_right_and_one_note_says_so(command, write, case):
    name, content, options, words, _ = RIGHT[case]
    status, _, err = command("fit", write(name, content), "-k", "3", "-o", "out", *options.split())
    assert status == 0, err
    labels = pd.read_csv("out/labels.csv")["cluster"]
    found = labels.notna().to_numpy()
    assert adjusted_rand_score(TRUTH[found], labels[found]) == 1
    others = ("rows with missing values dropped", "note: scaled: ")
    notes = [line for line in err.splitlines() if not any(other in line for other in others)]
    assert len(notes) == (words is not None), err
    assert words is None or re.search(words, notes[0]), err
    # The model remembers all that, but for the lines and the separator of this file.
    pairs = zip(options.split()[::2], options.split()[1::2], strict=True)
    again = [word for pair in pairs if pair[0] in ("--skip-rows", "--sep") for word in pair]
    status, _, err = command("predict", "out", name, "-o", "again.csv", *again)
    assert status == 0, err
    np.testing.assert_array_equal(pd.read_csv("again.csv")["cluster"], labels)


FIRST = f"{INCOME[0]:,.0f}"
WHOLE, SHARE = float(FIRST.replace(",", "")), float(FIRST.replace(",", "."))
DOTTED = FIRST.replace(",", ".")


@pytest.mark.parametrize("case", [case for case, file in RIGHT.items() if "p.csv" in file])
def test_other_ways_of_reading_agree(write, monkeypatch, case):
    """In Python alone, without pyarrow; a compressed text; two files of a folder."""
    name, content, options, _, _ = RIGHT[case]
    content = content.encode() if isinstance(content, str) else content
    wanted = lf.data.open_dataset(write(name, content), **as_python(options)).points
    packed = lf.data.open_dataset(write("p.csv.gz", gzip.compress(content)), **as_python(options))
    np.testing.assert_array_equal(packed.points, wanted)
    monkeypatch.setattr(csv_table, "find_pyarrow", lambda: None)
    np.testing.assert_array_equal(lf.data.open_dataset(name, **as_python(options)).points, wanted)
    Path("folder").mkdir()
    for part in "ab":
        write(f"folder/{part}.csv", content)
    folder = lf.data.open_dataset("folder", **as_python(options)).points
    np.testing.assert_array_equal(folder, np.concatenate([wanted, wanted]))


def day_of(text, how):
    return (pd.to_datetime(text, format=how) - EPOCH).days


# name: (file, content, options, words of the error, {options: the first value of the column})
ASKS = {
    "thousands or a decimal comma": (
        "p.csv",
        people([f"{v:,.0f}" for v in INCOME]),
        "",
        rf"income is not numeric \(line 2: '{FIRST}'\); if {FIRST} is {DOTTED}, pass --decimal ,; "
        f"if it is {WHOLE:.0f}, pass --thousands ,",
        {"--decimal ,": ("income", SHARE), "--thousands ,": ("income", WHOLE)},
    ),
    "thousands of dollars": (
        "p.csv",
        people([f"${v:,.0f}" for v in INCOME]),
        "",
        "income is not numeric",
        {"--decimal ,": ("income", SHARE), "--thousands comma": ("income", WHOLE)},
    ),
    "points in German euros": (
        "p.csv",
        people([f"{v:,.0f} €".replace(",", ".") for v in INCOME]),
        "",
        f"if {DOTTED} € is {DOTTED} €, pass --decimal .; if it is {WHOLE:.0f} €, pass --thou",
        {"--decimal .": ("income", SHARE), "--thousands .": ("income", WHOLE)},
    ),
    "points between semicolons": (
        "p.csv",
        table(";", income=[f"{v:,.0f}".replace(",", ".") for v in INCOME], n=TRUTH),
        "",
        f"found '{DOTTED}', which may be {DOTTED} or {WHOLE:.0f}; pass --decimal . for the former, "
        "or --thousands . for the latter",
        {"--decimal .": ("income", SHARE), "--thousands .": ("income", WHOLE)},
    ),
    "points between tabs": (
        "p.tsv",
        table("\t", income=[571, *(f"{v:,.0f}".replace(",", ".") for v in INCOME[1:])], n=TRUTH),
        "",
        "pass --decimal . for the former, or --thousands . for the latter",
        {"--decimal .": ("income", 571), "--thousands .": ("income", 571)},
    ),
    "points beside decimal commas": (
        "p.csv",
        table(";", income=[f"{v:,.0f}".replace(",", ".") for v in INCOME], age=german(AGE)),
        "",
        f"income is not numeric .*; if {DOTTED} is {DOTTED}, pass --decimal .; if it is",
        {"--decimal .": ("income", SHARE), "--thousands .": ("income", WHOLE)},
    ),
    "points beside euros": (
        "p.csv",
        table(
            "\t",
            income=[f"{v:,.0f}".replace(",", ".") for v in INCOME],
            age=[f"{v} €" for v in german(AGE)],
        ),
        "",
        f"income has numbers with two readings; if {DOTTED} is {DOTTED}, pass --decimal .; if it",
        {"--decimal .": ("income", SHARE), "--thousands .": ("income", WHOLE)},
    ),
    "dates": (
        "p.csv",
        table(joined=DAYS.strftime("%Y-%m-%d"), **JOINED),
        "",
        r"joined has dates or times \(line 2: '2024-01-05'\); pass --dates days, --dates parts or "
        "--dates drop",
        {
            "--dates days": ("joined", day_of("2024-01-05", "%Y-%m-%d")),
            "--dates parts": ("joined month", 1),
            "--dates drop": ("age", AGE[0]),
        },
    ),
    "dates as numbers": (
        "p.csv",
        table(joined=DAYS.strftime("%Y%m%d"), **JOINED),
        "",
        r"joined has dates \(from 20240105\); pass --dates days, --dates parts, --dates drop, or "
        "--dates keep if these are numbers",
        {
            "--dates days": ("joined", day_of("2024-01-05", "%Y-%m-%d")),
            "--dates parts": ("joined month", 1),
            "--dates drop": ("age", AGE[0]),
            "--dates keep": ("joined", 20240105),
        },
    ),
    "dates of Parquet": (
        "p.parquet",
        parquet(joined=DAYS, **JOINED),
        "",
        "joined has dates or times",
        {
            "--dates days": ("joined", day_of("2024-01-05", "%Y-%m-%d")),
            "--dates drop": ("age", AGE[0]),
        },
    ),
    "dates of Excel": (
        "p.xlsx",
        workbook([("age", "joined"), *zip(AGE, DAYS.to_pydatetime(), strict=True)]),
        "",
        "joined has dates or times",
        {"--dates days": ("joined", day_of("2024-01-05", "%Y-%m-%d"))},
    ),
    "the order of dates": (
        "p.csv",
        table(joined=["03/04/2024", "05/06/2024", "07/08/2024"] * 20, **JOINED),
        "--dates days",
        "joined: '03/04/2024' is 3 April 2024 with --date-order dmy and 4 March 2024 with "
        "--date-order mdy",
        {
            "--date-order dmy": ("joined", day_of("2024-04-03", "%Y-%m-%d")),
            "--date-order mdy": ("joined", day_of("2024-03-04", "%Y-%m-%d")),
        },
    ),
    "dates and their order": (
        "p.csv",
        table(joined=["03/04/2024", "05/06/2024", "07/08/2024"] * 20, **JOINED),
        "",
        "pass --dates days, --dates parts or --dates drop; joined: '03/04/2024' is 3 April",
        {
            "--dates days --date-order dmy": ("joined", day_of("2024-04-03", "%Y-%m-%d")),
            "--dates drop": ("age", AGE[0]),
        },
    ),
    "-999": (
        "p.csv",
        people(lacking(INCOME, -999)),
        "",
        r"income has -999 in 2 rows \(others 1\d+ to 6\d+\), far from all other values; pass "
        "--sentinels missing if that .*, or --sentinels keep if it is a value",
        {
            "--sentinels missing --missing drop": ("income", INCOME[0]),
            "--sentinels keep": ("income", INCOME[0]),
        },
    ),
    "9999 in two columns, once each": (
        "p.csv",
        people(lacking(INCOME, 99999, [2]), lacking(AGE, 99999, [3])),
        "",
        "age has 99999 in 1 row .*, income has 99999 in 1 row",
        {"--na-values 99999 --missing drop": ("income", INCOME[0])},
    ),
    "a day that never was": (
        "p.csv",
        table(joined=lacking(DAYS.strftime("%Y-%m-%d"), "9999-12-31"), **JOINED),
        "--dates days",
        r"joined has 9999-12-31 in 2 rows \(others 2024-01-05 to",
        {"--sentinels missing --missing drop": ("age", AGE[0])},
    ),
    "a title": (
        "p.csv",
        "Customers of 2024\nmade today\n" + NUMBERS,
        "",
        "line 3: found 3 values for 1 columns; if lines 1 to 2 are a title, pass --skip-rows 2",
        {"--skip-rows 2": ("income", INCOME[0])},
    ),
    "units with a number": (
        "p.csv",
        NUMBERS.replace("\n", "\nyears,EUR,1\n", 1),
        "",
        "line 2, column age: found 'years' .*; if line 2 has units, pass --skip-rows 2:2",
        {"--skip-rows 2:2": ("income", INCOME[0])},
    ),
    "a row that was commented out": (
        "p.csv",
        re.sub(r"\n(.*\n)", r"\n\1#9,9,9\n", NUMBERS, count=1),
        "",
        "line 3, column age: found '#9'.*; if # begins comments, pass --comment #",
        {"--comment #": ("income", INCOME[0])},
    ),
    "a column twice": (
        "p.csv",
        NUMBERS.replace("visits", "age"),
        "",
        r"column age appears twice \(columns 1, 3\); .* by number, as with --exclude 3 or "
        "--columns 1,3",
        {"--exclude 3": ("age", AGE[0]), "--columns 1,3": ("age.1", VISITS[0])},
    ),
    "a column without a name": (
        "p.csv",
        NUMBERS.replace("visits", ""),
        "",
        "column 3 has no name .*choose it by its number, or leave it out with --exclude 3",
        {"--exclude 3": ("age", AGE[0]), "--columns 1,3": ("3", VISITS[0])},
    ),
}


@pytest.mark.parametrize("case", ASKS)
def test_two_readings_are_a_question_and_each_option_works(command, write, case):
    name, content, options, words, ways = ASKS[case]
    call = ("fit", write(name, content), "-k", "3", "-o", "out", *options.split())
    status, out, err = command(*call)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert re.search(words, err), err
    for way, (column, value) in ways.items():
        opened = lf.data.open_dataset(name, **as_python(options) | as_python(way))
        first = opened.points[0, list(opened.names).index(column)]
        assert first == pytest.approx(value, rel=1e-15), way
        assert command(*call, *way.split(), "--force")[0] == 0


REFUSED = {
    "two currencies": (["$12.5", "€13.5"] * 30, r"found '\$12.5' and '€13.5', which may have diff"),
    "percent and shares": (["12.5%", "0.13"] * 30, "which may have different units"),
    "years of two digits": (["03/04/24", "25/04/24"] * 30, "write years with four digits"),
    "points and commas": (["1.5", "2,5"] * 30, "found '2,5'|not numeric"),
    "days and months first": (["25/12/2024", "12/25/2024"] * 30, "the day comes first, and in"),
    "time zones in some": (["2024-01-05 10:00Z", "2024-01-05 10:00"] * 30, "and others have none"),
    "limits of detection": (["<0.5", "0.7"] * 30, "found '<0.5'"),
    "numbers of articles": (["A 12", "ROW 13"] * 30, "is not numeric"),
    "female or not": (["f", "m"] * 30, "is not numeric"),
    "dates that are none": (["2024-02-30", "2024-02-28"] * 30, "is not numeric|found"),
    "thousands in groups of two": (["12,34", "1,2,3"] * 30, "not numeric|found"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_reading_is_refused(command, write, case):
    values, words = REFUSED[case]
    status, _, err = command("fit", write("p.csv", table(age=AGE[:60], x=values)), "-k", "3")
    assert (status, err.count("\n")) == (2, 1), err
    assert re.search(words, err), err


def test_new_rows_are_read_as_those_of_the_fit(command, write):
    """Also if the new file is written in another way, as long as it means the same."""
    rows = {
        "age": AGE,
        "income": [f"${v}" for v in us(INCOME)],
        "joined": [*DAYS[:-1].strftime("%d/%m/%Y"), "25/07/2024"],
        "smoker": np.where(TRUTH == 1, "yes", "no"),
    }
    write("p.csv", table(**rows))
    assert command("fit", "p.csv", "-k", "3", "-o", "out", "--dates", "days")[0] == 0
    fitted = pd.read_csv("out/labels.csv")
    stored = json.loads(Path("out/model/columns.json").read_text(encoding="utf-8"))
    assert [f["notation"] and f["notation"]["kind"] for f in stored["features"]] == [
        *(None, "number", "date", "truth")
    ]
    few = {name: list(values)[:9] for name, values in rows.items()}
    few["joined"] = ["03/04/2024"] * 9  # two readings: as in the fit
    ways = {
        "same.csv": table(**rows),
        "plain.csv": table(
            age=AGE,
            income=INCOME,
            joined=DAYS[:59].append(pd.DatetimeIndex(["2024-07-25"])).strftime("%Y-%m-%d"),
            smoker=(TRUTH == 1) * 1,
        ),
        "german.csv": table(
            ";",
            age=german(AGE),
            income=[f"{v} $" for v in german(INCOME)],
            joined=rows["joined"],
            smoker=np.where(TRUTH == 1, "TRUE", "FALSE"),
        ),
    }
    for name, text in ways.items():
        status, _, err = command("predict", "out", write(name, text), "-o", f"l-{name}")
        assert status == 0, err
        found = pd.read_csv(f"l-{name}")
        np.testing.assert_array_equal(found["cluster"], fitted["cluster"])
        np.testing.assert_allclose(found["distance"], fitted["distance"], rtol=1e-5)
    assert command("predict", "out", write("few.csv", table(**few)), "-o", "few-l.csv")[0] == 0
    wrong = {
        "income": ("12%", "found numbers with %, and the model was fitted on numbers with \\$"),
        "smoker": ("maybe", "found 'maybe', and the model was fitted on yes and no"),
        "joined": ("03/04/24", "and the model was fitted on dates; .*four digits"),
        "age": ("old", "age"),
    }
    for column, (value, words) in wrong.items():
        text = table(**{**rows, column: [value] * N})
        status, _, err = command("predict", "out", write("w.csv", text), "--force")
        assert (status, err.count("\n")) == (2, 1), err
        assert re.search(words, err), err


def test_doubtful_numbers_of_new_rows_are_asked_about(command, write):
    dollars = [f"${v:.2f}" for v in VISITS]
    write("p.csv", table(age=AGE, income=INCOME, pay=dollars))
    assert command("fit", "p.csv", "-k", "3", "-o", "out")[0] == 0
    points = [f"{v:,.0f}".replace(",", ".") for v in INCOME]
    euros = [f"{v:.2f} $".replace(".", ",") for v in VISITS]
    write("q.tsv", table("\t", age=german(AGE), income=points, pay=euros))
    status, _, err = command("predict", "out", "q.tsv")
    assert (status, "pass --decimal .; if it is" in err) == (2, True), err
    assert command("predict", "out", "q.tsv", "--thousands", "point", "-o", "l.csv")[0] == 0
    fitted, found = pd.read_csv("out/labels.csv"), pd.read_csv("l.csv")
    np.testing.assert_array_equal(found["cluster"], fitted["cluster"])


def test_what_the_fit_did_not_decide_is_asked_about(command, write):
    """Its dates and numbers had one reading, those of the new rows have two."""
    write("p.csv", table(age=AGE, pay=[f"${v:.0f}" for v in VISITS], joined=DAYS))
    assert command("fit", "p.csv", "-k", "3", "-o", "out", "--dates", "days")[0] == 0
    ways = {
        "--date-order": {"joined": ["03/04/2024"] * N},
        "--thousands": {"pay": ["$1,234"] * N},
    }
    for option, changed in ways.items():
        columns = {"age": AGE, "pay": ["$5"] * N, "joined": DAYS, **changed}
        call = ("predict", "out", write("q.csv", table(**columns)), "--force")
        status, _, err = command(*call)
        assert (status, option in err) == (2, True), err
        value = "mdy" if option == "--date-order" else "comma"
        assert command(*call, option, value)[0] == 0


def test_titles_comments_and_decimal_points_are_remembered(command, write):
    """A file like that of the fit needs no option again."""
    points = [f"{v:,.0f}".replace(",", ".") for v in INCOME]
    text = "Customers\n\n" + table(";", income=points, n=TRUTH)
    for way in ("--decimal .", "--thousands point"):
        options = ("-k", "3", "-o", "out", "--skip-rows", "2", *way.split(), "--force")
        assert command("fit", write("p.csv", text), *options)[0] == 0
        status, _, err = command("predict", "out", "p.csv", "-o", "l.csv", "--force")
        assert (status, "recognised" in err and "1 line above the names as a title" in err) == (
            0,
            True,
        ), err
        pd.testing.assert_frame_equal(pd.read_csv("out/labels.csv"), pd.read_csv("l.csv"))
    write("c.csv", NUMBERS.replace("\n", " | fine\n"))
    assert command("fit", "c.csv", "-k", "3", "-o", "c", "--comment", "|", "--sep", ",")[0] == 0
    assert command("predict", "c", "c.csv", "-o", "c-l.csv")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("c/labels.csv"), pd.read_csv("c-l.csv"))


def test_missing_values_and_parts_are_remembered(command, write):
    rows = {
        "age": lacking(AGE, -999),
        "visits": lacking(VISITS, "broken", [3]),
        "joined": lacking(HOURS.strftime("%Y-%m-%d %H:%M"), "TBD", [5]),
    }
    options = "--sentinels missing --na-values broken --missing median --dates parts"
    write("p.csv", table(**rows))
    assert command("fit", "p.csv", "-k", "3", "-o", "out", *options.split())[0] == 0
    status, _, err = command("predict", "out", "p.csv")
    assert status == 0, err
    found, fitted = pd.read_csv("p-labels.csv"), pd.read_csv("out/labels.csv")
    np.testing.assert_array_equal(found["cluster"], fitted["cluster"])
    np.testing.assert_allclose(found["distance"], fitted["distance"], rtol=1e-5)


def test_dates_as_numbers_are_remembered(command, write):
    days = [*DAYS.strftime("%Y%m%d")]
    write("p.csv", table(joined=lacking(days, ""), **JOINED))
    options = ("--dates", "parts", "--missing", "drop")
    assert command("fit", "p.csv", "-k", "3", "-o", "out", *options)[0] == 0
    found = command("predict", "out", "p.csv", "-o", "l.csv")
    assert found[0] == 0, found
    fitted = pd.read_csv("out/labels.csv")["cluster"]
    pd.testing.assert_series_equal(pd.read_csv("l.csv")["cluster"], fitted)
    write("q.csv", table(joined=lacking(DAYS.strftime("%d-%b-%Y"), ""), **JOINED))
    assert command("predict", "out", "q.csv", "-o", "m.csv")[0] == 0
    pd.testing.assert_series_equal(pd.read_csv("m.csv")["cluster"], fitted)


def test_sentinels_that_are_kept_are_values_for_new_rows_too(command, write):
    write("p.csv", people(lacking(INCOME, -999)))
    assert command("fit", "p.csv", "-k", "3", "-o", "out", "--sentinels", "keep")[0] == 0
    assert command("predict", "out", "p.csv")[0] == 0
    write("q.csv", NUMBERS)
    command("fit", "q.csv", "-k", "3", "-o", "other")
    status, _, err = command("predict", "other", "p.csv", "--force")
    assert (status, "income has -999 in 2 rows" in err) == (2, True)


def test_a_word_late_in_the_file_is_found(write):
    """After the rows in which notations are looked for."""
    values = [f"{i % 7}.5" for i in range(5000)]
    write("p.csv", table(a=values, b=lacking(values, "$3.5", [4500])))
    assert lf.data.open_dataset("p.csv").points[4500].tolist() == [float(values[4500]), 3.5]
    write("p.csv", table(a=values, b=lacking(values, "unknown", [4500])))
    with pytest.raises(ValueError, match="line 4502, column b: found a missing value"):
        lf.data.open_dataset("p.csv")


def test_frames_are_read_by_the_same_rules():
    frame = pd.DataFrame({"a": ["$1,234.50", "$12.00", None], "zip": ["01234", "04567", "12345"]})
    with pytest.raises(ValueError, match="zip is not numeric"):
        lf.data.open_dataset(frame, missing="drop")
    found = lf.data.open_dataset(frame, columns=["a"], missing="drop").points
    assert found.tolist() == [[1234.5], [12.0]]
    dated = pd.DataFrame({"when": pd.to_datetime(["2024-01-05 06:00", None])})
    with pytest.raises(ValueError, match=r"when has dates or times \(.*pass dates='days', dates="):
        lf.data.open_dataset(dated)
    found = lf.data.open_dataset(dated, dates="days", missing="drop").points
    assert found.tolist() == [[day_of("2024-01-05", "%Y-%m-%d") + 0.25]]


def test_a_file_of_plain_numbers_is_not_read_in_python(write, monkeypatch):
    """The way of large files: no survey, no texts, one pass."""

    def fail(*_):
        raise AssertionError("read in Python")

    write("p.csv", NUMBERS)
    monkeypatch.setattr(csv_table.RecordTable, "survey", fail)
    monkeypatch.setattr(csv_table.RecordTable, "batches", fail)
    assert len(lf.data.open_dataset("p.csv").points) == N
