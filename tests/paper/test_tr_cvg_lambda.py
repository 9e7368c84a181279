"""fig:tr-cvg-lambda from the logs in the package; claims that can fail."""

from copy import deepcopy
from statistics import quantiles

import pytest

from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.tr_cvg_lambda import HIGH, LOW
from lloydformer.paper.training_curves import EMBEDDINGS
from lloydformer.paper.training_runs import shipped_logs
from lloydformer.paper.verdict import Answer

ARTEFACT = load_artefact("tr-cvg-lambda")


@pytest.fixture(scope="module")
def made():
    pieces = ARTEFACT.pieces(Scope())
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def result(made):
    return deepcopy(made)


def failing(result, answer: Answer = Answer.FAILS) -> list[int]:
    """The claims that do not hold, all with this answer."""
    found = ARTEFACT.verdicts(result)
    assert {verdict.answer for verdict in found} <= {Answer.HOLDS, answer}
    return [place for place, verdict in enumerate(found) if verdict.answer is answer]


def test_rows_are_the_final_medians_of_each_setting(result):
    assert list(result["rows"]) == [setting.name for setting in LOW + HIGH]
    log = shipped_logs(LOW[3].groups()["ablation"])
    last = sorted(run["relative"][-1] for run in log["runs"] if run["loss_temperature"] == 0.1)
    assert result["rows"]["d=4, k=6, lambda=0.1"]["ablation"] == last[2]
    assert (result["n_trials"], result["n_runs"]) == (5, 80)
    assert result["trained_on"] == ["NVIDIA H200"]


def test_ribbons_are_quartiles_over_trials(result):
    """Compared with the standard library, at the end and in the middle."""
    for setting in (LOW[1], HIGH[0]):
        for which in EMBEDDINGS:
            log = shipped_logs(setting.groups()[which])
            runs = [r for r in log["runs"] if r["loss_temperature"] == setting.temperature]
            for what in ("loss", "relative"):
                curves = result["curves"][setting.name][which][what]
                for place in (49, 99):  # every second evaluation is kept
                    each = [run[what][2 * place + 1] for run in runs]
                    known = quantiles(each, method="inclusive")
                    assert [c[place] for c in curves] == pytest.approx(known, rel=1e-3)
    assert result["steps"][49] == 5000
    assert result["steps"][-1] == 10_000


def test_the_claims_hold(result):
    assert failing(result) == []
    assert len(ARTEFACT.verdicts(result)) == 5
    note = ARTEFACT.verdicts(result)[4].note
    assert "At d = 4, λ = 1 it is better than the layer with d + k (3.306 against 3.504)." in note
    assert note.count("it is better") == 1


@pytest.mark.parametrize(
    ("setting", "which", "ends", "broken"),
    [
        (LOW[0], "proposed", [0.9] * 5, [0]),
        (LOW[2], "proposed", [0.9] * 4 + [1.1], [1]),
        (LOW[2], "proposed", [0.96] * 5, [1]),  # not by a significant margin
        (HIGH[0], "proposed", [1.05] * 5, [2]),
        (HIGH[2], "ablation", [1.1] * 4 + [0.99], [4]),
        (LOW[2], "proposed", [0.9] * 4 + [None], [1]),  # lost its numbers
    ],
)
def test_claims_can_fail(result, setting, which, ends, broken):
    result["curves"][setting.name][which]["last"]["each"] = ends
    assert failing(result) == broken
    result["n_trials"] = 2  # too few to refute
    assert failing(result, Answer.UNDECIDED) == broken


def test_claims_of_convergence_and_distances_can_fail(result):
    result["squared_distances"] = {"4": 3.0, "32": 0.4}
    middle = result["curves"][HIGH[3].name]["ablation"]["loss"][1]
    middle[-1] = middle[79] / 1.1
    assert failing(result) == [3, 4]


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert len(table.rows) == 8
    assert table.rows[3][1].startswith("0.915 (0.906, ")
    low, high = ARTEFACT.pictures(result)
    assert (low.name, high.name) == ("tr-cvg-lambda-d4", "tr-cvg-lambda-d32")
    axes = low.figure.axes
    assert len(axes) == 8
    assert [ax.get_yscale() for ax in axes] == ["log"] * 8
    assert axes[0].get_ylabel() == "training loss"
    assert axes[4].get_ylabel() == "relative validation loss"
    assert list(axes[4].lines[-1].get_ydata()) == [1.0, 1.0]  # a Lloyd step
