"""`lloydformer bench`: what it prints and writes, and which input it refuses."""

import json

import pytest

from lloydformer.app.jobs.bench import contenders, questions
from lloydformer.app.jobs.bench.questions import QUESTIONS, BenchJob
from lloydformer.app.jobs.bench.result import load_result, write_output

SMALL = ("bench", "--question", "small", "--repeats", "2", "--threads", "1")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The file of a real result of the question "small"."""
    path = tmp_path_factory.mktemp("bench") / "small.json"
    job = BenchJob("small", ["given start"], threads=1, repeats=2)
    write_output(job.run(), path)
    return path


def test_a_result_has_times_objectives_iterations_and_provenance(measured):
    found = load_result(measured)
    assert found["question"] == "small"
    assert found["settings"] == {"threads": 1, "repeats": 2, "seed": 0, "dtype": "float32"}
    assert {"commit", "machine", "versions", "command"} <= set(found["provenance"])
    assert found["provenance"]["versions"]["scikit-learn"]
    (row,) = found["rows"].values()
    ours, theirs = row["contenders"]["lloydformer"], row["contenders"]["scikit-learn"]
    assert ours["n_iter"] == theirs["n_iter"]  # the same start gives the same iterations
    assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-6)
    assert ours["fastest"] <= ours["median"] <= ours["slowest"]
    assert found["ahead"] == pytest.approx(row["ahead"])


def test_a_result_is_shown_again_and_drawn(command, measured, tmp_path):
    pictures = [tmp_path / "chart.png", tmp_path / "chart.svg"]
    outputs = [word for path in pictures for word in ("-o", str(path))]
    status, out, err = command("bench", "--result", str(measured), *outputs)
    assert (status, err) == (0, "")
    assert "scikit-learn, elkan" in out
    assert pictures[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in pictures[1].read_text()


def test_json_is_the_result_and_nothing_else(command, measured):
    status, out, _ = command("bench", "--result", str(measured), "--json")
    assert status == 0
    assert json.loads(out) == load_result(measured)


@pytest.mark.long
def test_peers_that_are_missing_are_named_and_skipped(command, monkeypatch):
    monkeypatch.setattr(contenders, "find_spec", lambda module: None)
    status, out, _ = command(*SMALL, "--only", "given start")
    assert status == 0
    assert "not installed, skipped: scikit-learn-intelex (pip install scikit-learn-intelex)" in out
    assert "not installed, skipped: faiss-cpu" in out


WRONG = {
    "no such row": ([*SMALL, "--only", "nothing"], "--only: found nothing, which no name contains"),
    "no such peer": (
        [*SMALL, "--without", "x"],
        "--without: found 'x'; the peers are",
    ),
    "no such question": (
        ["bench", "--question", "why"],
        "--question: found 'why'; pass one of",
    ),
    "one sample": ([*SMALL, "--repeats", "1"], "--repeats"),
    "a name without a kind": ([*SMALL, "-o", "result"], "pass a name that ends with one of .json"),
    "no folder": (["bench", "--question", "convergence", "--data", "nowhere"], "is not a folder"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_bad_input_is_refused_before_anything_is_measured(command, fault):
    arguments, complaint = WRONG[fault]
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert complaint in " ".join(err.split())


def test_a_file_that_is_not_a_result_is_refused(command, tmp_path):
    path = tmp_path / "other.json"
    for text, complaint in (("{}", "is not a result"), ("not json", "is not JSON")):
        path.write_text(text)
        status, _, err = command("bench", "--result", str(path))
        assert status == 2
        assert complaint in " ".join(err.split())


def test_ctrl_c_prints_what_was_done(command, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(questions, "measure", stop)
    status, out, err = command(*SMALL)
    assert (status, out) == (130, "")
    assert "stopped: 0 of " in err


def test_help_names_every_question(command):
    status, out, _ = command("bench", "--help")
    assert status == 0
    assert f"What to measure: {', '.join(QUESTIONS)}." in " ".join(out.split())
