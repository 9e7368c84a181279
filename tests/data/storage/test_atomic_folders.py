"""Atomic writes of folders, in one step and file by file."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import lock_descriptor

from lloydformer.data.storage import atomic_folders
from lloydformer.data.storage.atomic_folders import atomic_folder, exchange

FILES = ("one", "two", "inner/t*", "last")


@pytest.fixture(params=["in one step", "file by file"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Both ways to replace files; the first one needs a system that can exchange folders."""
    if request.param == "file by file":
        monkeypatch.setattr(atomic_folders, "exchange", lambda one, other: False)
    else:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        if not exchange(tmp_path / "a", tmp_path / "b"):
            pytest.skip("this system cannot exchange folders")
        for name in ("a", "b"):
            (tmp_path / name).rmdir()
    return str(request.param)


def content(folder: Path) -> dict[str, str | None]:
    """The text of each file by its path; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


def run(folder: Path, text: str, *names: str, force: bool = True) -> None:
    with atomic_folder(folder, FILES, force=force) as temporary:
        for name in names:
            (temporary / name).parent.mkdir(exist_ok=True)
            (temporary / name).write_text(text)


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    goal = tmp_path / "deep" / "new"
    with atomic_folder(goal, FILES) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "one").write_text("1")
        assert not goal.parent.exists()
    assert content(tmp_path) == {
        "deep": None, "deep/new": None, "deep/new/inner": None, "deep/new/inner/one": "1",
    }  # fmt: skip


def test_a_run_replaces_the_last_one_and_other_files_stay(tmp_path: Path, way: str) -> None:
    out = tmp_path / "out"
    run(out, "old", "one", "two", "inner/two", "inner/three", "last")
    (out / "kept").write_text("mine")
    (out / "inner" / "note").write_text("mine")
    (out / "link").symlink_to("kept")
    run(out, "new", "one", "inner/three", "last")
    assert content(tmp_path) == {
        "out": None, "out/one": "new", "out/inner": None, "out/inner/three": "new",
        "out/inner/note": "mine", "out/last": "new", "out/kept": "mine", "out/link": "mine",
    }  # fmt: skip
    assert (out / "link").is_symlink()


def test_other_folders_stay(tmp_path: Path, way: str) -> None:
    out = tmp_path / "out"
    run(out, "old", "one", "two", "last")
    (out / "notes").mkdir()
    (out / "notes" / "kept").write_text("mine")
    (out / "another").write_text("mine")
    run(out, "new", "one", "last")
    assert content(tmp_path) == {
        "out": None, "out/one": "new", "out/last": "new", "out/notes": None,
        "out/notes/kept": "mine", "out/another": "mine",
    }  # fmt: skip


def test_a_file_that_comes_during_the_exchange_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run(out, "old", "last")

    def late(one: Path, other: Path) -> bool:
        (out / "late").write_text("mine")
        return exchange(one, other)

    monkeypatch.setattr(atomic_folders, "exchange", late)
    run(out, "new", "last")
    assert content(out) == {"late": "mine", "last": "new"}


def test_the_current_folder_is_not_exchanged(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "old", "one", "two", "last")
    monkeypatch.chdir(tmp_path)
    run(Path(), "new", "one", "last")
    assert content(Path()) == {"one": "new", "last": "new"}
    assert content(tmp_path) == {"one": "new", "last": "new"}


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path, way: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    run(tmp_path / "out", "new", "last")
    assert (tmp_path / "out").is_symlink()
    assert content(tmp_path / "real") == {"last": "new"}


def test_without_force_nothing_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out, "old", "last")
    with pytest.raises(ValueError, match=r"out/last exists; pass --force"):
        run(out, "new", "one", force=False)
    assert content(tmp_path) == {"out": None, "out/last": "old"}


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("words")])
def test_after_an_error_the_folder_is_unchanged(
    tmp_path: Path, there: bool, error: BaseException
) -> None:
    goal = tmp_path / "out"
    if there:
        goal.mkdir()
    before = content(tmp_path)

    def half() -> None:
        with atomic_folder(goal, FILES) as folder:
            (folder / "one").write_text("half")
            raise error

    with pytest.raises(type(error)):
        half()
    assert content(tmp_path) == before


def test_a_failed_write_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="out") as error, atomic_folder(tmp_path / "out", FILES):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(tmp_path / "out")


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    left = (tmp_path / ".out.0123abcd", out / ".out.89abcdef", tmp_path / ".out.swapfile")
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "half").write_text("old")
    with atomic_folder(out, FILES, force=True) as running:
        (running / "last").write_text("first")
        run(out, "second", "last")
        assert running.exists()  # its process is alive
    assert content(tmp_path) == {
        "out": None, "out/last": "first", ".out.swapfile": None, ".out.swapfile/half": "old",
    }  # fmt: skip


def test_stale_folders_are_removed_while_the_parent_is_locked(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an exchange the old folder has a temporary name and no lock of its own."""
    free = []

    def try_lock(place: Path) -> None:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        free.append(lock_descriptor(descriptor, blocking=False))
        os.close(descriptor)

    run(tmp_path / "out", "old", "last")
    monkeypatch.setattr(atomic_folders, "remove_stale", try_lock)
    run(tmp_path / "out", "new", "last")
    assert free
    assert not any(free)


def test_a_system_that_opens_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where `os.open` of a folder and `os.fsync` of a file to read are errors."""

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def sync(descriptor: int) -> None:
        os.write(descriptor, b"")  # fails if the file may only be read

    windows = SimpleNamespace(**vars(os) | {"name": "nt", "open": refuse, "fsync": sync})
    monkeypatch.setattr(atomic_folders, "os", windows)
    run(tmp_path / "out", "old", "one", "last")
    run(tmp_path / "out", "new", "last")
    assert content(tmp_path) == {"out": None, "out/last": "new"}


def test_permissions(tmp_path: Path, way: str) -> None:
    before = os.umask(0o027)
    try:
        run(tmp_path / "out", "old", "last")
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750
        (tmp_path / "out").chmod(0o705)
        run(tmp_path / "out", "new", "last")
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o705
    finally:
        os.umask(before)


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "out", "old", "one", "last")
    monkeypatch.chdir(tmp_path)  # it is restored after the test
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    run(tmp_path / "out", "new", "one", "last")
    assert content(tmp_path) == {"out": None, "out/one": "new", "out/last": "new"}
