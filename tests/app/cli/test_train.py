"""`lloydformer train` from end to end."""

import json
from functools import partial

import pytest
import torch

import lloydformer as lf
from lloydformer.learning.export import export_symmetric
from lloydformer.learning.symmetric.model import load_symmetric
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.training import train_symmetric

SMALL = ("train", "-d", "2", "-k", "3", "--points", "30", "--steps", "20", "--batch", "3",
         "--validation", "6", "--evaluate-every", "10", "--device", "cpu")  # fmt: skip


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch):
    """Score on 4 tasks in place of 320."""
    from lloydformer.app.jobs import train
    from lloydformer.learning.export import compare_runs

    few = partial(compare_runs, n_tasks=4, n_steps=2)
    monkeypatch.setattr(train, "compare_runs", few)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # hardly trained
def test_it_writes_weights_a_log_and_a_plot(command, tmp_path):
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
    model = lf.LearnedKMeans(
        3, pretrained=str(card), max_iter=0, compare_to_lloyd=False, random_state=0
    )
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


def test_it_starts_from_constructed_weights(command, tmp_path):
    start = ("--start", "constructed", "--start-noise", "0.01")
    status, out, _ = command(*SMALL, *start, "-o", str(tmp_path), "--json")
    assert status == 0
    settings = json.loads(out)["settings"]
    assert (settings["start"], settings["start_noise"]) == ("constructed", 0.01)
    first = (tmp_path / "log.csv").read_text().splitlines()[1].split(",")
    assert first[0] == "0"
    assert 0.8 < float(first[5]) < 1.3  # from random weights it is above 2
    like = ("train", "--like", str(tmp_path / "d2-k3.json"), "--device", "cpu")
    assert command(*like, "-o", str(tmp_path / "again"))[0] == 0
    assert (tmp_path / "again" / "log.csv").read_text() == (tmp_path / "log.csv").read_text()


def test_a_start_that_there_is_not_is_refused(command, tmp_path):
    status, _, error = command(*SMALL, "--start", "warm", "-o", str(tmp_path))
    assert (status, "start: found 'warm'" in error) == (2, True)


def test_it_resumes(command, tmp_path):
    folder = str(tmp_path / "o")
    assert command(*SMALL, "-o", folder)[0] == 0
    status, _, error = command(*SMALL, "-o", folder)
    assert status == 2
    assert "resume" in error
    assert command(*SMALL, "-o", folder, "--resume")[0] == 0
    assert command(*SMALL, "-o", folder, "--force")[0] == 0


def test_ctrl_c_prints_what_is_done(command, tmp_path, monkeypatch):
    from lloydformer.learning.trainer import Trainer

    def advance(trainer, inner=Trainer.advance):
        if int(trainer.state.step) >= 10:
            raise KeyboardInterrupt
        return inner(trainer)

    monkeypatch.setattr(Trainer, "advance", advance)
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


@pytest.fixture
def small_card(tmp_path):
    """The card of a symmetric layer trained for four updates, one of two runs."""
    settings = SymmetricSettings(
        n_updates=4, warm_up=2, evaluate_every=2, shapes=(Shape(8, 30, 3, 2, 5),)
    )
    runs = (SymmetricRun(0, n_heads=2), SymmetricRun(1, n_heads=1))
    trained = train_symmetric(settings, runs, device="cpu")
    return export_symmetric(tmp_path / "small", trained, chosen=1, n_tasks=2)


@pytest.fixture
def few_scores(monkeypatch):
    from lloydformer.app.jobs import train

    monkeypatch.setattr(train, "export_symmetric", partial(export_symmetric, n_tasks=2))


def test_training_again_from_a_card_gives_the_same_numbers(
    command, small_card, tmp_path, few_scores
):
    folder = tmp_path / "again"
    like = ("train", "--like", str(small_card), "-o", str(folder), "--device", "cpu")
    status, out, _ = command(*like, "--json")
    (row,) = json.loads(out)["rows"]
    assert (status, row["same_numbers"], row["largest_difference"]) == (0, True, 0.0)
    one, two = (load_symmetric(path) for path in (small_card, folder / "small.json"))
    assert torch.equal(one.weights, two.weights)
    assert (one.settings, one.runs, one.chosen) == (two.settings, two.runs, two.chosen)
    assert one.card["scores"] == two.card["scores"]
    status, _, error = command(*like)
    assert status == 2
    assert "exists; pass --force" in error
    assert command(*like, "--force")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--like", "symmetric", "--steps", "5"),
            "--like: the card also sets --steps; leave --steps out",
        ),
        (("--like", "d3-k3"), "found 'd3-k3'; there are d4-k6"),
        (("--like", "no.json"), "no.json: there is no such file"),
    ],
    ids=str,
)
def test_a_wrong_card_is_one_line(command, tmp_path, options, words):
    status, out, error = command("train", *options, "--device", "cpu", "-o", str(tmp_path / "o"))
    assert (status, out) == (2, "")
    assert words in error
    assert len(error.splitlines()) == 1
