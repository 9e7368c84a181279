"""Labels are made piece by piece, and what is done is kept."""

import json
from dataclasses import replace

import pytest

from lloydformer.paper.artefact import Claim
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.run import load_result, make
from lloydformer.paper.scope import Scope


def stopping(sample, at: str):
    """The sample, ended by Ctrl-C in one of its pieces."""

    def pieces(scope):
        def stop():
            raise KeyboardInterrupt

        return {**sample.pieces(scope), at: stop}

    return replace(sample, pieces=pieces)


def test_a_label_writes_its_numbers_claims_and_provenance(sample, tmp_path):
    result = make(sample, Scope(), tmp_path)
    assert result["rows"] == {"one": [3.0], "two": [4.0]}
    assert [c["holds"] for c in result["claims"]] == [True, False]
    assert result["claims"][0]["difference"] == 0.0
    assert result["claims"][1]["difference"] is None
    assert {"commit", "machine", "versions", "command"} <= result["provenance"].keys()
    assert (
        json.loads((tmp_path / "sample.json").read_text())
        == result
        == load_result(tmp_path, "sample")
    )
    assert sorted(p.name for p in tmp_path.rglob("*.json")) == ["sample.json"]


def test_what_was_made_is_not_made_again(sample, ran, tmp_path):
    first = make(sample, Scope(), tmp_path)
    assert make(sample, Scope(), tmp_path) == first
    assert ran == ["one", "two"]
    make(sample, Scope(), tmp_path, force=True)
    assert ran == ["one", "two"] * 2


def test_a_run_that_was_stopped_goes_on(sample, ran, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make(stopping(sample, "two"), Scope(), tmp_path)
    assert not (tmp_path / "sample.json").exists()
    assert make(sample, Scope(), tmp_path)["rows"] == {"one": [3.0], "two": [4.0]}
    assert ran == ["one", "two"]


def test_pieces_of_other_settings_are_not_mixed(sample, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make(stopping(sample, "two"), Scope(), tmp_path)
    with pytest.raises(ValueError, match=r"one\.json was made with other settings .*--force"):
        make(sample, Scope(seed=1), tmp_path)
    assert make(sample, Scope(seed=1), tmp_path, force=True)["rows"]["one"] == [4.0]
    with pytest.raises(ValueError, match=r"sample\.json was made with other settings"):
        make(sample, Scope(), tmp_path)


def test_a_damaged_file_is_refused(sample, tmp_path):
    (tmp_path / "sample.json").write_text("{")
    with pytest.raises(ValueError, match=r"sample\.json is not JSON .*--force"):
        make(sample, Scope(), tmp_path)


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
        artefact("tab:x")


@pytest.mark.parametrize("label", LABELS)
def test_every_label_says_what_it_is(label):
    found = artefact(label)
    assert found.label == label
    assert found.about.endswith(".")
    assert all(cite.split(":")[0] in ("tab", "fig", "asec") for cite in found.cites)
    assert list(found.pieces(Scope())), "a label has pieces"
    assert list(found.pieces(Scope(full=True)))


def test_the_difference_is_ours_minus_the_papers():
    assert Claim("", 2.0, 5.0, False).difference == 3.0
    assert Claim("", "two", 5.0, False).difference is None
