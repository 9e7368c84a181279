"""Ranges of files: together they are all rows, in their order, wherever the files are."""

import numpy as np
import pandas as pd
import pytest

from lloydformer.data.file_ranges import find_files, ranges_of, read_range
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
    parts = ranges_of(file, OPTIONS, size)
    found = np.concatenate([read_range(part, [0, 2], OPTIONS) for part in parts])
    np.testing.assert_allclose(found, X[:, [0, 2]], rtol=1e-15)
    assert (len(parts) == 1) == (size > 3e7 or kind == "csv.gz")
    assert parts[0].names == (None if kind == "npy" else ("a", "b", "c"))


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("header", [True, False])
def test_lines_at_every_cut_are_read_once(header, end, tmp_path):
    url = str(tmp_path / "points.csv")
    wrote_csv(url, header, end)
    for size in (57, 58, 59, 60, 997):
        parts = ranges_of(url, OPTIONS, size)
        counts = [len(read_range(part, [1], OPTIONS)) for part in parts]
        assert sum(counts) == len(X)
        assert (parts[0].names is not None) == header


def test_precision_and_order_of_an_array(tmp_path):
    url = str(tmp_path / "points.npy")
    for array in (X.astype(np.float32), np.asfortranarray(X), (100 * X).astype(np.int16)):
        np.save(url, array)
        parts = ranges_of(url, OPTIONS, 300)
        found = np.concatenate([read_range(part, [0, 1, 2], OPTIONS) for part in parts])
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
        ("words.csv", b"a,b,c\n1,2,3\n4,x,6\n", "words.csv, bytes 6 to 18: .*'x'"),
        ("ragged.csv", b"a,b,c\n1,2,3\n4,5\n", "ragged.csv, bytes 6 to 16: .*Expected 3 columns"),
        ("noplace://a/b.csv", None, "noplace://a/b.csv: .*noplace"),
    ],
)
def test_what_cannot_be_read_is_named(name, content, words, tmp_path):
    url = name if "://" in name else str(tmp_path / name)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_all(url)


def read_all(url):
    for file in find_files(url):
        for part in ranges_of(file, OPTIONS):
            read_range(part, [0, 1, 2], OPTIONS)
