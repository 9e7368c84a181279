"""fig:trf-train and tab:mix-res by the authors' code: dropout on, validation tasks, medians."""

import json

import pytest
import torch

from lloydformer.learning.evaluation import compare_on, draw_unseen, draw_validation
from lloydformer.learning.pretrained import load
from lloydformer.learning.trainer import Trainer
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.lloyd_comparison import DROPOUT, compare_with_dropout
from lloydformer.paper.verdict import Answer, Kind

LAYER = load("d4-k6")
BATCH = draw_unseen(LAYER.settings.tasks, n_tasks=6)


def test_dropout_in_evaluation_is_that_of_training():
    """Other weights are dropped in each step; without a probability nothing changes."""
    found = [compare_on(BATCH, LAYER.layer, LAYER.weights, 3, dropout=p) for p in (0.0, DROPOUT)]
    plain = compare_on(BATCH, LAYER.layer, LAYER.weights, 3)
    assert torch.equal(found[0].by_layer, plain.by_layer)
    assert torch.equal(found[1].by_lloyd, plain.by_lloyd)
    assert not torch.equal(found[1].by_layer, plain.by_layer)
    again = compare_on(BATCH, LAYER.layer, LAYER.weights, 3, dropout=DROPOUT)
    assert torch.equal(again.by_layer, found[1].by_layer)


def test_medians_and_ribbons_are_over_layers():
    layers = [LAYER, LAYER]
    found = compare_with_dropout(BATCH, layers, seed=0)
    assert found["n_layers"] == 2
    assert found["plain"]["median"] == found["plain"]["low"] == found["plain"]["high"]
    assert found["dropout"]["low"][-1] <= found["dropout"]["median"][-1]
    assert found["dropout"]["low"][-1] < found["dropout"]["high"][-1]
    added = found["dropout"]["median"][-1] - found["plain"]["median"][-1]
    assert found["change"][0] == pytest.approx(added, abs=2e-5)


def test_validation_tasks_are_those_of_the_training():
    trainer = Trainer(LAYER.settings, [LAYER.run], "cpu")
    batch = draw_validation(LAYER.settings, LAYER.run, LAYER.settings.n_validation)
    points, centers, _ = trainer.validation
    torch.testing.assert_close(batch.points.to(points), points)
    torch.testing.assert_close(batch.centers.to(centers), centers)


@pytest.mark.parametrize("label", ["trf-train", "mix-res"])
def test_pieces_give_a_table_and_findings(label, monkeypatch):
    artefact = load_artefact(f"{label}-authors")
    module = f"lloydformer.paper.{label.replace('-', '_')}_authors"
    monkeypatch.setattr(f"{module}.load_layers", lambda *args, **more: [LAYER])
    monkeypatch.setattr(f"{module}.N_SHIPPED", 2, raising=False)
    monkeypatch.setattr("lloydformer.paper.lrn_weights.available", lambda: ["d4-k6", "symmetric"])
    pieces = artefact.pieces(Scope(trials=4, authors=True))
    found = artefact.combine({name: piece() for name, piece in pieces.items()})
    result = json.loads(json.dumps(found, allow_nan=False))
    verdicts = artefact.verdicts(result)
    assert {v.kind for v in verdicts} <= {Kind.NUMBER, Kind.BEYOND}
    assert all(v.answer in (None, Answer.UNDECIDED) for v in verdicts if v.kind is Kind.BEYOND)
    (table,) = artefact.tables(result)
    assert len(table.rows) == len(result["rows"])
    assert f"{4} " in table.caption
    assert next(iter(artefact.pieces(Scope(full=True, authors=True)))) == "training"
