"""Heads as values, and their attention."""

import math
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Reach, Softmax
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
    names = {"query", "key", "value", "query_separated", "key_separated"}
    assert set(dict(attention.named_buffers())) == names
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


@dataclass(frozen=True)
class Halves:
    """An activation with what a head needs and nothing else: half of the best, half of all."""

    short = "HA"
    symbol = "½"

    def __call__(self, scores, context=None):
        best = LimitingSoftmax("first")(scores)
        return best / 2 + 1 / (2 * scores.shape[-1])


def test_a_head_runs_an_activation_that_cannot_separate_clusters():
    attention = Attention(replace(CROSS, activation=Halves()), SPACE)
    assert attention(POINTS, CENTERS).tolist() == [[0, 0.75, 0.25], [0, 0.25, 0.75]]
    base = recipes.lloyd()
    recipe = replace(base, encoder_cross=replace(base.encoder_cross, activation=Halves()))
    assert recipe.separation(Reach(1.0, 1.0), n_clusters=2, eps=1e-16) == 0


def test_clusters_cannot_be_separated_without_knowing_by_how_much():
    base = recipes.trimmed()
    with pytest.raises(ValueError, match=r"decoder_cross: Halves\(\) has no lowering"):
        replace(base, decoder_cross=replace(base.decoder_cross, activation=Halves()))
    given = replace(base.decoder_cross, activation=Halves(), separation=5.0)
    assert replace(base, decoder_cross=given).separation(Reach(1.0, 1.0), 2, 1e-16) == 5.0


TRY = """
from dataclasses import dataclass, replace
import lloydformer as lf
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.scores import Euclidean
@dataclass(frozen=True)
class Mine:
    def __call__(self, *scores): return scores[0]
head = lf.recipes.lloyd().encoder_cross
for slot, part in (("activation", Mine()), ("activation", None), ("activation", Softmax),
                   ("score", Mine()), ("score", "dot"), ("score", Euclidean)):
    try: print(replace(head, **{slot: part}))
    except ValueError as error: print(error)
"""
COMPLAINTS = (
    "activation: found Mine(), which has no short (its name in tables, a text), no symbol (its",
    "activation: found None, which has no short (its name in tables, a text), no symbol (its sign "
    "in equations, a text), no __call__ ((scores, context) -> weights of the keys, the last axis);",
    "activation: found <class 'lloydformer.circuits.activations.dense.Softmax'>, a class; pass an",
    "score: found Mine(), which has no symbol (its sign in tables and equations, a text); pass a "
    "part, for example Euclidean(), or add what is missing",
    "score: found 'dot', which has no symbol",
    "score: found <class 'lloydformer.circuits.scores.Euclidean'>, a class; pass an instance, Eucl",
)


def test_a_part_that_lacks_something_is_refused_with_what_it_lacks():
    """In a process without type checks, as users have it."""
    found = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, check=True)
    for line, complaint in zip(found.stdout.splitlines(), COMPLAINTS, strict=True):
        assert line.startswith(complaint)
