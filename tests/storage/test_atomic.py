"""Atomic writes of files and folders."""

import errno
import os
from pathlib import Path

import pytest

from lloydformer.storage import atomic
from lloydformer.storage.atomic import check_writable, filling


def test_write_whole_writes(tmp_path):
    path = tmp_path / "new" / "page.html"
    atomic.write_whole(path, "ℓ2")
    assert path.read_text(encoding="utf-8") == "ℓ2"
    assert list(path.parent.iterdir()) == [path]


def test_write_whole_keeps_the_old_file_after_an_error(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        atomic.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    goal = tmp_path / "deep" / "new"
    with filling(goal) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "one").write_text("1")
        assert not goal.parent.exists()
    assert names(tmp_path) == {"deep", "deep/new", "deep/new/inner", "deep/new/inner/one"}


def test_other_files_of_an_existing_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    (tmp_path / "one").write_text("old")
    with filling(tmp_path) as folder:
        (folder / "one").write_text("new")
        assert (tmp_path / "one").read_text() == "old"
    assert names(tmp_path) == {"kept", "one"}
    assert (tmp_path / "one").read_text() == "new"


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("words")])
def test_after_an_error_the_folder_is_unchanged(
    tmp_path: Path, there: bool, error: BaseException
) -> None:
    goal = tmp_path / "out"
    if there:
        goal.mkdir()
    before = names(tmp_path)

    def half() -> None:
        with filling(goal) as folder:
            (folder / "one").write_text("half")
            raise error

    with pytest.raises(type(error)):
        half()
    assert names(tmp_path) == before


def test_a_failed_write_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="out") as error, filling(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(tmp_path / "out")


def test_check_writable(tmp_path: Path) -> None:
    check_writable(tmp_path / "some" / "where")
    assert names(tmp_path) == set()
    with pytest.raises(ValueError, match=r"/proc cannot be written to .*; pass another --output"):
        check_writable(Path("/proc/nothing"))


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_new_files(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        atomic.write_whole(tmp_path / "file", "words")
        with filling(tmp_path / "folder") as folder:
            (folder / "one").write_text("1")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o777 & ~mask


def test_output_must_not_be_in_the_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    atomic.check_apart(tmp_path / "labels.csv", str(tmp_path / "data"))
    with pytest.raises(ValueError, match="data is the folder of the data; pass another --output"):
        atomic.check_apart(tmp_path / "data" / "labels.csv", str(tmp_path / "data"))
    with pytest.raises(ValueError, match=r"one\.csv is the data; pass another --output"):
        atomic.check_apart(tmp_path / "data" / ".." / "one.csv", str(tmp_path / "one.csv"))
