"""tab:mix-res and fig:mix-res: a trained layer on mixtures of families that it has not seen."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import hypot

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.lloyd_comparison import (
    N_STEPS,
    NAMES,
    best_of_starts,
    compare_with_lloyd,
    draw_comparison,
    final_row,
    greedy_candidates,
    rounded_mean,
    run_lloyd_steps,
    start_at_random,
    start_plusplus,
)
from lloydformer.paper.paper_numbers import paper_row, rows_beside_paper
from lloydformer.paper.training_runs import (
    PRINTED,
    PROPOSED,
    load_layers,
    load_printed_layers,
    training_pieces,
)
from lloydformer.paper.verdict import (
    Answer,
    Verdict,
    beyond,
    claim,
    find_tolerance,
    judge_less,
    number,
    worst_of,
)

LABEL = "mix-res"
TITLES = {
    "normal": "Normal",
    "cauchy": "Cauchy",
    "gumbel": "Gumbel",
    "laplace": "Laplace",
    "lognormal": "LogNormal",
}
COLUMNS = {"initial": "initial", "lloyd": "Lloyd's", "transformer": "transformer"}
# Columns that the paper does not have.
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}
N_STARTS = 10


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each family; a full scope trains first."""
    families: dict[str, Piece] = {family: partial(measure, family, scope) for family in FAMILIES}
    groups = {"training": PROPOSED, "training-printed": PRINTED}
    return training_pieces(scope, groups) | families


def measure(family: str, scope: Scope) -> Record:
    """Run both from the same random points, and Lloyd's algorithm as the columns BEYOND say."""
    layers = load_layers(scope)
    n_tasks = scope.count(quick=100, full=320)  # 320 are the paper's
    batch = draw_unseen(layers[0].settings.tasks, family, n_tasks, scope.seed, scope.device)
    comparison, summary = compare_with_lloyd(batch, layers, scope, load_printed_layers(scope))
    # a row of centers for each layer, with the same points
    polished = Batch(batch.points, comparison.centers.to(batch.points))
    candidates = greedy_candidates(batch.centers.shape[2])
    seeds = range(scope.seed, scope.seed + N_STARTS)
    # the first of ten random starts is the paper's, so that ten are never worse than one
    random_starts = [batch, *(start_at_random(batch, seed) for seed in seeds[1:])]
    greedy_starts = [start_plusplus(batch, candidates, seed) for seed in seeds]
    logs = {
        "polished": run_lloyd_steps(polished, N_STEPS, scope.seed),
        "greedy": run_lloyd_steps(greedy_starts[0], N_STEPS, scope.seed),
        "ten_random": best_of_starts(random_starts, N_STEPS, scope.seed),
        "ten_greedy": best_of_starts(greedy_starts, N_STEPS, scope.seed),
    }
    return summary | {column: rounded_mean(log) for column, log in logs.items()}


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row for each family, the paper's columns and then BEYOND, and the curves."""
    families = {family: outputs[family] for family in FAMILIES}
    return {
        "rows": {
            family: final_row(one) | {column: one[column] for column in BEYOND}
            for family, one in families.items()
        },
        "curves": {
            family: {who: one[who] for who in NAMES if who in one}
            for family, one in families.items()
        },
        "n_tasks": families["normal"]["n_tasks"],
        "n_layers": families["normal"]["n_layers"],
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentence of the text, on the 15 numbers, and findings beyond."""
    rows = result["rows"]
    # a minimum would not change under Lloyd steps
    gain = max(rows[f]["transformer"] - rows[f]["polished"] for f in FAMILIES)
    return [
        judge_families(result),
        *(
            number(
                f"{TITLES[family]}, {COLUMNS[column]}",
                "tab:mix-res",
                paper_row(LABEL, family)[column],
                rows[family][column],
                find_tolerance("mix-res.near"),
                _error(result, family, column),
            )
            for family in FAMILIES
            for column in COLUMNS
        ),
        beyond(
            "mix-res.greedy",
            "below the transformer from random points in "
            f"{_count_lower(rows, 'greedy', 'transformer')} of 5 families",
        ),
        beyond(
            "mix-res.minimum",
            f"{N_STEPS} more Lloyd steps lower the log objective by up to {gain:.2f}",
        ),
        *_describe_printed(result),
    ]


def _describe_printed(result: Record) -> list[Verdict]:
    """Return what the model that the text prints reaches, where it was trained."""
    rows = result["rows"]
    if "printed" not in rows["normal"]:
        return []
    parts = []
    for family in FAMILIES:
        curve = result["curves"][family]["printed"]
        layers = ", ".join(f"{value:.3f}" for value in curve["by_layer"])
        parts.append(
            f"{TITLES[family]} {rows[family]['printed']:.3f} ± {curve['error'][-1]:.3f} "
            f"(by layer {layers}; the paper {paper_row(LABEL, family)['transformer']:.3f}, Lloyd's "
            f"{rows[family]['lloyd']:.3f})"
        )
    words = f"below Lloyd's in {_count_lower(rows, 'printed', 'lloyd')} of 5 families: "
    return [beyond("mix-res.printed", words + "; ".join(parts))]


def judge_families(result: Record) -> Verdict:
    rows = result["rows"]
    # The sentence has three parts: below the initial objective everywhere, below Lloyd's but for
    # Cauchy, and above it there.
    others = [family for family in FAMILIES if family != "cauchy"]
    behind = [TITLES[f] for f in FAMILIES if rows[f]["transformer"] >= rows[f]["lloyd"]]
    ahead = f"all but {', '.join(behind)}" if behind else "all"
    return claim(
        "mix-res.families",
        f"below the initial objective in {_count_lower(rows, 'transformer', 'initial')} of 5 "
        f"families; below Lloyd's in {ahead}",
        worst_of(
            *(_judge_lower(result, family, "transformer", "initial") for family in FAMILIES),
            *(_judge_lower(result, family, "transformer", "lloyd") for family in others),
            _judge_lower(result, "cauchy", "lloyd", "transformer"),
        ),
        f"Over {result['n_tasks']} tasks a family.",
    )


def _judge_lower(result: Record, family: str, column: str, than: str) -> Answer:
    row = result["rows"][family]
    # as if both were independent; they have the same tasks, so the true error is smaller
    errors = [_error(result, family, c) for c in (column, than)]
    return judge_less(row[column] - row[than], hypot(*errors))


def _error(result: Record, family: str, column: str) -> float:
    """Return the standard error of a mean over the tasks."""
    # the initial centers are those of both, before the first step
    who, step = ("lloyd", 0) if column == "initial" else (column, -1)
    error: float = result["curves"][family][who]["error"][step]
    return error


def _count_lower(rows: Record, column: str, than: str) -> int:
    """Return in how many families a column is below another."""
    return sum(row[column] < row[than] for row in rows.values())


def tables(result: Record) -> Sequence[TextTable]:
    """Return the paper's table with its numbers in brackets, then the columns BEYOND."""
    rows = result["rows"]
    over = f"over {result['n_tasks']} tasks a family, d = 32, k = 10"
    ours = rows_beside_paper(LABEL, rows, {column: column for column in COLUMNS}, 4)
    shown = ("lloyd", "transformer", *BEYOND)
    extra = {"as the text prints it": "printed"} if "printed" in rows["normal"] else {}
    return [
        TextTable(
            f"Mean log objective after {N_STEPS} steps {over} (in brackets the paper's)",
            ["Family", "Initial objective", "Lloyd's", "k-means transformer", *extra],
            [
                [TITLES[family], *cells, *(f"{rows[family][key]:.4f}" for key in extra.values())]
                for family, *cells in ours
            ],
        ),
        TextTable(
            f"Beyond the paper's comparison: the same {over}",
            ["Family", "Lloyd's", "transformer", *BEYOND.values()],
            [[TITLES[f], *(f"{rows[f][column]:.4f}" for column in shown)] for f in FAMILIES],
        ),
    ]


def pictures(result: Record) -> Sequence[Picture]:
    """Return one figure: the objective over the steps, one panel for each family."""
    curves = {TITLES[family]: result["curves"][family] for family in FAMILIES}
    caption = (
        f"The log objective over {N_STEPS} steps: mean over {result['n_tasks']} tasks a family, "
        "ribbons from the least to the greatest."
    )
    return [Picture(LABEL, draw_comparison(curves), caption)]
