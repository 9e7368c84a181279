"""Training logs: those in the package are complete; new trainings run once and resume."""

import re
from dataclasses import replace

import pytest
import torch

from lloydformer.circuits import recipes
from lloydformer.learning.settings import Settings
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.trainer import Trainer
from lloydformer.paper import training_runs
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.mix_res import measure
from lloydformer.paper.tr_cvg_lambda import HIGH, LOW
from lloydformer.paper.tr_cvg_vary import ALL
from lloydformer.paper.training_curves import groups_of
from lloydformer.paper.training_runs import (
    PRINTED,
    PROPOSED,
    TRIALS,
    TrainingGroup,
    load_layers,
    load_logs,
    shipped_logs,
    train_group,
    train_layers,
)

GROUPS = groups_of(LOW + HIGH + ALL)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Very short trainings, saved in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    full_settings = TrainingGroup.settings.fget

    def settings(group: TrainingGroup) -> Settings:
        return replace(
            full_settings(group),
            tasks=Tasks(group.n_features, group.n_clusters, n_points=24),
            n_steps=4,
            evaluate_every=2,
            batch_size=2,
            n_validation=2,
        )

    monkeypatch.setattr(TrainingGroup, "settings", property(settings))


def test_the_package_has_130_runs_of_the_260():
    assert len(GROUPS) == 14
    found = [shipped_logs(group) for group in GROUPS]
    assert sum(len(log["runs"]) for log in found) == 130
    assert sum(len(group.runs(TRIALS, 0)) for group in GROUPS) == 260
    for group, log in zip(GROUPS, found, strict=True):
        of = [(run["seed"], run["loss_temperature"]) for run in log["runs"]]
        assert of == [(run.seed, run.loss_temperature) for run in group.runs(5, 0)]
        assert (log["n_features"], log["n_clusters"]) == (group.n_features, group.n_clusters)
        assert log["codes"] == group.codes
        assert log["gpu"] == "NVIDIA H200"
        assert log["steps"] == list(range(50, 10_001, 50))
        assert all(len(run[name]) == 200 for run in log["runs"] for name in ("loss", "relative"))


def test_trials_selects_the_first_trials():
    found = load_logs(TrainingGroup(4, 6), Scope(trials=2))
    assert [run["seed"] for run in found["runs"]] == [0, 1] * 4


def test_the_settings_are_the_papers():
    assert TrainingGroup(32, 10).settings == Settings()
    assert TrainingGroup(32, 10, None).settings == Settings(codes=None)
    assert PRINTED.settings.recipe == recipes.learned(decoder="dot", bias=False)
    assert replace(PRINTED.settings, decoder="euclidean", bias=True) == Settings()


def test_a_training_runs_once_and_its_log_has_the_format_of_the_package(small, monkeypatch):
    scope = Scope(full=True, trials=2, seed=3)
    found = load_logs(TrainingGroup(4, 6), scope)
    there = shipped_logs(TrainingGroup(4, 6))
    assert found.keys() - {"device"} == there.keys() - {"gpu", "torch"}
    assert found["runs"][0].keys() == there["runs"][0].keys()
    assert found["steps"] == [2, 4]
    assert [run["seed"] for run in found["runs"]] == [3, 4] * 4
    first = train_group(TrainingGroup(4, 6), scope, 2)
    assert len(first.history) == 2
    monkeypatch.setattr(Trainer, "advance", None)  # no step is taken again
    assert torch.equal(train_group(TrainingGroup(4, 6), scope, 2).weights, first.weights)


def test_an_interrupted_training_resumes(small, monkeypatch):
    group, scope = TrainingGroup(4, 6), Scope(full=True)
    whole = train_group(group, scope, 1)

    def ended(settings, runs, **rest):
        def stop(evaluation):
            raise KeyboardInterrupt

        return train(settings, runs, **rest, checkpoint_every=1, callback=stop)

    train = training_runs.train
    monkeypatch.setattr(training_runs, "train", ended)
    monkeypatch.setenv("XDG_CACHE_HOME", str(training_runs.checkpoint_folder() / "other"))
    with pytest.raises(KeyboardInterrupt):
        train_group(group, scope, 1)
    monkeypatch.setattr(training_runs, "train", train)
    resumed = train_group(group, scope, 1)
    assert torch.equal(resumed.weights, whole.weights)
    assert [e.step for e in resumed.history] == [2, 4]


def test_the_full_protocol_uses_newly_trained_layers(small):
    scope = Scope(full=True, trials=2)
    assert train_layers(scope) == {"trained": "d32-k10-onehot", "seeds": [0, 1, 2]}
    found = load_layers(scope)
    weights = train_group(PROPOSED, scope, TRIALS).weights
    assert [torch.equal(one.weights[0], weights[n]) for n, one in enumerate(found)] == [True] * 3
    assert measure("normal", scope)["n_layers"] == 3


def test_the_model_that_the_text_prints_stands_beside_that_of_the_runs(small):
    scope = Scope(full=True, trials=2)
    artefact = load_artefact("mix-res")
    outputs = {name: piece() for name, piece in artefact.pieces(scope).items()}
    assert outputs["training-printed"]["trained"] == "d32-k10-onehot-printed"
    assert load_layers(scope, PRINTED)[0].weights.shape[1] == 12 * 42**2  # twelve maps, no bias
    result = artefact.combine(outputs)
    for family, row in result["rows"].items():
        printed = result["curves"][family]["printed"]
        assert len(printed["by_layer"]) == 3
        assert row["printed"] == pytest.approx(sum(printed["by_layer"]) / 3, abs=1e-4)
        assert row["printed"] != row["transformer"]
    said = artefact.verdicts(result)[-1]
    assert re.match(r"below Lloyd's in \d of 5 families: Normal ", said.here)
    assert f"Normal {result['rows']['normal']['printed']:.3f}" in said.here
    assert artefact.tables(result)[0].columns[-1] == "as the text prints it"
    (picture,) = artefact.pictures(result)
    assert [len(ax.lines) for ax in picture.figure.axes] == [3] * 5
