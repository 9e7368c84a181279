"""Heads as values, and their attention."""

import math

import pytest
import torch

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Softmax
from lloydformer.circuits.heads import Attention, Head
from lloydformer.circuits.projections import on, separated
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import plain

SPACE = plain().space(1, 2)
CROSS = Head(Euclidean(), LimitingSoftmax(), on(POSITION), on(POSITION), on(ASSIGNMENT))
APART = on(POSITION) + separated(ASSIGNMENT)
POINTS = torch.tensor([[1.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
CENTERS = torch.tensor([[0.0, 1.0, 0.0], [5.0, 0.0, 1.0]])


def test_attention_by_hand():
    """Points at 1 and 4 read the codes of centers at 0 and 5."""
    attention = Attention(CROSS, SPACE)
    assert attention(POINTS, CENTERS).tolist() == [[0, 1, 0], [0, 0, 1]]


def test_intermediates_by_hand():
    seen = {}
    attention = Attention(CROSS, SPACE)
    for name, point in attention.named_children():
        point.register_forward_hook(lambda m, i, out, name=name: seen.update({name: out.tolist()}))
    attention(POINTS, CENTERS)
    assert seen["queries"] == [[1, 0, 0], [4, 0, 0]]
    assert seen["keys"] == [[0, 0, 0], [5, 0, 0]]
    assert seen["scores"] == [[-1, -16], [-16, -1]]
    assert seen["attention"] == [[1, 0], [0, 1]]
    assert seen["values"] == [[0, 1, 0], [0, 0, 1]]
    assert seen["output"] == [[0, 1, 0], [0, 0, 1]]


def test_the_separation_lowers_other_clusters_by_twice_itself():
    """Point 1 is in cluster 0 and at distance 1 of it: -1, and -16 - 2 * 7 from the other."""
    attention = Attention(Head(Euclidean(), Softmax(), APART, APART, on(POSITION)), SPACE)
    scores = []
    attention.scores.register_forward_hook(lambda m, i, out: scores.append(out))
    attention(CENTERS, torch.tensor([[1.0, 1.0, 0.0]]), separation=7.0)
    torch.testing.assert_close(scores[0], torch.tensor([[-1.0], [-16.0 - 14.0]]))


def test_weights_are_buffers_and_not_parameters():
    attention = Attention(Head(Euclidean(), Softmax(), APART, APART, on(POSITION)), SPACE)
    assert set(dict(attention.named_buffers())) == {
        "query", "key", "value", "query_separated", "key_separated",
    }  # fmt: skip
    assert not list(attention.parameters())


def test_weight_returns_the_matrix_with_its_separation():
    attention = Attention(Head(Euclidean(), Softmax(), APART, APART, on(POSITION)), SPACE)
    weight = attention.weight("query", torch.zeros(1, dtype=torch.float32), separation=9.0)
    assert weight.dtype == torch.float32
    assert weight.diag().tolist() == [1, 3, 3]
    assert attention.weight("value", weight, separation=9.0).diag().tolist() == [1, 0, 0]


def test_changed_weights_change_the_output():
    attention = Attention(CROSS, SPACE)
    attention.value.mul_(3)
    assert attention(POINTS, CENTERS).tolist() == [[0, 3, 0], [0, 0, 3]]


@pytest.mark.parametrize("separation", [-1.0, math.nan, math.inf])
def test_a_bad_separation_is_refused(separation):
    with pytest.raises(ValueError, match=f"separation: found {separation!r}; pass None"):
        recipes.trimmed(separation=separation)


def test_subspaces_and_separation_of_a_head():
    assert CROSS.subspaces == {POSITION, ASSIGNMENT}
    assert not CROSS.separated
    assert recipes.trimmed().decoder_cross.separated


def test_printing():
    assert str(CROSS) == "ℓ2-LSMA (∞; Q = I[x], K = I[x], V = I[y])"
    assert Head(DotProduct(), Softmax(), APART, APART, APART).cell == "⟨,⟩-SMA"
