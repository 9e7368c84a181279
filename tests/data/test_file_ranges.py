"""Ranges of files: together they are all rows, in their order, wherever the files are."""

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf
from lloydformer.data.file_ranges import find_files, read_range, split_file
from lloydformer.data.table_options import TableOptions

fsspec = pytest.importorskip("fsspec", reason="dask is not installed (extra `dask`)")
X = np.random.default_rng(0).normal(size=(60, 3))
OPTIONS = TableOptions(shell=True)


def wrote_parquet(url, columns=("a", "b", "c")):
    with fsspec.open(url, "wb") as file:
        pd.DataFrame(X, columns=list(columns)).to_parquet(file, row_group_size=9)


def wrote_npy(url, array=X):
    with fsspec.open(url, "wb") as file:
        np.save(file, array)


def wrote_csv(url, header=True, end="\n", compression=None):
    text = pd.DataFrame(X, columns=list("abc")).to_csv(index=False, header=header)
    with fsspec.open(url, "wb", compression=compression) as file:
        file.write(text.removesuffix("\n").encode() + end.encode())


@pytest.mark.parametrize("place", ["memory://files", "{folder}", "file://{folder}"])
@pytest.mark.parametrize("size", [400, 1 << 26])
@pytest.mark.parametrize("kind", ["parquet", "npy", "csv", "csv.gz"])
def test_ranges_together_are_all_rows(kind, size, place, tmp_path):
    url = f"{place.format(folder=tmp_path)}/points.{kind}"
    if kind == "csv.gz":
        wrote_csv(url, compression="gzip")
    else:
        {"parquet": wrote_parquet, "npy": wrote_npy, "csv": wrote_csv}[kind](url)
    (file,) = find_files(url)
    parts = split_file(file, OPTIONS, size)
    found = np.concatenate([read_range(part, [0, 2]) for part in parts])
    np.testing.assert_allclose(found, X[:, [0, 2]], rtol=1e-15)
    assert (len(parts) == 1) == (size > 3e7 or kind == "csv.gz")
    assert parts[0].header.names == (None if kind == "npy" else ("a", "b", "c"))


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("header", [True, False])
def test_lines_at_every_cut_are_read_once(header, end, tmp_path):
    url = str(tmp_path / "points.csv")
    wrote_csv(url, header, end)
    for size in (57, 58, 59, 60, 997):
        parts = split_file(url, OPTIONS, size)
        counts = [len(read_range(part, [1])) for part in parts]
        assert sum(counts) == len(X)
        assert (parts[0].header.names is not None) == header


def test_precision_and_order_of_an_array(tmp_path):
    url = str(tmp_path / "points.npy")
    for array in (X.astype(np.float32), np.asfortranarray(X), (100 * X).astype(np.int16)):
        np.save(url, array)
        parts = split_file(url, OPTIONS, 300)
        found = np.concatenate([read_range(part, [0, 1, 2]) for part in parts])
        assert found.dtype == (np.float32 if array.dtype == np.float32 else np.float64)
        np.testing.assert_array_equal(found, array)


def test_files_of_patterns_and_folders_are_sorted():
    for name in ("b.npy", "a.npy", "c.txt.old"):
        wrote_npy(f"memory://many/{name}")
    wanted = ["memory:///many/a.npy", "memory:///many/b.npy"]
    assert find_files("memory://many/*.npy") == find_files("memory://many") == wanted


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "no such file; check the path"),
        ("points.xlsx", b"x", "is not read by workers; pass .parquet, .npy or .csv files"),
        ("points.npy", b"hello", "points.npy: "),
        ("points.parquet", b"hello", "points.parquet: "),
        ("points.csv", b"", "found no rows"),
        ("words.csv", b"a,b,c\n1,2,3\n4,x,6\n", "words.csv, bytes 6 to 18: line 2, .*'x'"),
        ("ragged.csv", b"a,b,c\n1,2,3\n4,5\n", "ragged.csv, bytes 6 to 16: line 2: .*2 values"),
        (
            "title.csv",
            b"hi\n1,2\n3,4\n",
            "line 2: found 2 values for 1 columns; if line 1 is a title",
        ),
        ("long.csv", b"1," * 600_000, "long.csv: its first line has more than 1,048,576 bytes"),
        ("latin.csv", "\u00e9,b\n1,2\n".encode("latin-1"), "latin.csv: is not text in UTF-8"),
        ("zero.csv", b"a,b\n1,2\n\0,4\n", "zero.csv: is not text in UTF-8"),
        ("noplace://a/b.csv", None, "noplace://a/b.csv: .*noplace"),
    ],
)
def test_what_cannot_be_read_is_named(name, content, words, tmp_path):
    url = name if "://" in name else str(tmp_path / name)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_all(url)


def read_all(url, size=1 << 26, options=OPTIONS):
    """The names and the rows of all files, read in ranges."""
    found, names = [], None
    for file in find_files(url):
        for part in split_file(file, options, size):
            names = part.header.names
            found.append(read_range(part, range(part.header.width)))
    return names, np.concatenate(found)


TEXTS = {
    "carriage returns": b"a,b\r1,2\r3,4\r",
    "semicolons": b"a;b\n1;2\n3;4\n",
    "tabs": b"1\t2\n3\t4\n",
    "spaces": b" 1  2\n3 4 \n",
    "decimal commas": b"1,5;2,5\n3,5;4,5\n",
    "spaces around names": b"a, b\n1, 2\n3, 4\n",
    "blank first line": b"\na,b\n1,2\n3,4\n",
    "blank first line, no names": b"\n1,2\n3,4\n",
    "lines of spaces": b"a,b\n1,2\n   \n3,4\n",
    "a name of two lines": b'"a\nx",b\n1,2\n3,4\n',
    "a byte order mark": b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
    "no end of the last line": b"1,2\r\n3,4",
}


@pytest.mark.parametrize("size", [3, 1 << 26])
@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_a_text_is_recognised_as_in_one_process(content, size, tmp_path):
    path = tmp_path / "points.csv"
    path.write_bytes(content)
    names, rows = read_all(str(path), size)
    alone = lf.data.open_dataset(path)
    assert names == alone.names
    np.testing.assert_array_equal(rows, alone.points)


def test_the_first_row_with_a_decimal_comma_is_a_row(tmp_path):
    path, options = tmp_path / "points.csv", TableOptions(sep=";", decimal=",")
    path.write_text("1,5;2,5\n3,5;4,5\n")
    names, rows = read_all(str(path), options=options)
    assert names is None
    assert rows.tolist() == [[1.5, 2.5], [3.5, 4.5]]


@pytest.mark.parametrize("kind", ["gz", "zst", "bz2", "xz"])
def test_compressed_texts_are_read_as_a_whole(kind, tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    if kind == "zst":
        arrow = pytest.importorskip("pyarrow")
        with arrow.CompressedOutputStream(str(tmp_path / "points.csv.zst"), "zstd") as file:
            file.write(frame.to_csv(index=False).encode())
    else:
        frame.to_csv(tmp_path / f"points.csv.{kind}", index=False)
    names, rows = read_all(str(tmp_path / f"points.csv.{kind}"), 100)
    assert names == ("a", "b", "c")
    np.testing.assert_allclose(rows, X, rtol=1e-15)


def test_a_range_that_begins_like_a_compressed_file_is_a_text(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("name,a\nAB,1\nBZh9,2\n")
    parts = split_file(str(path), OPTIONS, 5)
    assert np.concatenate([read_range(part, [1]) for part in parts]).tolist() == [[1], [2]]


def test_a_name_with_brackets_is_that_of_a_file(tmp_path):
    np.save(tmp_path / "a[1].npy", X)
    np.testing.assert_array_equal(read_all(str(tmp_path / "a[1].npy"))[1], X)


def test_bytes_after_an_array_are_left(tmp_path):
    path = tmp_path / "points.npy"
    for array in (X, np.asfortranarray(X)):
        np.save(path, array)
        with path.open("ab") as file:
            file.write(b"xx")
        np.testing.assert_array_equal(read_all(str(path), 300)[1], X)


def test_a_parquet_file_without_row_groups_has_columns_and_no_rows(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = arrow.schema([("a", arrow.float32()), ("b", arrow.float32())])
    parquet.ParquetWriter(tmp_path / "none.parquet", schema).close()
    names, rows = read_all(str(tmp_path / "none.parquet"))
    assert names == ("a", "b")
    assert rows.shape == (0, 2)
    assert rows.dtype == np.float32


def test_the_place_of_a_row_is_counted_in_the_file_where_that_is_known(tmp_path):
    url = str(tmp_path / "points.parquet")
    wrote_parquet(url)
    _, second = split_file(url, OPTIONS, 5 * 300)[:2]
    assert second.locate(2) == f"{url}, row {9 * second.start + 3}"
    wrote_csv(str(tmp_path / "points.csv"))
    second = split_file(str(tmp_path / "points.csv"), OPTIONS, 400)[1]
    assert second.locate(2).endswith(
        f"points.csv, bytes {second.start} to {second.stop}, row 3 of these"
    )
