"""tab:mix-res: the paper's keys, numbers against scikit-learn, and claims that can fail."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.cluster import KMeans

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.lloyd_comparison import compare_with_lloyd
from lloydformer.paper.mix_res import BEYOND
from lloydformer.paper.paper_numbers import paper_numbers
from lloydformer.paper.training_runs import load_layers
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("mix-res")

N_TASKS = 2


@pytest.fixture(scope="module")
def result():
    pieces = ARTEFACT.pieces(Scope(trials=N_TASKS))
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def as_printed(result):
    """The result with the paper's numbers in place of ours, and their standard errors."""
    found, paper = deepcopy(result), paper_numbers("mix-res")
    for family in paper["rows"]:
        for who in ("lloyd", "transformer"):
            found["curves"][family][who]["error"] = [0.015] * 21
    for family, row in paper["rows"].items():
        found["rows"][family] |= dict(zip(paper["columns"], row, strict=True))
    return found


def answers(result, kind: Kind) -> list[Answer]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def test_rows_and_columns_are_the_papers_and_the_columns_beyond(result):
    paper = paper_numbers("mix-res")
    assert list(result["rows"]) == list(paper["rows"])
    for row in result["rows"].values():
        assert list(row) == [*paper["columns"], *BEYOND]
        assert row["ten_greedy"] <= row["greedy"]
        assert row["ten_random"] <= row["lloyd"]
        assert row["polished"] <= row["transformer"]
    assert result["n_tasks"] == N_TASKS
    assert result["n_layers"] == 1


def test_the_numbers_of_lloyds_algorithm_are_scikit_learns(result):
    points, centers = draw_unseen(Tasks(), "laplace", N_TASKS, seed=0)
    logs = []
    for x, c in zip(points[0].double().numpy(), centers[0].double().numpy(), strict=True):
        squares = np.square(x[:, None] - c).sum(axis=2).min(axis=1).sum()
        peer = KMeans(10, init=c, n_init=1, max_iter=20, tol=0, algorithm="lloyd").fit(x)
        logs.append([np.log(squares), np.log(peer.inertia_)])
    initial, lloyd = np.mean(logs, axis=0)
    assert result["rows"]["laplace"]["initial"] == pytest.approx(initial, abs=1e-4)
    assert result["rows"]["laplace"]["lloyd"] == pytest.approx(lloyd, abs=2e-3)


def test_ribbons_go_from_the_minimum_to_the_maximum_of_the_tasks():
    scope = Scope(trials=4)
    comparison, found = compare_with_lloyd(
        draw_unseen(Tasks(), n_tasks=4), load_layers(scope), scope
    )
    each = comparison.by_layer[0].double().numpy()
    kept = found["transformer"]
    assert kept["mean"] == pytest.approx(each.mean(axis=0), abs=1e-4)
    assert kept["low"] == pytest.approx(each.min(axis=0), abs=1e-4)
    assert kept["high"] == pytest.approx(each.max(axis=0), abs=1e-4)
    assert kept["error"] == pytest.approx(each.std(axis=0) / 2, abs=1e-4)
    assert found["won"] == (each[:, -1] < comparison.by_lloyd[0, :, -1].numpy()).mean()


def test_the_papers_numbers_fulfil_the_papers_claims_and_others_do_not(as_printed):
    assert answers(as_printed, Kind.CLAIM) == [Answer.HOLDS]
    assert answers(as_printed, Kind.NUMBER) == [Answer.HOLDS] * 15
    assert answers(as_printed, Kind.BEYOND) == [None] * 2
    as_printed["rows"]["cauchy"]["transformer"] = 3.2  # no longer behind Lloyd's
    assert answers(as_printed, Kind.CLAIM) == [Answer.FAILS]
    assert answers(as_printed, Kind.NUMBER).count(Answer.FAILS) == 1


@pytest.mark.parametrize("value", [5.35, 7.0], ids=["behind Lloyd's", "no better than the start"])
def test_a_transformer_that_is_behind_refutes_the_claim(as_printed, value):
    as_printed["rows"]["normal"]["transformer"] = value
    assert answers(as_printed, Kind.CLAIM) == [Answer.FAILS]


def test_what_is_within_chance_is_undecided(as_printed):
    as_printed["rows"]["normal"]["transformer"] = 5.25
    assert answers(as_printed, Kind.CLAIM) == [Answer.UNDECIDED]
    as_printed["rows"]["normal"]["transformer"] = 5.0752  # 0.07, of which 0.03 are two errors
    assert answers(as_printed, Kind.NUMBER).count(Answer.UNDECIDED) == 1


def test_tables_and_pictures(result):
    first, beyond = ARTEFACT.tables(result)
    assert [row[0] for row in first.rows] == ["Normal", "Cauchy", "Gumbel", "Laplace", "LogNormal"]
    assert first.rows[0][1].endswith("(6.3430)")
    assert len(beyond.columns) == 3 + len(BEYOND) == len(beyond.rows[0])
    (picture,) = ARTEFACT.pictures(result)
    assert [ax.get_title() for ax in picture.figure.axes] == [row[0] for row in first.rows]
    line = picture.figure.axes[0].lines[1]
    assert list(line.get_ydata()) == result["curves"]["normal"]["transformer"]["mean"]


def test_the_full_protocol_trains_first():
    first = list(ARTEFACT.pieces(Scope(full=True)))[:3]
    assert first == ["training", "training-printed", "normal"]
