"""fig:lrn-weights: measures computed by hand, and claims that can fail."""

from copy import deepcopy

import pytest
import torch

from lloydformer.learning.pretrained import load
from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.attention_heads import (
    head_matrices,
)
from lloydformer.paper.lrn_weights import dominances, dominant_heads, read_matrix, similarity
from lloydformer.paper.training_runs import PRINTED, load_layers
from lloydformer.paper.verdict import Answer, Kind
from lloydformer.plots.palette import SIGNED_WORDS

ARTEFACT = load_artefact("lrn-weights")


@pytest.fixture(scope="module")
def made():
    pieces = ARTEFACT.pieces(Scope())
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def result(made):
    return deepcopy(made)


def wrong(result, answer: Answer) -> list[int]:
    """The claims that do not hold, all with this answer."""
    claims = [v for v in ARTEFACT.verdicts(result) if v.kind is Kind.CLAIM]
    assert {claim.answer for claim in claims} <= {Answer.HOLDS, answer}
    return [n for n, claim in enumerate(claims) if claim.answer is answer]


def test_similarity_by_hand():
    built = torch.diag(torch.tensor([1.0, 1.0, 0.0])).double()
    learned = torch.tensor([[4.0, 1.0, 0.0], [1.0, 4.0, 0.0], [0.0, 0.0, 6.0]]).double()
    # norms sqrt(70) and sqrt(2), product 8; in the block 4 against 1; 32 of 70
    expected = {"cosine": 8 / 140**0.5, "dominance": 4.0, "share": 32 / 70}
    assert similarity(learned, built) == pytest.approx(expected, abs=1e-4)
    assert similarity(-built - 1e-3, built)["cosine"] == pytest.approx(-1, abs=1e-2)


def test_all_points_of_the_text_hold_for_the_layer_in_the_package(result):
    assert wrong(result, Answer.FAILS) == []
    value = head_matrices(load("d32-k10").circuit())["encoder_self"]["V"][:32, :32]
    known = float((value * torch.eye(32)).sum() / value.norm() / 32**0.5)
    assert ARTEFACT.verdicts(result)[3].here.endswith(f"of the position {known:.2f}")
    assert len(result["rows"]) == 4 * 4 + 1


@pytest.mark.parametrize(
    ("name", "change", "broken"),
    [
        ("QtK_1", {"dominance": 1.0}, [0]),
        ("QtK_3", {"dominance": 9.0}, [0, 1]),
        ("K_4", {"cosine": -0.9}, [0]),
        ("V_3", {"cosine": 0.1}, [2]),
        ("V_4", {"cosine": -0.9}, [2]),
        ("V_1", {"cosine": 0.8}, [3]),
        ("V_2", {"cosine": 0.8}, [3]),
        ("V_2 and position", {"dominance": 1.0}, [3]),
    ],
)
def test_claims_can_fail_with_several_layers_and_are_undecided_with_one(
    result, name, change, broken
):
    result["rows"][name] |= change
    assert wrong(result, Answer.UNDECIDED) == broken
    result["others"] = [deepcopy(result["rows"])]
    assert wrong(result, Answer.FAILS) == broken


def test_other_layers_are_those_of_the_package_and_new_ones(result):
    last = ARTEFACT.verdicts(result)[-2]
    assert (last.kind, last.answer) == (Kind.BEYOND, None)
    assert result["shipped"]["d32-k10"] == dominances(result["rows"])
    counted = [
        name for name, found in result["shipped"].items() if dominant_heads(found) == [1, 2, 4]
    ]
    assert len(result["shipped"]) == 7
    assert last.here == f"4 of the 7 layers in the package have them: {', '.join(counted)}"
    assert "depends on the size" in last.note
    other = deepcopy(result["rows"])
    other["QtK_2"]["dominance"] = 1.0
    result["others"] = [other]
    assert ARTEFACT.verdicts(result)[-2].here.endswith("; of those trained again 1 of 2")


def test_the_model_of_the_text_is_looked_at_as_well(result):
    last = ARTEFACT.verdicts(result)[-1]
    assert last.here.startswith("yes, in 1 of 1 layers: dominance ")
    (found,) = load_layers(Scope(), PRINTED)
    assert found.settings == PRINTED.settings
    by_seed = found.card["trained"]["relative_objective_by_seed"]
    assert min(by_seed, key=by_seed.get) == str(found.run.seed)
    result["printed"][0]["QtK_1"]["dominance"] = 1.0
    assert ARTEFACT.verdicts(result)[-1].here.startswith("no: dominance 1.0, ")


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert len(table.rows) == 17
    (picture,) = ARTEFACT.pictures(result)
    assert SIGNED_WORDS in picture.caption
    axes = picture.figure.axes
    assert len(axes) == 32
    assert axes[0].get_title() == "$Q_1$ [Thm]"
    assert axes[7].get_title() == r"$Q_1^\top K_1$ [Lrn]"
    shown = torch.as_tensor(axes[7].images[0].get_array())
    torch.testing.assert_close(shown, read_matrix(result, "encoder_cross", "QtK", "lrn"))
    known = head_matrices(load("d32-k10").circuit())["encoder_cross"]["QtK"]
    assert (shown - known).norm() < 0.01 * known.norm()
