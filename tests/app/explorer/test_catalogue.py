"""The generated files of the page are those that Python would write now."""

from explorer_data import stale


def test_generated_files_are_fresh():
    assert stale() == [], "run: python tools/explorer_data.py --write"
