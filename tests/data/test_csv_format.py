"""What is recognised in texts: separator, decimal point, encoding, header."""

import pytest

from lloydformer.data.csv_format import detect_format
from lloydformer.data.csv_table import open_csv
from lloydformer.data.table_options import TableOptions
from lloydformer.data.text_file import TextFile

ASKS = "asks"
HEADERS = {
    "names": ("a,b\n1,2\n", ("a", "b")),
    "numbers": ("1.5,2\n3,4\n", None),
    "integers above integers": ("1,2\n3,4\n5,6\n", None),
    "counted columns above integers": ("0,1,2\n5,6,7\n", None),
    "counted columns above decimals": ("0,1,2\n5.5,6.5,7.5\n", ASKS),
    "counted columns and row numbers": (",0,1\n0,5.5,6.5\n1,7.5,8.5\n", ASKS),
    "years above other numbers": ("2019,2020\n5,6\n", ASKS),
    "years above years": ("2019,2020\n2001,2002\n", None),
    "years that do not ascend": ("2020,2019\n5,6\n", None),
    "a name and years": ("land,2019,2020\nitaly,5,6\n", ("land", "2019", "2020")),
    "pixels and a target": ("0,1,2,target\n5,6,7,0\n", ("0", "1", "2", "target")),
    "a row with a word": ("rome,5,3\noslo,7,2\n", ASKS),
    "a row with a word that comes again": ("rome,2019,2020\nrome,7,2\n", ASKS),
    "only names": ("a,b\n", ("a", "b")),
    "a guarded name": ("'=a,b\n1,2\n", ("=a", "b")),
}


def opened(tmp_path, text, **options):
    path = tmp_path / "p.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_csv(TextFile.at(path), TableOptions(**options), ",")


@pytest.mark.parametrize("case", HEADERS)
def test_headers(tmp_path, case):
    text, names = HEADERS[case]
    if names == ASKS:
        with pytest.raises(ValueError, match=r"line 1 \(.*\) may be names or a row; pass header"):
            opened(tmp_path, text)
    else:
        assert opened(tmp_path, text).names == names
    fields = tuple(field.lstrip("'") for field in text.splitlines()[0].split(","))
    assert opened(tmp_path, text, header=True).names == fields
    assert opened(tmp_path, text, header=False).names is None


def test_names_that_a_model_expects_are_a_header(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("2019,2020\n5,6\n")
    table = open_csv(TextFile.at(path), TableOptions(expected=("2020",)), ",")
    assert table.names == ("2019", "2020")


FORMATS = {
    "commas": ("a,b\n1,2\n", ",", "."),
    "semicolons": ("a;b\n1;2\n", ";", "."),
    "decimal commas": ("a;b\n1,5;2\n", ";", ","),
    "decimal commas without names": ("1,5;2,5\n3,5;4,5\n", ";", ","),
    "decimal commas between quotes": ('a,b\n"1,5",2\n', ",", ","),
    "tabs": ("a\tb\n1\t2\n", "\t", "."),
    "a text with semicolons": ('a,b\n1,"x; y; z"\n2,"x;"\n', ",", "."),
    "one column": ("a\n1\n2\n", ",", "."),
    "words with spaces": ("city name,age\nNew York,5\nSan Jose,6\n", ",", "."),
    "dates and times": ("when,x\n2024-01-05 10:00,5\n2024-01-06 10:00,6\n", ",", "."),
    "thousands between quotes": ('a,b\n"1,234",2\n"5,678",3\n', ",", "."),
    "both points": ("a;b\n1,5;2.5\n", ";", "."),
}


@pytest.mark.parametrize("case", FORMATS)
def test_separators_and_decimal_points(tmp_path, case):
    text, sep, decimal = FORMATS[case]
    found = opened(tmp_path, text, header=True).csv_format
    assert (found.sep, found.decimal) == (sep, decimal)


ENCODINGS = {
    "utf-8": ("é,b\n1,2\n".encode(), "utf-8"),
    "utf-8 with a mark": ("é,b\n1,2\n".encode("utf-8-sig"), "utf-8"),
    "utf-16": ("é,b\n1,2\n".encode("utf-16"), "utf-16"),
    "windows": ("é,b €\n1,2\n".encode("cp1252"), "cp1252"),
    "bytes that windows lacks": (b"\x81\xe9,b\n1,2\n", "latin-1"),
}


@pytest.mark.parametrize("case", ENCODINGS)
def test_encodings(tmp_path, case):
    text, encoding = ENCODINGS[case]
    found = opened(tmp_path, text)
    assert found.csv_format.encoding == encoding
    assert "é" in found.names[0]
    assert found.width == 2


def test_a_character_that_is_cut_is_no_other_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr("lloydformer.data.csv_format._DECODED", 64)
    path = tmp_path / "p.csv"
    for shift in range(4):
        path.write_text("a," + "x" * shift + "é" * 200 + "\n1,2\n", encoding="utf-8")
        assert detect_format(TextFile.at(path), TableOptions(), ",").encoding == "utf-8"


def test_another_encoding_late_in_the_file_is_refused_where_it_matters(tmp_path, monkeypatch):
    monkeypatch.setattr("lloydformer.data.csv_format._DECODED", 64)
    text = b"a,b\n" + b"1,x\n" * 50 + b"2,\xe9\n"
    source = opened(tmp_path, text)
    assert sum(len(batch) for batch in source.batches([0], [])) == 51
    with pytest.raises(ValueError, match="line 52: is not text in UTF-8; pass encoding='cp1252'"):
        list(source.batches([0], [1]))
