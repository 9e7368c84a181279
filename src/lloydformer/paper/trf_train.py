"""fig:trf-train: the trained layer against Lloyd's algorithm, by embedding, start and size."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import hypot

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.lloyd_comparison import (
    N_STEPS,
    PLAIN,
    best_of_starts,
    compare_with_lloyd,
    draw_comparison,
    final_row,
    greedy_candidates,
    rounded_mean,
    start_plusplus,
)
from lloydformer.paper.paper_numbers import paper_numbers
from lloydformer.paper.training_runs import (
    ABLATION,
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

LABEL = "trf-train"
TEXT = "sec:results:train"
# Pieces and the names of their rows; the last one is beyond the paper.
RANDOM, REDUCED, PLUSPLUS, GREEDY = (
    "random init",
    "random init, d_emb=d",
    "k-means++ init",
    "greedy k-means++ init",
)
PANELS = {"random": RANDOM, "ablation": REDUCED, "plain": PLUSPLUS, "greedy": GREEDY}
TITLES = {
    RANDOM: "(a) $d_{emb} = d + k$, random init",
    REDUCED: "(b) $d_{emb} = d$, random init",
    PLUSPLUS: "(c) $d_{emb} = d + k$, k-means++ init",
    GREEDY: "(c') greedy k-means++ init",
}
# Numbers of points besides 512, which the panels have, and the row that holds a row for each size.
SIZES = (128, 256, 1024, 2048)
SIZES_ROW = "n in 128,256,1024,2048"
# Starts of greedy k-means++ of which the best is a bound for both, chosen by hand.
N_STARTS = 20


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return four kinds of start and embedding, then the other sizes; a full scope trains first."""
    groups = {"training": PROPOSED, "training-ablation": ABLATION, "training-printed": PRINTED}
    training = training_pieces(scope, groups)
    panels: dict[str, Piece] = {name: partial(measure_panel, name, scope) for name in PANELS}
    return training | panels | {f"n{n}": partial(measure_size, n, scope) for n in SIZES}


def measure_panel(name: str, scope: Scope) -> Record:
    """Return the comparison of one of PANELS, with 512 points; all have the same tasks."""
    batch = _draw_tasks(512, scope)
    greedy = greedy_candidates(batch.centers.shape[2])
    starts = batch  # random points
    if name in ("plain", "greedy"):
        starts = start_plusplus(batch, PLAIN if name == "plain" else greedy, scope.seed)
    layers = load_layers(scope, ABLATION if name == "ablation" else PROPOSED)
    printed = [] if name == "ablation" else load_printed_layers(scope)
    summary = compare_with_lloyd(starts, layers, scope, printed)[1]
    if name == "greedy":
        seeds = range(scope.seed, scope.seed + N_STARTS)
        batches = [start_plusplus(batch, greedy, seed) for seed in seeds]
        summary["best_of_20"] = rounded_mean(best_of_starts(batches, N_STEPS, scope.seed))
    return summary


def measure_size(n_points: int, scope: Scope) -> Record:
    """Return the comparison with another number of points, for the layer trained with 512."""
    return compare_with_lloyd(_draw_tasks(n_points, scope), load_layers(scope), scope)[1]


def count_tasks(n_points: int, scope: Scope) -> int:
    """Return the number of tasks, fewer of the two large sizes in a quick run."""
    # time grows with n^2, and quick runs should take minutes
    fewer = 1 if scope.full else {1024: 2, 2048: 4}.get(n_points, 1)
    return max(1, scope.count(160, 320) // fewer)


def _draw_tasks(n_points: int, scope: Scope) -> Batch:
    # the same seed for every panel: panels of one size have the same tasks
    tasks = replace(PROPOSED.settings.tasks, n_points=n_points)
    return draw_unseen(tasks, "normal", count_tasks(n_points, scope), scope.seed, scope.device)


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return final values, with the keys of the paper's text, and the curves."""
    curves = {row: outputs[name] for name, row in PANELS.items()}
    sizes = {str(n): outputs["random" if n == 512 else f"n{n}"] for n in sorted((512, *SIZES))}
    rows: Record = {name: _row(one) for name, one in curves.items()}
    rows[GREEDY]["best_of_20"] = outputs["greedy"]["best_of_20"]
    rows[SIZES_ROW] = {n: _row(one) for n, one in sizes.items()}
    return {"rows": rows, "curves": curves, "sizes": sizes}


def _row(one: Record) -> Record:
    """Return means after the last step; error: upper bound of that of their difference."""
    errors = [one[who]["error"][-1] for who in ("lloyd", "transformer")]
    return {
        **final_row(one),
        "won": one["won"],
        "n_tasks": one["n_tasks"],
        # as if both were independent; they have the same tasks, so the true error is smaller
        "error": round(hypot(*errors), 5),
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentences in the order of the text, on their numbers, and more."""
    rows, sizes = result["rows"], result["rows"][SIZES_ROW]
    base, reduced, plain, greedy = (rows[name] for name in (RANDOM, REDUCED, PLUSPLUS, GREEDY))
    error = _error(result, PLUSPLUS, "lloyd")
    return [
        claim(
            "trf-train.below-lloyd",
            _compare(base),
            _judge_below(base),
            f"It is below on {100 * base['won']:.0f} % of {base['n_tasks']} tasks.",
        ),
        claim(
            "trf-train.other-sizes",
            "; ".join(f"n = {n}: {_compare(row)}" for n, row in sizes.items()),
            worst_of(*map(_judge_below, sizes.values())),  # at every size
            f"Over {', '.join(str(row['n_tasks']) for row in sizes.values())} tasks.",
        ),
        claim(
            "trf-train.reduced-embedding",
            _compare(reduced),
            # 'unable to match': Lloyd's is lower
            judge_less(reduced["lloyd"] - reduced["transformer"], reduced["error"]),
        ),
        claim(
            "trf-train.plusplus-lloyd",
            f"{plain['lloyd']:.3f} ± {error:.3f} from {base['lloyd']:.3f}",
            # two parts: it improves, and it is below 5.0
            worst_of(_judge_improvement(result, "lloyd"), judge_less(plain["lloyd"] - 5.0, error)),
        ),
        claim(
            "trf-train.plusplus-below-lloyd",
            _compare(plain),
            _judge_below(plain),
            f"It is below on {100 * plain['won']:.0f} % of {plain['n_tasks']} tasks.",
        ),
        claim(
            "trf-train.better-start",
            f"{plain['transformer']:.3f} from {base['transformer']:.3f}",
            _judge_improvement(result, "transformer"),
        ),
        # 'less than 5.0' for Lloyd's in (c) is a claim and no number
        _number(result, "(a) Lloyd's", RANDOM, "lloyd"),
        _number(result, "(a) transformer", RANDOM, "transformer"),
        _number(result, "(b) transformer", REDUCED, "transformer"),
        _number(result, "(c) transformer", PLUSPLUS, "transformer"),
        beyond(
            "trf-train.greedy",
            f"{_compare(greedy)}: the order "
            f"{'stays' if greedy['transformer'] < greedy['lloyd'] else 'turns'}",
            "Lloyd's algorithm from the best of 20 of these starts reaches "
            f"{greedy['best_of_20']:.3f}.",
        ),
        *_describe_printed(result),
    ]


def _describe_printed(result: Record) -> list[Verdict]:
    """Return what the model that the text prints reaches, where it was trained."""
    if "printed" not in result["rows"][RANDOM]:
        return []
    parts = []
    for name in (RANDOM, PLUSPLUS, GREEDY):
        row, curve = result["rows"][name], result["curves"][name]["printed"]
        layers = ", ".join(f"{value:.3f}" for value in curve["by_layer"])
        parts.append(
            f"{name}: {row['printed']:.3f} ± {curve['error'][-1]:.3f} (by layer {layers}) against "
            f"{row['transformer']:.3f} and {row['lloyd']:.3f} of Lloyd's"
        )
    return [beyond("trf-train.printed", "; ".join(parts))]


def _number(result: Record, about: str, row: str, who: str) -> Verdict:
    """Return the verdict on a number of the text."""
    theirs, ours = paper_numbers(LABEL)["rows"][row][who], result["rows"][row][who]
    return number(
        about, TEXT, theirs, ours, find_tolerance("trf-train.near"), _error(result, row, who)
    )


def _judge_below(row: Record) -> Answer:
    return judge_less(row["transformer"] - row["lloyd"], row["error"])


def _judge_improvement(result: Record, who: str) -> Answer:
    """Return whether k-means++ lowers the mean of random points; the tasks are the same."""
    rows = result["rows"]
    error = hypot(*(_error(result, name, who) for name in (RANDOM, PLUSPLUS)))
    return judge_less(rows[PLUSPLUS][who] - rows[RANDOM][who], error)


def _error(result: Record, name: str, who: str) -> float:
    """Return the standard error of a mean over the tasks."""
    error: float = result["curves"][name][who]["error"][-1]
    return error


def _compare(row: Record) -> str:
    """Return both means, and their difference with its standard error, in words."""
    difference = row["transformer"] - row["lloyd"]
    both = f"{row['transformer']:.3f} against {row['lloyd']:.3f}"
    return f"{both} ({difference:+.3f} ± {row['error']:.3f})"


def tables(result: Record) -> Sequence[TextTable]:
    """Return one table: a row for each panel and for each number of points."""
    named = {name: row for name, row in result["rows"].items() if name != SIZES_ROW}
    named |= {f"n = {n}, random init": row for n, row in result["rows"][SIZES_ROW].items()}
    keys, columns = ["initial", "lloyd", "transformer"], ["Initial", "Lloyd's", "Transformer"]
    if "printed" in result["rows"][RANDOM]:
        keys, columns = [*keys, "printed"], [*columns, "As the text prints it"]
    rows = []
    for name, row in named.items():
        ends = [f"{row[key]:.3f}" if key in row else "" for key in keys]
        rows.append([name, str(row["n_tasks"]), *ends, f"{100 * row['won']:.0f} %"])
    return [
        TextTable(
            f"Mean log objective after {N_STEPS} steps, d = 32, k = 10, n = 512 unless stated "
            "otherwise",
            ["Setting", "Tasks", *columns, "Tasks that it wins"],
            rows,
        )
    ]


def pictures(result: Record) -> Sequence[Picture]:
    """Return panels (a) to (c), and (c') beyond the paper; then panel (d)."""
    starts = {TITLES[name]: one for name, one in result["curves"].items()}
    sizes = {f"n = {n}": one for n, one in result["sizes"].items()}
    counts = ", ".join(str(one["n_tasks"]) for one in sizes.values())
    return [
        Picture(
            "trf-train",
            draw_comparison(starts, share_y=True),
            f"Mean log objective over {result['rows'][RANDOM]['n_tasks']} tasks with 512 points, "
            "ribbons from the least to the greatest: (a) random points as centers, (b) without the "
            "k scratch dimensions, (c) plain k-means++, and beyond the paper (c') greedy "
            "k-means++.",
        ),
        Picture(
            "trf-train-sizes",
            draw_comparison(sizes),
            "(d) The layer that was trained with 512 points on tasks of other sizes: mean log "
            f"objective, ribbons from the least to the greatest over {counts} tasks.",
        ),
    ]
