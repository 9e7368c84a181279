"""Provenance of benchmark results."""

from lloydformer.paper import provenance
from lloydformer.paper.provenance import provenance as provenance_of


def test_changes_are_looked_for_in_the_whole_package(monkeypatch):
    asked = []
    monkeypatch.setattr(provenance, "_git", lambda *words: asked.append(words) or "")
    assert provenance_of()["changed"] is False
    (status,) = [words for words in asked if words[0] == "status"]
    assert status[-1].endswith("/lloydformer")
