"""Provenance of benchmark results."""

import sys
from pathlib import Path

from lloydformer.paper import provenance
from lloydformer.paper.provenance import provenance as provenance_of


def test_changes_are_looked_for_in_the_whole_package(monkeypatch):
    asked = []
    monkeypatch.setattr(provenance, "_git", lambda *words: asked.append(words) or "")
    assert provenance_of()["changed"] is False
    (status,) = [words for words in asked if words[0] == "status"]
    assert status[-1].endswith("/lloydformer")


def test_a_script_that_is_not_committed_is_a_change(monkeypatch, tmp_path):
    root = Path(provenance.__file__).parents[3]
    asked = []
    monkeypatch.setattr(provenance, "_git", lambda *words: asked.append(words) or "")
    for script in (root / "benchmarks" / "precision.py", tmp_path / "precision.py"):
        monkeypatch.setattr(sys, "argv", [str(script)])
        provenance_of()
    one, other = ([*words[3:]] for words in asked if words[0] == "status")
    assert one == [str(root / "benchmarks" / "precision.py"), *other]
    assert len(other) == 1  # outside of the repository git can say nothing
