"""Measure tab:mix-res: the trained layer and Lloyd's algorithm on tasks of each family."""

from collections.abc import Mapping
from functools import partial

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.lloyd_comparison import N_STEPS, compare_with_lloyd, final_mean, rounded
from lloydformer.paper.mix_res.settings import BEYOND
from lloydformer.paper.scope import Scope
from lloydformer.paper.starts import at_random, best_of, descended, greedy, plusplus
from lloydformer.paper.trained_layers import layers, training_pieces

N_STARTS = 10


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each family; a full scope trains first."""
    families: dict[str, Piece] = {family: partial(measured, family, scope) for family in FAMILIES}
    return training_pieces(scope) | families


def measured(family: str, scope: Scope) -> Record:
    """Both over 20 steps from the same random points, and log objectives for the columns BEYOND."""
    found = layers(scope)
    tasks = found[0].settings.tasks
    batch = unseen(tasks, family, scope.count(100, 320), scope.seed, scope.device)
    comparison, summary = compare_with_lloyd(batch, found, scope)
    many = Batch(batch.points, comparison.centers.to(batch.points))
    candidates = greedy(batch.centers.shape[2])
    random_starts = [batch, *(at_random(batch, scope.seed + i) for i in range(1, N_STARTS))]
    greedy_starts = [plusplus(batch, candidates, scope.seed + i) for i in range(N_STARTS)]
    ends = {
        "polished": descended(many, N_STEPS, scope.seed),
        "greedy": descended(greedy_starts[0], N_STEPS, scope.seed),
        "ten_random": best_of(random_starts, N_STEPS, scope.seed),
        "ten_greedy": best_of(greedy_starts, N_STEPS, scope.seed),
    }
    return summary | {name: rounded(float(logs.double().mean())) for name, logs in ends.items()}


def result(found: Mapping[str, Record]) -> Record:
    """A row of the table for each family: the paper's columns, then BEYOND; and the curves."""
    families = {family: found[family] for family in FAMILIES}
    return {
        "rows": {
            family: {
                "initial": one["lloyd"]["mean"][0], "lloyd": final_mean(one, "lloyd"),
                "transformer": final_mean(one, "transformer"),
                **{name: one[name] for name in BEYOND},
            }
            for family, one in families.items()
        },
        "curves": {
            family: {who: one[who] for who in ("lloyd", "transformer")}
            for family, one in families.items()
        },
        "n_tasks": families["normal"]["n_tasks"], "n_layers": families["normal"]["n_layers"],
    }  # fmt: skip
