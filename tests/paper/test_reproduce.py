"""Labels are reproduced piece by piece, and finished pieces are saved."""

import json
from dataclasses import replace

import pytest

from lloydformer.paper.artefact import Scope
from lloydformer.paper.reproduce import load_result, reproduce_label
from lloydformer.paper.verdict import Kind, Verdict


def stopping(sample, at: str):
    """The sample, interrupted by Ctrl-C in the piece `at`."""

    def pieces(scope):
        def stop():
            raise KeyboardInterrupt

        return {**sample.pieces(scope), at: stop}

    return replace(sample, pieces=pieces)


def test_a_label_writes_its_numbers_verdicts_and_provenance(sample, tmp_path):
    result = reproduce_label(sample, Scope(), tmp_path)
    assert result["rows"] == {"one": [3.0], "two": [4.0]}
    assert [v["kind"] for v in result["verdicts"]] == ["number", "claim", "beyond"]
    assert [v["answer"] for v in result["verdicts"]] == ["holds", "does not hold", None]
    assert [v["difference"] for v in result["verdicts"]] == [0.0, None, None]
    assert result["verdicts"][1]["quote"] == "two | is below one"
    assert result["verdicts"][1]["label"] == "sec:sample"
    assert result["summary"].startswith("0 of 1 claims hold (1 does not hold); 1 of 1 numbers")
    assert {"commit", "machine", "versions", "command"} <= result["provenance"].keys()
    assert (
        json.loads((tmp_path / "sample.json").read_text())
        == result
        == load_result(tmp_path, "sample")
    )
    assert sorted(p.name for p in tmp_path.rglob("*.json")) == ["sample.json"]


def test_a_saved_result_is_not_computed_again(sample, ran, tmp_path):
    first = reproduce_label(sample, Scope(), tmp_path)
    assert reproduce_label(sample, Scope(), tmp_path) == first
    assert ran == ["one", "two"]
    reproduce_label(sample, Scope(), tmp_path, force=True)
    assert ran == ["one", "two"] * 2


def test_a_saved_result_is_judged_again(sample, ran, tmp_path):
    reproduce_label(sample, Scope(), tmp_path)
    found = Verdict(Kind.BEYOND, "yes", None, about="Is it so?")
    other = replace(sample, verdicts=lambda result: [found])
    assert reproduce_label(other, Scope(), tmp_path)["summary"] == "beyond the paper: 1 finding"
    assert load_result(tmp_path, "sample")["verdicts"][0]["about"] == "Is it so?"
    assert ran == ["one", "two"]


def test_an_interrupted_run_continues(sample, ran, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce_label(stopping(sample, "two"), Scope(), tmp_path)
    assert not (tmp_path / "sample.json").exists()
    assert reproduce_label(sample, Scope(), tmp_path)["rows"] == {"one": [3.0], "two": [4.0]}
    assert ran == ["one", "two"]


def test_pieces_of_other_settings_are_not_mixed(sample, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce_label(stopping(sample, "two"), Scope(), tmp_path)
    with pytest.raises(ValueError, match=r"one\.json was made with other settings .*--force"):
        reproduce_label(sample, Scope(seed=1), tmp_path)
    assert reproduce_label(sample, Scope(seed=1), tmp_path, force=True)["rows"]["one"] == [4.0]
    with pytest.raises(ValueError, match=r"sample\.json was made with other settings"):
        reproduce_label(sample, Scope(), tmp_path)


def test_a_damaged_file_is_refused(sample, tmp_path):
    (tmp_path / "sample.json").write_text("{")
    with pytest.raises(ValueError, match=r"sample\.json: is not JSON .*--force"):
        reproduce_label(sample, Scope(), tmp_path)
