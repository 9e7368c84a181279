"""Files stay whole."""

import pytest

from lloydformer import writing


def test_write_whole_writes(tmp_path):
    path = tmp_path / "new" / "page.html"
    writing.write_whole(path, "ℓ2")
    assert path.read_text(encoding="utf-8") == "ℓ2"
    assert list(path.parent.iterdir()) == [path]


def test_write_whole_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr(writing.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        writing.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
