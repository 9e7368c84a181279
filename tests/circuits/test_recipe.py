"""Recipes are values: replace parts, compare, separation and gap; parts that do not fit."""

from dataclasses import replace

import pytest

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import (
    Gumbel,
    LimitingSoftmax,
    Linear,
    Reach,
    Softmax,
    Sparsemax,
)
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.circuits.tokens import Binary, lifted, plain

LLOYD, BINARY, LIFTED = recipes.lloyd(), recipes.lloyd_binary(), recipes.robust_lifted()


def changed(recipe, slot, **parts):
    return replace(recipe, **{slot: replace(getattr(recipe, slot), **parts)})


def test_a_new_recipe_is_made_by_replacing_a_part():
    soft = replace(
        LLOYD,
        name="soft",
        encoder_cross=replace(LLOYD.encoder_cross, activation=Softmax(1.0)),
        decoder_cross=replace(LLOYD.decoder_cross, activation=Linear()),
    )
    assert soft == recipes.soft(1.0)


def test_a_replaced_part_clears_what_was_stated_for_the_others():
    mine = replace(LLOYD, name="mine", decoder_cross=recipes.trimmed().decoder_cross)
    assert (mine.algorithm, mine.appendix) == ("", "")
    assert str(mine).splitlines()[0] == "mine: ℓ2-LSMA | ℓ2-LSMA | ⟨,⟩-LSMA | ℓ2-NMA | - | -"
    back = replace(mine, decoder_cross=LLOYD.decoder_cross)  # words do not return by themselves
    assert (back.algorithm, back.appendix) == ("", "")
    again = deserialise(serialise(mine))
    assert (again.algorithm, again.appendix) == ("", "")


def test_words_that_are_given_stay():
    head = recipes.trimmed().decoder_cross
    mine = replace(LLOYD, decoder_cross=head, algorithm="My k-means")
    assert (mine.algorithm, mine.appendix) == ("My k-means", "")
    same = replace(LLOYD, decoder_cross=head, stated=None)
    assert (same.algorithm, same.appendix) == (LLOYD.algorithm, LLOYD.appendix)


def test_a_new_name_for_the_same_parts_keeps_the_words():
    renamed = replace(LLOYD, name="k-means")
    assert (renamed.algorithm, renamed.appendix) == (LLOYD.algorithm, LLOYD.appendix)


def test_recipes_are_equal_by_their_parts_and_hashable():
    assert recipes.trimmed(0.9) == recipes.trimmed(0.9) != recipes.trimmed(0.8)
    assert len({recipes.lloyd(), recipes.lloyd("first"), recipes.lloyd("average")}) == 2


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        LLOYD.name = "other"


def test_heads_are_in_the_order_in_which_they_run():
    assert list(LLOYD.heads) == ["encoder_cross", "encoder_self", "decoder_cross", "decoder_self"]
    assert list(LIFTED.heads)[2] == "affinity"


def test_tie_rule_of_recipes():
    assert recipes.lloyd().ties == "first"
    assert recipes.robust(ties="average").ties == "average"
    assert recipes.soft().ties is None


def test_which_recipes_are_translation_invariant():
    staying = {r.name for r in (*recipes.table(), LIFTED, BINARY) if not r.translation_invariant}
    assert staying == {"spherical"}
    assert not changed(LLOYD, "encoder_cross", score=DotProduct()).translation_invariant


def test_the_separation_is_the_one_given_or_near_its_bound():
    reach = Reach(nearest=7.0, farthest=50.0)
    assert recipes.medoids(3.0).separation(reach, n_clusters=4, eps=1e-16) == 3.0
    assert recipes.robust(0.5).separation(reach, n_clusters=4, eps=1e-16) == (7 + 1 / 0.5) / 2
    assert recipes.trimmed().separation(reach, n_clusters=4, eps=1e-16) == 50
    assert LLOYD.separation(reach, n_clusters=4, eps=1e-16) == 0


def test_averaged_ties_need_k_squared_times_the_separation():
    first, average = recipes.trimmed(), recipes.trimmed(ties="average")
    reach = Reach(9.0, 9.0)
    apart = average.separation(reach, 4, 1e-16)
    assert apart == 2 * 16 * first.separation(reach, 4, 1e-16)
    assert average.gap(apart, 4) == first.gap(first.separation(reach, 4, 1e-16), 4)


def test_a_recipe_with_gumbel_at_a_temperature():
    warm = changed(recipes.medoids(), "decoder_cross", activation=Gumbel(0.5))
    assert "GSM 0.5" in warm.equation()


DOT, TRIMMED = recipes.lloyd_dot(), recipes.trimmed()


REFUSED = {
    "a lifted score on plain tokens": (
        lambda: replace(LLOYD, encoder_cross=DOT.encoder_cross),
        "encoder_cross: it uses half, squared_norm, which these tokens do not have; use lifted",
    ),
    "a head that wipes what is not there": (
        lambda: replace(LLOYD, decoder_self=DOT.decoder_self),
        "decoder_self: it uses half, squared_norm, which these tokens do not have",
    ),
    "affinity without room for it": (
        lambda: replace(DOT, affinity=LIFTED.affinity),
        "affinity: it uses affinity, which these tokens do not have",
    ),
    "a network on plain tokens": (
        lambda: replace(LLOYD, feedforward=Quadratic()),
        "feedforward: it writes half, squared_norm, which these tokens do not have",
    ),
    "lifted tokens without a network": (
        lambda: replace(DOT, feedforward=None),
        "feedforward: lifted tokens need one, which updates their squared norm",
    ),
    "only the tokens lifted": (
        lambda: replace(LLOYD, tokens=lifted()),
        "feedforward: lifted tokens need one",
    ),
    "linear attention with a separation": (
        lambda: changed(TRIMMED, "decoder_cross", activation=Linear()),
        "decoder_cross: linear attention cannot keep clusters apart; use soft-max",
    ),
    "linear attention on affinities": (
        lambda: changed(LIFTED, "decoder_cross", activation=Linear()),
        "decoder_cross: linear attention cannot keep clusters apart; use soft-max",
    ),
    "averaged ties with binary codes": (
        lambda: changed(BINARY, "encoder_cross", activation=LimitingSoftmax("average")),
        "encoder_cross: binary codes cannot hold a point shared by two clusters",
    ),
    "soft assignments with binary codes": (
        lambda: changed(BINARY, "encoder_cross", activation=Softmax()),
        'use LimitingSoftmax(ties="first") or one-hot codes',
    ),
    "a separated decoder with binary codes": (
        lambda: replace(TRIMMED, tokens=plain(Binary())),
        "decoder_cross: binary codes can be distinguished only by limiting soft-max",
    ),
    "a soft decoder with binary codes": (
        lambda: changed(BINARY, "decoder_cross", activation=Sparsemax()),
        "decoder_cross: binary codes can be distinguished only by limiting soft-max",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_unfitting_parts_are_refused_with_the_reason(reason):
    make, complaint = REFUSED[reason]
    with pytest.raises(ValueError) as error:
        make()
    assert complaint in str(error.value)
    assert "(in recipe '" in str(error.value)
