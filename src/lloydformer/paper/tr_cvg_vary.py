"""fig:tr-cvg-vary: how training converges by the number of clusters and of dimensions."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

import torch

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.objective import smoothed_objective
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
from lloydformer.paper.trainings import logs

BY_CLUSTERS = tuple(Setting(32, k) for k in (6, 10, 16, 25))
BY_FEATURES = tuple(Setting(d, 6) for d in (4, 8, 16, 32))
ALL = tuple(dict.fromkeys(BY_CLUSTERS + BY_FEATURES))


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One for each group that is trained together; then the gap that the text speaks of."""
    trained: dict[str, Piece] = {g.name: partial(logs, g, scope) for g in groups(ALL)}
    return trained | {"gaps": partial(gaps, scope)}


def gaps(scope: Scope) -> Found:
    """By how much the smoothed objective exceeds the exact one, after a Lloyd step."""
    return {one.name: _gap(one, scope) for one in ALL}


def _gap(setting: Setting, scope: Scope) -> float:
    tasks = Tasks(setting.n_features, setting.n_clusters)
    points, centers = unseen(tasks, n_tasks=64, seed=scope.seed)
    zero = torch.zeros(1, dtype=torch.int64)
    centers = lloyd_step(points, centers, zero, zero[0])
    smoothed = smoothed_objective(points, centers, setting.temperature)
    exact = smoothed_objective(points, centers, smoothing="exact")
    return round(float((smoothed / exact - 1).mean()), 5)


def result(found: Mapping[str, Found]) -> Found:
    return {**gathered(found, ALL), "gaps": found["gaps"]}


def claims(result: Found) -> Sequence[Claim]:
    """Sentence by sentence."""
    return [
        *(_ahead(result, setting) for setting in BY_CLUSTERS),
        _lost(result),
        _grows(result["gaps"]),
        _explains(result),
        *(_ahead(result, setting) for setting in BY_FEATURES),
        ablation_claim(
            result, ALL,
            "With d_emb = d the transformer is unable to match Lloyd's algorithm, for all k and d.",
        ),
        trials_claim(result),
    ]  # fmt: skip


def _ahead(result: Found, setting: Setting) -> Claim:
    each = ends(result, setting)
    below = sum(end < 1 for end in each)
    return Claim(
        f"d = {setting.n_features}, k = {setting.n_clusters}: the trained layer outperforms a "
        "Lloyd step by a significant margin.",
        "below 1", round(median(each), 4), median(each) < 0.95,
        f"{below} of {len(each)} trials below 1, from {min(each):.3f} to {max(each):.3f}.",
    )  # fmt: skip


def _lost(result: Found) -> Claim:
    """Stable but for k = 25."""
    above = {s: [end for end in ends(result, s) if end > 1] for s in ALL}
    last = above[BY_CLUSTERS[-1]]
    others = sum(len(found) for s, found in above.items() if s != BY_CLUSTERS[-1])
    words = ", ".join(f"{end:.2f}" for end in last) or "none"
    return Claim(
        "This is quite stable, though with k = 25 a couple of trials were unable to learn useful "
        "weights.",
        "a couple of 10 trials, with k = 25 only",
        f"{len(last)} of {result['n_trials']} trials with k = 25 above 1 ({words}), {others} with "
        "any other k or d",
        bool(last) and not others,
    )  # fmt: skip


def _grows(found: Found) -> Claim:
    values = [found[s.name] for s in BY_CLUSTERS]
    return Claim(
        "With lambda fixed, the gap between smoothed and exact objective grows with k.",
        "grows", ", ".join(f"{100 * value:.1f} %" for value in values),
        values == sorted(values), "For k = 6, 10, 16, 25 at d = 32, of the objective after one "
        "Lloyd step.",
    )  # fmt: skip


def _explains(result: Found) -> Claim:
    """A gap that costs trials at k = 25 would cost more where it is larger."""
    few, many = Setting(4, 6), BY_CLUSTERS[-1]
    gap, larger = result["gaps"][many.name], result["gaps"][few.name]
    lost = [sum(end > 1 for end in ends(result, setting)) for setting in (many, few)]
    fits = (gap < larger) == (lost[0] < lost[1])
    return Claim(
        "That gap is why trials with k = 25 fail.",
        "the reason",
        f"gap {100 * gap:.1f} % and {lost[0]} lost at d = 32, k = 25; gap {100 * larger:.0f} % and "
        f"{lost[1]} lost at d = 4, k = 6",
        fits,
        "" if fits else "Where the gap is far larger, no trial fails: it does not explain this.",
    )


def tables(result: Found) -> Sequence[Table]:
    return [table(result)]


def pictures(result: Found) -> Sequence[Picture]:
    """Two figures of two rows, as in the paper: varying k, and varying d."""
    parts = {
        "clusters": (BY_CLUSTERS, [f"k = {s.n_clusters}" for s in BY_CLUSTERS], "d = 32"),
        "features": (BY_FEATURES, [f"d = {s.n_features}" for s in BY_FEATURES], "k = 6"),
    }
    return [
        Picture(
            f"tr-cvg-vary-{name}",
            figure(result, settings, titles),
            f"{fixed}, lambda = 0.1, varying {name}: training loss above, validation objective "
            "relative to one Lloyd step below (dashed: 1); lines are medians and ribbons "
            f"quartiles of {result['n_trials']} trials.",
        )
        for name, (settings, titles, fixed) in parts.items()
    ]


ARTEFACT = Artefact(
    label="tr-cvg-vary",
    cites=("fig:tr-cvg-vary",),
    title="Training by the numbers of clusters and dimensions",
    about=(
        "One layer is trained for k = 6 to 25 clusters in 32 dimensions and for 6 clusters in 4 to "
        "32 dimensions, with lambda = 0.1; validation is relative to one Lloyd step."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
