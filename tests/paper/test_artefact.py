"""Scopes and labels, right and wrong ones."""

import pytest

from lloydformer.paper.artefact import LABELS, Scope, load_artefact


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"trials": 0}, "trials: found 0"), ({"device": "abacus"}, "device: found 'abacus'")],
    ids=["trials", "device"],
)
def test_a_wrong_scope_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Scope(**wrong)


def test_an_unknown_label_is_refused():
    with pytest.raises(ValueError, match=r"label: found 'tab:x'; pass one of .*mix-res"):
        load_artefact("tab:x")


@pytest.mark.parametrize("label", LABELS)
def test_every_label_has_pieces_and_latex_labels(label):
    found = load_artefact(label)
    assert found.label == label
    assert all(cite.split(":")[0] in ("tab", "fig", "asec", "sec") for cite in found.cites)
    assert list(found.pieces(Scope())), "a label has pieces"
    assert list(found.pieces(Scope(full=True)))
