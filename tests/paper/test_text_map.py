"""The map of the text: every label of the paper, and where it is in the package."""

from collections import Counter
from pathlib import Path

import pytest
from latex_text import labels_in

from lloydformer.paper.text_map import (
    HOW,
    Entry,
    measured_by,
    read_entries,
    resolve,
    text_map_table,
)

ROOT = Path(__file__).parents[2]
PAPER = ROOT.parent / "shared" / "paper" / "paper.tex"
needs_the_paper = pytest.mark.skipif(not PAPER.exists(), reason="paper.tex is not at hand")
ENTRIES = read_entries()


@needs_the_paper
def test_every_label_of_the_paper_has_an_entry_in_its_order():
    """But for sections, whose sentences are quoted by claims."""
    labels = [name for name in labels_in(PAPER.read_text(encoding="utf-8")) if "sec:" not in name]
    assert len(labels) > 70
    listed = [entry.label for entry in ENTRIES if entry.label in labels]
    assert listed == labels
    others = [entry.label for entry in ENTRIES if entry.label not in labels]
    # two definitions without a label, and sentences of limitations and future work
    kinds = Counter(name.split()[0].rstrip(":") for name in others)
    assert kinds == {"definition": 2, "limitations": 3, "future": 1}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.label)
def test_an_entry_names_what_exists(entry):
    for name in entry.where:
        assert resolve(name) is not None
    assert entry.how in HOW


def test_what_is_measured_has_a_command():
    unchecked = [
        entry.label
        for entry in ENTRIES
        if entry.how == "measured"
        and not measured_by().get(entry.label)
        # parts of a figure, and sentences, are measured under another label
        and not entry.note
        and not any(entry.label.startswith(label) for label in measured_by())
        and entry.label not in ("fig:tr-cvg-nclusters", "fig:tr-cvg-ndims")
    ]
    assert unchecked == []
    assert "verify" in measured_by()["lem perm"]
    assert measured_by()["tab:mix-res"] == ["reproduce mix-res"]


def test_a_wrong_name_is_noticed():
    with pytest.raises(AttributeError):
        resolve("lloydformer.recipes.loyd")
    with pytest.raises(ImportError, match="is not a module or object"):
        resolve("no.such.module")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"how": "somehow"}, "how: found 'somehow' for eq:x; pass one of"),
        ({"how": "repair", "where": ("lloydformer",)}, "nothing says why"),
        ({"how": "literal"}, "nothing says where"),
    ],
)
def test_an_entry_says_how_where_and_why(fields, words):
    with pytest.raises(ValueError, match=words):
        Entry("eq:x", "an equation", **fields)


def test_the_table_has_a_row_for_each_entry():
    rows = text_map_table().rows
    assert [row[0] for row in rows] == [entry.label for entry in ENTRIES]
    repairs = [row for row in rows if row[2].startswith("literal, with a stated repair: ")]
    assert len(repairs) > 10
