"""Atomic writes of files."""

import os
from pathlib import Path

import pytest

from lloydformer.data.storage import atomic_files
from lloydformer.data.storage.atomic_files import check_writable


def test_a_new_file_is_written(tmp_path):
    path = tmp_path / "new" / "page.html"
    atomic_files.atomic_write_text(path, "ℓ2")
    assert path.read_text(encoding="utf-8") == "ℓ2"
    assert list(path.parent.iterdir()) == [path]


def test_the_old_file_stays_after_an_error(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(
        atomic_files.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full"))
    )
    with pytest.raises(OSError, match="full"):
        atomic_files.atomic_write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_of_killed_processes_are_removed_by_the_next_write(tmp_path: Path) -> None:
    ours, others = [".page.html.0123abcd"], [".page.html.swp", ".other.html.0123abcd"]
    for name in (*ours, *others):
        (tmp_path / name).write_text("half")
    atomic_files.atomic_write_text(tmp_path / "page.html", "new")
    assert names(tmp_path) == {"page.html", *others}


def test_files_of_running_processes_stay(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with atomic_files.atomic_write(path) as file:
        file.write(b"first")
        atomic_files.atomic_write_text(path, "second")
        assert len(names(tmp_path)) == 2
    assert path.read_text() == "first"  # the last one to end wins
    assert names(tmp_path) == {"page.html"}


def test_check_writable(tmp_path: Path) -> None:
    check_writable(tmp_path / "some" / "where")
    assert names(tmp_path) == set()
    with pytest.raises(ValueError, match=r"/proc cannot be written to .*; pass another --output"):
        check_writable(Path("/proc/nothing"))


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_new_files(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        atomic_files.atomic_write_text(tmp_path / "file", "words")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask


def test_output_must_not_be_in_the_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    atomic_files.check_apart(tmp_path / "labels.csv", str(tmp_path / "data"))
    with pytest.raises(ValueError, match="data is the folder of the data; pass another --output"):
        atomic_files.check_apart(tmp_path / "data" / "labels.csv", str(tmp_path / "data"))
    with pytest.raises(ValueError, match=r"one\.csv is the data; pass another --output"):
        atomic_files.check_apart(tmp_path / "data" / ".." / "one.csv", str(tmp_path / "one.csv"))


def test_a_folder_that_cannot_be_listed_is_written_to(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", refuse)
        atomic_files.atomic_write_text(tmp_path / "page.html", "new")
    assert (tmp_path / "page.html").read_text() == "new"
