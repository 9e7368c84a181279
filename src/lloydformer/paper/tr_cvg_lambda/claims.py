"""The claims of fig:tr-cvg-lambda, sentence by sentence."""

from collections.abc import Sequence
from statistics import median

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.tr_cvg_lambda.settings import HIGH, LOW
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.training_curves_claims import ablation_claim, ends, trials_claim

MATCH = 1.02
"""A setting matches a Lloyd step if its median is below this."""


def claims(result: Record) -> Sequence[Claim]:
    """The sentences of the text in their order."""
    return [
        *(_unable(result, setting) for setting in LOW[:2]),
        *(_able(result, setting) for setting in LOW[2:]),
        *(_matches(result, setting) for setting in HIGH),
        _farther(result["squared_distances"]),
        *(_converges(result, which) for which in ("proposed", "ablation")),
        ablation_claim(
            result, LOW + HIGH,
            "With d_emb = d the trained transformer is unable to match Lloyd's algorithm.",
        ),
        trials_claim(result),
    ]  # fmt: skip


def _unable(result: Record, setting: TrainingSetting) -> Claim:
    each = ends(result, setting)
    return Claim(
        f"d = 4, lambda = {setting.temperature:g}: training does not match a Lloyd step.",
        "above 1", round(median(each), 4), min(each) > 1, _range(each),
    )  # fmt: skip


def _able(result: Record, setting: TrainingSetting) -> Claim:
    each = ends(result, setting)
    return Claim(
        f"d = 4, lambda = {setting.temperature:g}: it outperforms a Lloyd step by a significant "
        "margin.",
        "below 1", round(median(each), 4), max(each) < 1,
        f"{_range(each)} The margin is {100 * (1 - median(each)):.0f} percent.",
    )  # fmt: skip


def _matches(result: Record, setting: TrainingSetting) -> Claim:
    each = ends(result, setting)
    middle = median(each)
    words = "" if middle < 1 else f" Matched to within {100 * (middle - 1):.1f} percent."
    return Claim(
        f"d = 32, lambda = {setting.temperature:g}: it matches or outperforms a Lloyd step.",
        "1 or below", round(middle, 4), middle < MATCH, _range(each) + words,
    )  # fmt: skip


def _farther(squares: Record) -> Claim:
    return Claim(
        "Pairwise distances in [0, 1]^d grow with d, so that one lambda smooths less.",
        "larger at d = 32", f"{squares['32']:.2f} at d = 32, {squares['4']:.2f} at d = 4",
        squares["32"] > squares["4"], "Mean squared distance of two points of a task.",
    )  # fmt: skip


def _converges(result: Record, which: str) -> Claim:
    """By how much the median loss still falls in the last fifth of the training."""
    falls = []
    for setting in LOW + HIGH:
        middle = result["curves"][setting.name][which]["loss"][1]
        falls.append(middle[4 * len(middle) // 5 - 1] / middle[-1] - 1)
    word = {"proposed": "d_emb = d + k", "ablation": "d_emb = d"}[which]
    return Claim(
        f"With {word} the training converges.", "converges",
        f"the loss still falls by up to {100 * max(falls):.1f} percent in the last 2000 steps",
        max(falls) < 0.02,
    )  # fmt: skip


def _range(each: Sequence[float]) -> str:
    return f"Trials from {min(each):.3f} to {max(each):.3f}."
