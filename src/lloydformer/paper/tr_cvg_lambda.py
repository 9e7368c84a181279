"""fig:tr-cvg-lambda: how training converges by the temperature of the smoothed loss."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.artefact import Artefact, Claim, Found, Picture, Piece, Table
from lloydformer.paper.convergence import (
    Setting,
    ablation_claim,
    ends,
    gathered,
    groups,
    table,
    trials_claim,
)
from lloydformer.paper.convergence_pictures import figure
from lloydformer.paper.scope import Scope
from lloydformer.paper.trainings import TEMPERATURES, logs

LOW = tuple(Setting(4, 6, temperature) for temperature in TEMPERATURES)
HIGH = tuple(Setting(32, 6, temperature) for temperature in TEMPERATURES)
MATCH = 1.02
"""A median below this matches a Lloyd step."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One for each group that is trained together; then the distances that the text speaks of."""
    trained: dict[str, Piece] = {g.name: partial(logs, g, scope) for g in groups(LOW + HIGH)}
    return trained | {"distances": partial(distances, scope)}


def distances(scope: Scope) -> Found:
    """The mean squared distance of two points of a task, by d."""
    return {str(d): _distance(Tasks(d, 6), scope) for d in (4, 32)}


def _distance(tasks: Tasks, scope: Scope) -> float:
    points = unseen(tasks, n_tasks=16, seed=scope.seed).points
    n = points.shape[2]
    total = expanded_distances(points, points).double().sum(dim=(-2, -1)).mean()
    return round(float(total) / (n * (n - 1)), 4)


def result(found: Mapping[str, Found]) -> Found:
    return {**gathered(found, LOW + HIGH), "squared_distances": found["distances"]}


def claims(result: Found) -> Sequence[Claim]:
    """Sentence by sentence."""
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


def _unable(result: Found, setting: Setting) -> Claim:
    each = ends(result, setting)
    return Claim(
        f"d = 4, lambda = {setting.temperature:g}: training does not match a Lloyd step.",
        "above 1", round(median(each), 4), min(each) > 1, _range(each),
    )  # fmt: skip


def _able(result: Found, setting: Setting) -> Claim:
    each = ends(result, setting)
    return Claim(
        f"d = 4, lambda = {setting.temperature:g}: it outperforms a Lloyd step by a significant "
        "margin.",
        "below 1", round(median(each), 4), max(each) < 1,
        f"{_range(each)} The margin is {100 * (1 - median(each)):.0f} percent.",
    )  # fmt: skip


def _matches(result: Found, setting: Setting) -> Claim:
    each = ends(result, setting)
    middle = median(each)
    words = "" if middle < 1 else f" Matched to within {100 * (middle - 1):.1f} percent."
    return Claim(
        f"d = 32, lambda = {setting.temperature:g}: it matches or outperforms a Lloyd step.",
        "1 or below", round(middle, 4), middle < MATCH, _range(each) + words,
    )  # fmt: skip


def _farther(squares: Found) -> Claim:
    return Claim(
        "Pairwise distances in [0, 1]^d grow with d, so that one lambda smooths less.",
        "larger at d = 32", f"{squares['32']:.2f} at d = 32, {squares['4']:.2f} at d = 4",
        squares["32"] > squares["4"], "Mean squared distance of two points of a task.",
    )  # fmt: skip


def _converges(result: Found, which: str) -> Claim:
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


def tables(result: Found) -> Sequence[Table]:
    return [table(result)]


def pictures(result: Found) -> Sequence[Picture]:
    """Two figures of two rows, as in the paper: d = 4 and d = 32."""
    titles = [rf"$\lambda = {temperature:g}$" for temperature in TEMPERATURES]
    return [
        Picture(
            f"tr-cvg-lambda-d{settings[0].n_features}",
            figure(result, settings, titles),
            f"d = {settings[0].n_features}, k = 6: training loss above, validation objective "
            "relative to one Lloyd step below (dashed: 1); lines are medians and ribbons "
            f"quartiles of {result['n_trials']} trials.",
        )
        for settings in (LOW, HIGH)
    ]


ARTEFACT = Artefact(
    label="tr-cvg-lambda",
    cites=("fig:tr-cvg-lambda",),
    title="Training by the temperature of the loss",
    about=(
        "One layer is trained on tasks of k = 6 clusters with the objective smoothed by lambda = 1 "
        "to 0.1, in 4 and in 32 dimensions; validation is relative to one Lloyd step."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
