"""fig:tr-cvg-vary from the logs in the package; claims that can fail."""

from copy import deepcopy

import numpy as np
import pytest

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.tr_cvg_vary import ALL, BY_CLUSTERS, BY_FEATURES
from lloydformer.paper.verdict import Answer

ARTEFACT = load_artefact("tr-cvg-vary")


@pytest.fixture(scope="module")
def made():
    pieces = ARTEFACT.pieces(Scope())
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def result(made):
    return deepcopy(made)


def answers(result) -> list[Answer]:
    return [verdict.answer for verdict in ARTEFACT.verdicts(result)]


def failing(result) -> list[int]:
    return [place for place, answer in enumerate(answers(result)) if answer is Answer.FAILS]


def test_there_are_seven_settings_and_seventy_runs(result):
    assert list(result["rows"]) == [setting.name for setting in ALL]
    assert (len(ALL), result["n_runs"], result["n_trials"]) == (7, 70, 5)


def test_the_gap_between_the_objectives_by_hand(result):
    """Plain numpy: a Lloyd step, the least distance, and the soft-max of distances over 0.1."""
    points, centers = draw_unseen(Tasks(32, 10), n_tasks=64)
    gaps = []
    for x, c in zip(points[0].double().numpy(), centers[0].double().numpy(), strict=True):
        labels = np.square(x[:, None] - c).sum(axis=2).argmin(axis=1)
        c = np.stack([x[labels == j].mean(axis=0) for j in range(10)])
        squares = np.square(x[:, None] - c).sum(axis=2)
        least = squares.min(axis=1, keepdims=True)
        weights = np.exp(-(squares - least) / 0.1)
        smooth = (weights * squares).sum(axis=1) / weights.sum(axis=1)
        gaps.append(smooth.sum() / least.sum() - 1)
    assert result["gaps"]["d=32, k=10, lambda=0.1"] == pytest.approx(np.mean(gaps), rel=2e-3)


def test_all_claims_hold_and_reasons_are_not_measured(result):
    assert answers(result) == [Answer.HOLDS] * 5
    assert ARTEFACT.verdicts(result)[2].note.endswith("the reason why trials fail is not.")


@pytest.mark.parametrize(
    ("setting", "which", "ends", "broken"),
    [
        (BY_CLUSTERS["k = 10"], "proposed", [0.97] * 5, [0]),
        (BY_CLUSTERS["k = 16"], "proposed", [0.8] * 4 + [1.2], [1]),  # lost with another k
        (BY_FEATURES["d = 8"], "proposed", [0.97] * 5, [3]),
        (BY_CLUSTERS["k = 25"], "ablation", [0.8] * 5, [4]),
    ],
)
def test_claims_can_fail(result, setting, which, ends, broken):
    result["curves"][setting.name][which]["last"]["each"] = ends
    assert failing(result) == broken


def test_five_good_trials_do_not_refute_a_couple_of_bad_ones_in_ten(result):
    result["curves"][BY_CLUSTERS["k = 25"].name]["proposed"]["last"]["each"] = [0.8] * 5
    assert answers(result)[1] is Answer.UNDECIDED
    assert failing(result) == []


def test_the_claim_of_growing_gaps_can_fail(result):
    result["gaps"][BY_CLUSTERS["k = 25"].name] = 0.0
    assert failing(result) == [2]


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert len(table.rows) == 7
    clusters, features = ARTEFACT.pictures(result)
    assert [ax.get_title() for ax in clusters.figure.axes[:4]] == [
        "k = 6",
        "k = 10",
        "k = 16",
        "k = 25",
    ]
    assert [ax.get_title() for ax in features.figure.axes[:4]] == [
        "d = 4",
        "d = 8",
        "d = 16",
        "d = 32",
    ]
