"""fig:lrn-attn-map: maps computed by hand, and claims that can fail."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.attention_heads import HEADS, parse_matrix
from lloydformer.paper.lrn_attn_map import similarity
from lloydformer.paper.verdict import Answer, Kind

ARTEFACT = load_artefact("lrn-attn-map")


@pytest.fixture(scope="module")
def made():
    pieces = ARTEFACT.pieces(Scope(trials=5))
    return ARTEFACT.combine({name: piece() for name, piece in pieces.items()})


@pytest.fixture
def result(made):
    return deepcopy(made)


def undecided(result) -> list[int]:
    """Claims that do not hold: one layer cannot refute what the paper saw in its own."""
    claims = [v for v in ARTEFACT.verdicts(result) if v.kind is Kind.CLAIM]
    assert {claim.answer for claim in claims} <= {Answer.HOLDS, Answer.OPEN, Answer.UNDECIDED}
    return [n for n, claim in enumerate(claims) if claim.answer is Answer.UNDECIDED]


def test_similarity_by_hand():
    learned = torch.tensor([[0.5, 0.5], [0.25, 0.75]]).double()
    found = similarity(learned, torch.eye(2).double())
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    expected = {
        "keys": (2 + np.exp(entropy)) / 2,
        "built_keys": 1.0,
        "largest": 0.625,
        "agreement": 1.0,
        "mass": 0.625,
        "distance": 0.375,
        "of": 2,
    }
    assert found == pytest.approx(expected)


def test_four_tasks_are_saved_with_the_shapes_of_the_caption(result):
    assert len(result["shown"]) == 4
    assert result["n_tasks"] == 5
    shapes = {
        head: tuple(parse_matrix(rows).shape) for head, rows in result["shown"][0]["lrn"].items()
    }
    assert shapes == {
        "encoder_cross": (30, 10),
        "encoder_self": (64, 64),
        "decoder_cross": (10, 30),
        "decoder_self": (10, 10),
    }
    kept = parse_matrix(result["shown"][2]["thm"]["encoder_self"])
    torch.testing.assert_close(kept, torch.eye(64).double() / 8, atol=0.01, rtol=0)


def test_claims_hold_and_a_diagonal_to_the_eye_depends_on_the_measure(result):
    assert undecided(result) == []
    diagonal = ARTEFACT.verdicts(result)[1]
    assert diagonal.answer is Answer.OPEN
    assert diagonal.here.endswith("total variation 0.96 and 0.01")
    row = result["rows"]["encoder_self"]
    assert row["agreement"] > 0.9
    assert row["mass"] < 0.1
    weight = ARTEFACT.verdicts(result)[4]
    assert weight.kind is Kind.BEYOND
    row["distance"] = 0.1
    assert ARTEFACT.verdicts(result)[1].answer is Answer.HOLDS
    assert weight.kind is Kind.BEYOND
    assert weight.here.startswith(f"encoder {row['mass']:.2f}, decoder 0.99")


@pytest.mark.parametrize(
    ("head", "change", "broken"),
    [
        ("encoder_cross", {"keys": 6.0}, [0]),
        ("decoder_cross", {"keys": 300.0}, [0]),
        ("encoder_self", {"agreement": 0.5}, [1]),
        ("decoder_self", {"agreement": 0.5}, [1]),
        ("encoder_cross", {"distance": 0.1}, [2]),
        ("encoder_cross", {"distance": 0.9}, [3]),
    ],
)
def test_claims_can_be_wrong(result, head, change, broken):
    result["rows"][head] |= change
    assert undecided(result) == broken


def test_tables_and_pictures(result):
    (table,) = ARTEFACT.tables(result)
    assert [row[0] for row in table.rows] == [head.replace("_", " ") for head in HEADS]
    (picture,) = ARTEFACT.pictures(result)
    axes = picture.figure.axes
    assert len(axes) == 4 * 8
    assert axes[1].get_title() == "encoder cross\n30 × 10\n[Lrn]"
    assert axes[8].get_ylabel() == "task 2"
