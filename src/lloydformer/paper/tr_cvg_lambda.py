"""fig:tr-cvg-lambda: how training converges, by the temperature of the smoothed loss."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.tasks import Tasks
from lloydformer.paper import training_curves as curves
from lloydformer.paper.artefact import Picture, Piece, Record, Scope
from lloydformer.paper.training_curves import AHEAD, TrainingSetting, final_losses
from lloydformer.paper.training_runs import TEMPERATURES
from lloydformer.paper.verdict import Verdict, claim, judge, worst_of

LABEL = "tr-cvg-lambda"
# All temperatures for d = 4 (LOW) and for d = 32 (HIGH).
LOW = tuple(TrainingSetting(4, 6, temperature) for temperature in TEMPERATURES)
HIGH = tuple(TrainingSetting(32, 6, temperature) for temperature in TEMPERATURES)
# Chosen by hand: a median below MATCH matches a Lloyd step, and a training has converged if the
# median loss falls by less than CONVERGED in its last fifth.
MATCH, CONVERGED = 1.02, 0.02


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each training group, then the distances that the text mentions."""
    return curves.log_pieces(LOW + HIGH, scope) | {"distances": partial(measure_distances, scope)}


def measure_distances(scope: Scope) -> Record:
    """Return the mean squared distance of two points of a task, by d."""
    means = {}
    for d in (4, 32):
        points = draw_unseen(Tasks(d, 6), n_tasks=16, seed=scope.seed).points
        n = points.shape[2]  # a point has distance 0 to itself, which the mean leaves out
        total = expanded_distances(points, points).double().sum(dim=(-2, -1)).mean()
        means[str(d)] = round(float(total) / (n * (n - 1)), 4)
    return means


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return the curves and final values of all settings, and the squared distances."""
    return {**curves.combine_logs(outputs, LOW + HIGH), "squared_distances": outputs["distances"]}


def pictures(result: Record) -> Sequence[Picture]:
    """Return a figure for d = 4 and one for d = 32, with one column for each temperature."""
    found = []
    for settings in (LOW, HIGH):
        d = settings[0].n_features
        titles = {rf"$\lambda = {s.temperature:g}$": s for s in settings}
        found.append(curves.draw_curves(result, titles, f"{LABEL}-d{d}", f"d = {d}, k = 6"))
    return found


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentences of the text in their order."""
    smooth, sharp = LOW[:2], LOW[2:]  # the text judges λ of 1 and 0.25 apart from 0.14 and 0.1
    sharp_losses = [final_losses(result, setting) for setting in sharp]
    squares = result["squared_distances"]
    return [
        claim(
            "tr-cvg-lambda.smooth-losses",
            _medians(result, smooth),
            # not able to match: no trial is below 1
            curves.judge_trials(result, all(min(final_losses(result, one)) > 1 for one in smooth)),
            curves.format_trials(result),
        ),
        claim(
            "tr-cvg-lambda.sharp-losses",
            _medians(result, sharp),
            curves.judge_trials(
                result, all(max(each) < 1 and median(each) < AHEAD for each in sharp_losses)
            ),
            f"Every trial is below 1; a median below {AHEAD:g} counts as significant.",
        ),
        claim(
            "tr-cvg-lambda.many-dimensions",
            _medians(result, HIGH),
            curves.judge_trials(
                result, max(median(final_losses(result, one)) for one in HIGH) < MATCH
            ),
            f"A median below {MATCH:g} counts as a match.",
        ),
        claim(
            "tr-cvg-lambda.distances",
            f"mean squared distance {squares['4']:.2f} at d = 4, {squares['32']:.2f} at d = 32",
            judge(squares["32"] > squares["4"]),
        ),
        judge_embedding(result),
    ]


def judge_embedding(result: Record) -> Verdict:
    """Return the verdict on the sentence about the layer without the k scratch dimensions."""
    words, answer = curves.judge_ablation(result, LOW + HIGH)
    fall = _last_fall(result, "ablation")
    names = {f"d = {s.n_features}, λ = {s.temperature:g}": s for s in LOW + HIGH}
    better = ""
    for name, setting in names.items():
        ablation, proposed = (
            median(final_losses(result, setting, which)) for which in ("ablation", "proposed")
        )
        if ablation < proposed:
            better += (
                f" At {name} it is better than the layer with d + k ({ablation:.3f} against "
                f"{proposed:.3f})."
            )
    return claim(
        "tr-cvg-lambda.reduced-embedding",
        f"{words}; the loss falls by up to {100 * fall:.1f} % in the last 2000 steps",
        worst_of(answer, curves.judge_trials(result, fall < CONVERGED)),
        f"The loss of the layer with d_emb = d + k falls by up to "
        f"{100 * _last_fall(result, 'proposed'):.1f} %. Medians with d_emb = d: "
        f"{curves.format_medians(result, names, 'ablation')}.{better}",
    )


def _last_fall(result: Record, which: str) -> float:
    """Return by how much the median loss still falls in the last fifth of the training, at most."""
    curves = [result["curves"][one.name][which]["loss"][1] for one in LOW + HIGH]
    return max(middle[4 * len(middle) // 5 - 1] / middle[-1] - 1 for middle in curves)


def _medians(result: Record, settings: Sequence[TrainingSetting]) -> str:
    return curves.format_medians(result, {f"λ = {s.temperature:g}": s for s in settings})


tables = curves.curves_table
