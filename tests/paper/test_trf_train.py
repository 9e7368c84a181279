"""fig:trf-train: panels by start, embedding and size, and claims that can fail."""

from copy import deepcopy

import pytest

from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.paper_numbers import row_names
from lloydformer.paper.training_runs import ABLATION, load_layers
from lloydformer.paper.trf_train import count_tasks
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("trf-train")


@pytest.fixture(scope="module")
def result():
    pieces = ARTEFACT.pieces(Scope(trials=4))
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def as_printed(result):
    """The result with the numbers of the paper's text, and measured ones for greedy k-means++."""
    found = deepcopy(result)
    rows = found["rows"]
    for name, lloyd, transformer in (
        ("random init", 5.25, 5.0),
        ("random init, d_emb=d", 5.25, 5.35),
        ("k-means++ init", 4.95, 4.85),
        ("greedy k-means++ init", 4.67, 4.69),
    ):
        rows[name] |= {"lloyd": lloyd, "transformer": transformer, "error": 0.01}
    for row in rows["n in 128,256,1024,2048"].values():
        row |= {"lloyd": 5.25, "transformer": 5.0, "error": 0.01}
    for curves in found["curves"].values():
        for who in ("lloyd", "transformer"):
            curves[who]["error"] = [0.01] * 21
    return found


def answers(result, kind: Kind) -> list[Answer | None]:
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is kind]


def wrong(result, kind: Kind, answer: Answer = Answer.FAILS) -> list[int]:
    """The places of verdicts that do not hold, all with this answer."""
    found = answers(result, kind)
    assert set(found) <= {Answer.HOLDS, answer}
    return [place for place, one in enumerate(found) if one is answer]


def test_rows_have_the_keys_of_the_paper(result):
    assert set(row_names("trf-train")) < set(result["rows"])
    assert list(result["rows"]["n in 128,256,1024,2048"]) == ["128", "256", "512", "1024", "2048"]
    assert result["sizes"]["512"] == result["curves"]["random init"]
    assert "best_of_20" in result["rows"]["greedy k-means++ init"]


def test_panels_with_512_points_have_the_same_tasks(result):
    rows = result["rows"]
    assert rows["random init"]["lloyd"] == rows["random init, d_emb=d"]["lloyd"]
    assert rows["random init"]["transformer"] != rows["random init, d_emb=d"]["transformer"]
    start = [rows[name]["initial"] for name in list(rows)[1:4]]
    assert start == sorted(start, reverse=True)  # random, plain, greedy


def test_the_papers_numbers_fulfil_its_claims_and_greedy_starts_are_beyond_them(as_printed):
    assert answers(as_printed, Kind.CLAIM) == [Answer.HOLDS] * 6
    assert answers(as_printed, Kind.NUMBER) == [Answer.HOLDS] * 4
    assert answers(as_printed, Kind.BEYOND) == [None]
    assert ARTEFACT.verdicts(as_printed)[-1].here.endswith(": the order turns")
    as_printed["rows"]["greedy k-means++ init"]["transformer"] = 4.6
    assert ARTEFACT.verdicts(as_printed)[-1].here.endswith(": the order stays")


@pytest.mark.parametrize(
    ("name", "change", "claims", "numbers"),
    [
        ("random init", {"transformer": 5.29}, [0], [1]),
        ("random init, d_emb=d", {"transformer": 5.2}, [2], [2]),
        ("k-means++ init", {"lloyd": 5.35, "transformer": 4.85}, [3], []),
        ("k-means++ init", {"lloyd": 5.1}, [3], []),
        ("k-means++ init", {"transformer": 5.1}, [4, 5], [3]),
    ],
)
def test_claims_and_numbers_can_fail(as_printed, name, change, claims, numbers):
    as_printed["rows"][name] |= change
    assert wrong(as_printed, Kind.CLAIM) == claims
    assert wrong(as_printed, Kind.NUMBER) == numbers


def test_what_is_within_two_standard_errors_is_undecided(as_printed):
    as_printed["rows"]["random init"]["error"] = 0.2
    assert wrong(as_printed, Kind.CLAIM, Answer.UNDECIDED) == [0]
    as_printed["rows"]["k-means++ init"]["transformer"] = 4.785
    assert wrong(as_printed, Kind.NUMBER, Answer.UNDECIDED) == [3]
    as_printed["rows"]["random init"]["error"] = 0.01
    as_printed["rows"]["k-means++ init"]["lloyd"] = 4.993  # below 5.0, by less than an error
    assert wrong(as_printed, Kind.CLAIM, Answer.UNDECIDED) == [3]


def test_the_claim_of_sizes_can_fail(as_printed):
    as_printed["rows"]["n in 128,256,1024,2048"]["2048"]["transformer"] = 5.3
    assert wrong(as_printed, Kind.CLAIM) == [1]


def test_the_ablation_has_no_scratch_dimensions():
    (found,) = load_layers(Scope(), ABLATION)
    assert found.settings == ABLATION.settings
    assert found.settings.codes is None
    assert found.layer.dim == 32
    assert found.card["scores"]["relative_objective"] > 1.0
    by_seed = found.card["trained"]["relative_objective_by_seed"]
    assert min(by_seed, key=by_seed.get) == str(found.run.seed)


def test_quick_runs_have_fewer_large_tasks():
    assert [count_tasks(n, Scope()) for n in (512, 1024, 2048)] == [160, 80, 40]
    assert [count_tasks(n, Scope(trials=320)) for n in (512, 1024, 2048)] == [320, 160, 80]
    assert count_tasks(2048, Scope(full=True)) == 320
    assert count_tasks(2048, Scope(trials=1)) == 1


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert len(table.rows) == 4 + 5
    assert all(len(row) == len(table.columns) for row in table.rows)
    starts, sizes = ARTEFACT.pictures(result)
    assert len(starts.figure.axes) == 4
    assert len(sizes.figure.axes) == 5
    assert sizes.figure.axes[0].get_title() == "n = 128"
