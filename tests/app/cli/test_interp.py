"""`lloydformer interp`: what it prints and writes, and which input it refuses."""

import json

import pytest

from lloydformer.app.jobs.interp import InterpJob, write_scores

SMALL = ("interp", "--recipe", "lloyd_binary")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The file of a real result of one recipe in the limit."""
    path = tmp_path_factory.mktemp("interp") / "scores.json"
    write_scores(InterpJob(["lloyd_binary"], ["plain"], False, 0).run(), path)
    return path


def test_a_result_has_areas_and_provenance(measured):
    found = json.loads(measured.read_text())
    assert {"commit", "machine", "versions", "command"} <= set(found["provenance"])
    (row,) = found["rows"].values()
    assert set(row["area"]) == set(found["methods"])
    assert row["area"]["activation patching"] == 1.0
    assert row["area"]["edge attribution"] == 0.75


def test_the_command_measures_and_prints(command):
    status, out, err = command(*SMALL, "--form", "plain")
    assert (status, err) == (0, "")
    assert "lloyd_binary" in out
    assert "20 of 22" in out


def test_a_result_is_shown_again_and_drawn(command, tmp_path):
    level = {"plain": {"ACDC": 0.9}, "disguised": {"ACDC": 0.8}, "trained": {"ACDC": None}}
    rows = {
        f"{form}{gamma}": {
            "name": "lloyd",
            "form": form,
            "inverse_temperature": gamma,
            "area": area,
            "n_edges": 22,
            "n_in_circuit": 20,
        }
        for form, area in level.items()
        for gamma in ((1.0, None) if form != "trained" else (None,))
    }
    path, picture = tmp_path / "scores.json", tmp_path / "curves.png"
    path.write_text(json.dumps({"question": "interp", "methods": ["ACDC"], "rows": rows}))
    status, out, err = command("interp", "--result", str(path), "-o", str(picture))
    assert (status, err) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [line.split()[-1] for line in out.splitlines()[1:5]] == ["0.90", "0.90", "0.80", "0.80"]


def test_json_is_the_result_and_nothing_else(command, measured):
    status, out, _ = command("interp", "--result", str(measured), "--json")
    assert status == 0
    assert json.loads(out) == json.loads(measured.read_text())


WRONG = {
    "recipe": (["--recipe", "x"], "--recipe: found 'x'; pass one of lloyd"),
    "form": (["--form", "x"], "--form: found 'x'; pass one of plain, disguised, trained"),
    "output": (["-o", "scores"], "pass a name that ends with one of .json"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_bad_input_is_refused_before_anything_is_measured(command, fault):
    arguments, complaint = WRONG[fault]
    status, out, err = command("interp", *arguments)
    assert (status, out) == (2, "")
    assert complaint in err


def test_another_file_is_refused(command, tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}")
    status, _, err = command("interp", "--result", str(path))
    assert status == 2
    assert "is not a result of interp; pass a file that interp -o wrote" in err
