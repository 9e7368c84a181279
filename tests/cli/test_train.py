"""`lloydformer train` from end to end."""

import json

import pytest

import lloydformer as lf

SMALL = ("train", "-d", "2", "-k", "3", "--points", "30", "--steps", "20", "--batch", "3",
         "--validation", "6", "--evaluate-every", "10", "--device", "cpu")  # fmt: skip


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch):
    """Comparing on 320 tasks is for real weights."""
    from lloydformer.cli import train
    from lloydformer.learning.published import scores

    monkeypatch.setattr(train, "scores", lambda trained, device: scores(trained, device, 4, 2))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # hardly trained
def test_it_leaves_weights_a_log_and_a_plot(command, tmp_path):
    folder, plot = tmp_path / "out", tmp_path / "live.svg"
    status, out, _ = command(*SMALL, "--seed", "0,1", "-o", str(folder), "--plot", str(plot))
    assert status == 0
    assert "relative_objective" in out
    assert sorted(p.name for p in folder.iterdir()) == [
        "checkpoint", "d2-k3-seed0.json", "d2-k3-seed0.safetensors", "d2-k3-seed1.json",
        "d2-k3-seed1.safetensors", "log.csv",
    ]  # fmt: skip
    assert len((folder / "log.csv").read_text().splitlines()) == 1 + 2 * 2
    assert plot.read_text().rstrip().endswith("</svg>")
    points = [[i % 7, i % 5] for i in range(40)]
    card = folder / "d2-k3-seed1.json"
    model = lf.LearnedKMeans(3, pretrained=str(card), polish=0, beside_lloyd=False, random_state=0)
    assert model.fit(points).n_iter_ == 10


def test_json_is_one_object(command, tmp_path):
    status, out, _ = command(
        *SMALL,
        "--loss-temperature",
        "1,0.1",
        "--codes",
        "none",
        "-o",
        str(tmp_path / "o"),
        "--json",
    )
    found = json.loads(out)
    assert status == 0
    assert [row["loss_temperature"] for row in found["rows"]] == [1.0, 0.1]
    assert found["settings"]["codes"] is None


def test_it_resumes(command, tmp_path):
    folder = str(tmp_path / "o")
    assert command(*SMALL, "-o", folder)[0] == 0
    status, _, error = command(*SMALL, "-o", folder)
    assert status == 2
    assert "resume" in error
    assert command(*SMALL, "-o", folder, "--resume")[0] == 0
    assert command(*SMALL, "-o", folder, "--force")[0] == 0


def test_ctrl_c_says_what_is_done(command, tmp_path, monkeypatch):
    from lloydformer.learning import training

    def advanced(program, work, inner=training._advanced):
        if int(program.state.step) >= 10:
            raise KeyboardInterrupt
        return inner(program, work)

    monkeypatch.setattr(training, "_advanced", advanced)
    status, _, error = command(*SMALL, "-o", str(tmp_path / "o"))
    assert status == 130
    assert "stopped after step 10 of 20" in error
    assert "--resume" in error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--clusters", "x"), "--clusters: found 'x'; pass a number, or LEAST:GREATEST"),
        (("--seed", "a,b"), "--seed: found 'a,b'"),
        (("--family", "beta"), "family: found 'beta'; pass one of normal"),
        (("--codes", "gray"), "codes: found 'gray'; pass one of onehot"),
        (("--device", "tpu"), "--device: found 'tpu'; pass cpu"),
        (("--points", "2"), "at least as many points as clusters"),
        (("--clip", "-1"), "clip: found -1.0"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(command, tmp_path, options, words):
    status, out, error = command(*SMALL, "-o", str(tmp_path / "o"), *options)
    assert (status, out) == (2, "")
    assert words in error
    assert len(error.splitlines()) == 1
