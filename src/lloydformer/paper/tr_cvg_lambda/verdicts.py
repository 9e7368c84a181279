"""The verdicts on fig:tr-cvg-lambda, sentence by sentence."""

from collections.abc import Sequence
from statistics import median

from lloydformer.paper.artefact import Record
from lloydformer.paper.tr_cvg_lambda.settings import HIGH, LOW
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.training_curves_verdicts import (
    AHEAD,
    by_trials,
    ends,
    medians,
    trials,
    unable,
)
from lloydformer.paper.verdict import Verdict, claim, judged, together

_TEXT = "asec:trf-train"
MATCH = 1.02
"""A setting matches a Lloyd step if its median is below this."""


def verdicts(result: Record) -> Sequence[Verdict]:
    """The sentences of the text in their order."""
    return [*_low(result), _high(result), _farther(result["squared_distances"]), _ablation(result)]


def _low(result: Record) -> list[Verdict]:
    smooth, sharp = LOW[:2], LOW[2:]
    return [
        claim(
            "With low dimensionality data with d=4 in fig:tr-cvg-lambda-d4, we see that training "
            "is not able to match the performance of Lloyd's algorithm for λ ∈ {1, 0.25}, "
            "highlighting the mismatch between the desired k-means objective and its smoothed "
            "counterpart.",
            _TEXT, _medians(result, smooth),
            by_trials(result, all(min(ends(result, one)) > 1 for one in smooth)), trials(result),
        ),
        claim(
            "However, for λ ∈ {0.14, 0.1}, we see that the training is able to obtain single-layer "
            "transformer weights that allow it to outperform single-step Lloyd's algorithm by the "
            "significant margin; note that the vertical axis is on a logarithmic scale.",
            _TEXT, _medians(result, sharp),
            by_trials(result, all(_is_ahead(ends(result, one)) for one in sharp)),
            f"Every trial is below 1; a median below {AHEAD:g} counts as significant.",
        ),
    ]  # fmt: skip


def _is_ahead(each: Sequence[float]) -> bool:
    return max(each) < 1 and median(each) < AHEAD


def _high(result: Record) -> Verdict:
    middle = [median(ends(result, one)) for one in HIGH]
    return claim(
        "For higher dimensions with d = 32 in fig:tr-cvg-lambda-d32, we see that the training is "
        "able to find single-layer transformer weights that match or outperform single-step "
        "Lloyd's algorithm for all values of λ.",
        _TEXT, _medians(result, HIGH), by_trials(result, max(middle) < MATCH),
        f"A median below {MATCH:g} counts as a match.",
    )  # fmt: skip


def _farther(squares: Record) -> Verdict:
    return claim(
        "This is because the pairwise Euclidean distances increase on average as d increases since "
        "we assume that the samples to be clustered were translated and scaled to the hypercube "
        "[0,1]^d.",
        _TEXT, f"mean squared distance {squares['4']:.2f} at d = 4, {squares['32']:.2f} at d = 32",
        judged(squares["32"] > squares["4"]),
        "That distances increase is measured; that this is the reason is not.",
    )  # fmt: skip


def _ablation(result: Record) -> Verdict:
    words, answer = unable(result, LOW + HIGH)
    fall = _last_fall(result, "ablation")
    names = [f"d = {one.n_features}, λ = {one.temperature:g}" for one in LOW + HIGH]
    return claim(
        "The results in fig:tr-cvg-lambda also show that, while the training converges, the "
        "relative validation loss of the transformer with d_emb = d indicates that the trained "
        "transformer model is unable to match the performance of Lloyd's algorithm, indicating "
        "that the additional dimensions in our proposed token embedding is somewhat essential for "
        "the model to be able to match Lloyd's algorithm.",
        _TEXT,
        f"{words}; the loss falls by up to {100 * fall:.1f} % in the last 2000 steps",
        together(answer, by_trials(result, fall < 0.02)),
        f"The loss of the layer with d_emb = d + k falls by up to "
        f"{100 * _last_fall(result, 'proposed'):.1f} %. Medians with d_emb = d: "
        f"{medians(result, LOW + HIGH, names, 'ablation')}.{_better(result)}",
    )  # fmt: skip


def _better(result: Record) -> str:
    """The settings in which the ablation is better than the proposed layer, in words."""
    both = {s: [median(ends(result, s, w)) for w in ("ablation", "proposed")] for s in LOW + HIGH}
    return "".join(
        f" At d = {s.n_features}, λ = {s.temperature:g} it is better than the layer with d + k "
        f"({ablation:.3f} against {proposed:.3f})."
        for s, (ablation, proposed) in both.items()
        if ablation < proposed
    )


def _last_fall(result: Record, which: str) -> float:
    """By how much the median loss still falls in the last fifth of the training, at most."""
    curves = [result["curves"][one.name][which]["loss"][1] for one in LOW + HIGH]
    return max(middle[4 * len(middle) // 5 - 1] / middle[-1] - 1 for middle in curves)


def _medians(result: Record, settings: Sequence[TrainingSetting]) -> str:
    return medians(result, settings, [f"λ = {one.temperature:g}" for one in settings])
