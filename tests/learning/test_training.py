"""Training: it learns, runs do not affect each other, and kill and resume change nothing."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from stopped_training import train_until

from lloydformer.data.storage.model_folder import CONFIG
from lloydformer.engines.ranks import Ranks
from lloydformer.learning import Run, Settings, Tasks, train
from lloydformer.learning.trainer import Trainer
from lloydformer.learning.training import RunGroups

FIVE = [Run(seed) for seed in range(5)]


def test_training_improves_and_reports(settings, runs):
    heard = []
    trained = train(settings, runs, device="cpu", callback=heard.append)
    assert tuple(heard) == trained.history
    assert [e.step for e in heard] == [10, 20, 30, 40, 50, 60]
    assert all(after < before for before, after in zip(heard[0].loss, heard[-1].loss, strict=True))


@pytest.mark.long
def test_a_layer_learns():
    """A short training only; the logs of the shipped weights show that they beat a Lloyd step."""
    tasks = Tasks(8, 3, 32)
    settings = Settings(tasks, n_steps=800, batch_size=8, n_validation=64, evaluate_every=100)
    history = train(settings, [Run(1)], device="cpu").history
    assert history[-1].relative[0] < 1.4 < 1.8 < history[0].relative[0]


def test_the_same_command_gives_the_same_weights(settings, runs):
    first, second = (train(settings, runs, device="cpu") for _ in range(2))
    assert torch.equal(first.weights, second.weights)
    assert first.history == second.history


def test_a_resume_removes_what_a_killed_run_has_left_although_nothing_is_left_to_train(
    settings, runs, tmp_path
):
    short = replace(settings, n_steps=10)
    train(short, runs, device="cpu", folder=tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    left = ("checkpoint/.config.json.0123abcd", "checkpoint/model-0123456789abcdef.safetensors")
    for name in (*left, ".log.csv.0123abcd"):
        (tmp_path / name).write_bytes(b"half")
    train(short, runs, device="cpu", folder=tmp_path, resume=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"n_unrolled": 2},
        {"smoothing": "sparsemax", "activation": "sparsemax"},
        {"smoothing": "exact", "schedule": "cosine", "clip": 0.5},
        {"codes": None},
        {"codes": "binary", "bias": False, "dropout": 0.0},
    ],
    ids=str,
)
def test_runs_give_the_same_weights_together_and_alone(settings, runs, change):
    """In float64, as products of matrices sum in another order."""
    settings = replace(settings, n_steps=20, **change)
    together = _stepped(settings, runs)
    for number, run in enumerate(runs):
        alone = _stepped(settings, [run])
        one, other = together.state.weights[number], alone.state.weights[0]
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(together.measured[number], alone.measured[0])


def _stepped(settings, runs):
    trainer = Trainer(settings, runs, "cpu", torch.float64)
    for _ in range(settings.n_steps):
        trainer.step()
    trainer.evaluate()
    return trainer


def test_the_loss_of_each_run(settings, runs):
    trainer = Trainer(settings, runs, "cpu")
    batch = trainer.draw(trainer.seeds, trainer.state.step, 3)
    losses = trainer.losses(trainer.state.weights, batch)
    for run, loss in enumerate(losses):
        circuit = trainer.layer.circuit(runs[run].seed).eval()
        centers = circuit(batch.points[run], batch.centers[run], 1).centers[:, -1]
        squares = (batch.points[run, :, :, None] - centers[:, None]).square().sum(dim=-1)
        weights = (-squares / runs[run].loss_temperature).softmax(dim=-1)
        torch.testing.assert_close(loss, (weights * squares).sum(dim=(1, 2)).mean())


def test_training_with_ranges_of_sizes(settings, runs):
    ranges = Tasks(n_features=(1, 2), n_clusters=3, n_points=(10, 30), n_components=(1, 4))
    trained = train(replace(settings, tasks=ranges, n_steps=10), runs, device="cpu")
    assert torch.isfinite(trained.weights).all()


def test_a_resumed_training_gives_the_same_weights(settings, runs, tmp_path):
    whole = train(settings, runs, device="cpu")
    train_until(30, settings, runs, tmp_path, checkpoint_every=2)
    again = train(settings, runs, device="cpu", folder=tmp_path, resume=True)
    assert torch.equal(again.weights, whole.weights)
    assert again.history == whole.history
    assert (tmp_path / "log.csv").read_text() == whole.log()
    done = train(settings, runs, device="cpu", folder=tmp_path, resume=True)
    assert torch.equal(done.weights, whole.weights)


def test_ranks_share_the_groups_and_some_have_none(settings):
    def places(size, together):
        groups = [
            RunGroups(settings, FIVE, "cpu", together, Ranks(rank, size)) for rank in range(size)
        ]
        return [[(place.start, place.stop) for place in one.places] for one in groups]

    assert places(1, None) == [[(0, 5)]]
    assert places(2, None) == [[(0, 3)], [(3, 6)]]
    assert places(2, 2) == [[(0, 2)], [(2, 4), (4, 6)]]
    assert places(3, 3) == [[], [(0, 3)], [(3, 6)]]


def test_groups_are_trained_as_if_each_were_alone(settings):
    settings = replace(settings, n_steps=20)
    trained = train(settings, FIVE[:3], device="cpu", together=2)
    assert trained.together == 2
    for group in (slice(0, 2), slice(2, 3)):
        alone = train(settings, FIVE[:3][group], device="cpu")
        assert torch.equal(trained.weights[group], alone.weights)
        for together, one in zip(trained.history, alone.history, strict=True):
            assert (together.loss[group], together.relative[group]) == (one.loss, one.relative)


def test_a_resume_keeps_the_groups(settings, tmp_path):
    settings = replace(settings, n_steps=20)
    whole = train(settings, FIVE[:3], device="cpu", together=1)
    train_until(10, settings, FIVE[:3], tmp_path, checkpoint_every=1, together=1)
    resumed = train(settings, FIVE[:3], device="cpu", folder=tmp_path, resume=True)
    assert resumed.together == 1
    assert torch.equal(resumed.weights, whole.weights)


CHILD = """
import sys, torch
from lloydformer.learning import Run, Settings, Tasks, train
torch.set_num_threads(1)
settings = Settings(Tasks(2, 3, 60), n_steps=80, batch_size=8, evaluate_every=4, n_validation=8)
folder = sys.argv[1]
import pathlib
resume = (pathlib.Path(folder) / "checkpoint" / "config.json").exists()
print("begun", flush=True)
trained = train(settings, [Run(0), Run(1, 0.3)], device="cpu", folder=folder, resume=resume,
                checkpoint_every=1)
print(trained.weights.double().sum().item().hex(), trained.history[-1].relative[0].hex())
"""


def child(folder):
    command = [sys.executable, "-c", CHILD, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def killed_at_random(folder, times, longest):
    """Start and kill several times; return how often the process was still running."""
    dice, kills = random.Random(0), 0
    for _ in range(times):
        process = child(folder)
        process.stdout.readline()
        time.sleep(dice.uniform(0.0, longest))
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return kills


@pytest.mark.long
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.long)])
def test_kill_and_resume_give_the_same_weights(tmp_path, times):
    process = child(tmp_path / "whole")
    process.stdout.readline()
    began = time.perf_counter()
    undisturbed = process.communicate()[0].split()
    took = time.perf_counter() - began
    kills = killed_at_random(tmp_path / "killed", times, longest=0.8 * took / times)
    assert kills > times // 2
    assert child(tmp_path / "killed").communicate()[0].split()[1:] == undisturbed


def test_a_checkpoint_is_replaced_only_with_force(settings, runs, tmp_path):
    short = replace(settings, n_steps=10)
    train(short, runs, device="cpu", folder=tmp_path)
    with pytest.raises(ValueError, match="continue it with resume, or start again with force"):
        train(short, runs, device="cpu", folder=tmp_path)
    with pytest.raises(ValueError, match="has other settings or runs"):
        train(settings, runs, device="cpu", folder=tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds no checkpoint"):
        train(short, runs, device="cpu", folder=tmp_path / "none", resume=True)
    train(short, runs, device="cpu", folder=tmp_path, force=True)


def damaged(folder):
    """Yield a file and its damaged content, for each kind of damage."""
    tensors = next(folder.glob("model-*.safetensors"))
    config = folder / CONFIG
    data, text = tensors.read_bytes(), config.read_text()
    yield tensors, data[:-7]
    yield tensors, data[:100] + bytes([data[100] ^ 1]) + data[101:]
    yield config, text[: len(text) // 2].encode()
    yield config, text.replace('"settings"', '"setting"').encode()
    yield config, text.replace('"seed": 1', '"seed": -1').encode()
    yield config, text.replace('"kind": "training"', '"kind": "other"').encode()
    yield config, text.replace('"relative"', '"relativ"').encode()


def test_a_damaged_checkpoint_is_refused(settings, runs, tmp_path):
    short = replace(settings, n_steps=10)
    train(short, runs, device="cpu", folder=tmp_path)
    for path, content in damaged(tmp_path / "checkpoint"):
        whole = path.read_bytes()
        assert content != whole
        path.write_bytes(content)
        with pytest.raises(ValueError, match=str(tmp_path)):
            train(short, runs, device="cpu", folder=tmp_path, resume=True)
        path.write_bytes(whole)
    train(short, runs, device="cpu", folder=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_steps": 0}, "n_steps: found 0"),
        ({"codes": "gray"}, "codes: found 'gray'"),
        ({"activation": "top"}, "activation: found 'top'"),
        ({"schedule": "linear"}, "schedule: found 'linear'"),
        ({"smoothing": "hard"}, "smoothing: found 'hard'"),
        ({"learning_rate": 0.0}, "learning_rate: found 0.0"),
        ({"clip": -1.0}, "clip: found -1.0"),
        ({"dropout": 1.0}, "dropout: found 1.0"),
        ({"tasks": Tasks(2, (2, 3), 9)}, "codes: a circuit that names its clusters"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seed": -1}, "seed: found -1"),
        ({"loss_temperature": 0.0}, "loss_temperature: found 0.0"),
        ({"family": "beta"}, "family: found 'beta'; pass one of normal"),
    ],
    ids=str,
)
def test_bad_runs_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Run(**wrong)


def test_no_runs_are_refused(settings):
    with pytest.raises(ValueError, match="runs: found none"):
        train(settings, [], device="cpu")
