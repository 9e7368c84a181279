"""Recipes whose parts do not fit are refused when they are made, with the reason."""

from dataclasses import replace

import pytest

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Linear, Softmax, Sparsemax
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.tokens import Binary, lifted, plain

LLOYD, DOT, LIFTED = recipes.lloyd(), recipes.lloyd_dot(), recipes.robust_lifted()
BINARY, TRIMMED = recipes.lloyd_binary(), recipes.trimmed()


def changed(recipe, slot, **parts):
    return replace(recipe, **{slot: replace(getattr(recipe, slot), **parts)})


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
    "linear attention on Euclidean scores": (
        lambda: changed(TRIMMED, "decoder_cross", activation=Linear()),
        "decoder_cross: linear attention on negative scores favours far keys; use soft-max",
    ),
    "linear attention in the encoder": (
        lambda: changed(LLOYD, "encoder_cross", activation=Linear()),
        "encoder_cross: linear attention on negative scores",
    ),
    "linear attention on affinities": (
        lambda: changed(LIFTED, "decoder_cross", activation=Linear()),
        "decoder_cross: linear attention on negative scores",
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
