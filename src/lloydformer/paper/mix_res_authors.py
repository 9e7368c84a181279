"""tab:mix-res as the authors' code evaluates it: dropout stays on, and the median is over seeds.

A quick run has one layer for d = 32 and k = 10, that of the package, so its median is that layer's
own mean. What dropout does is also measured for the other layers of the package.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import hypot

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.pretrained import load
from lloydformer.paper.artefact import Piece, Record, Scope, TextTable
from lloydformer.paper.lloyd_comparison import N_STEPS, compare_with_dropout
from lloydformer.paper.lrn_weights import available_layers
from lloydformer.paper.mix_res import TITLES
from lloydformer.paper.paper_numbers import paper_row
from lloydformer.paper.training_runs import TRIALS, load_layers, training_pieces
from lloydformer.paper.verdict import Verdict, beyond, find_tolerance, number

# Tasks of each layer of the package. The effect of dropout is measured on the same tasks with and
# without it, so that few are enough.
N_SHIPPED = 20


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each family, and one for each layer; a full scope trains first."""
    families: dict[str, Piece] = {family: partial(measure, family, scope) for family in FAMILIES}
    shipped: dict[str, Piece] = {n: partial(measure_layer, n, scope) for n in available_layers()}
    return training_pieces(scope) | families | shipped


def measure(family: str, scope: Scope) -> Record:
    """Return the objectives of one family, over ten seeds in a full scope."""
    layers = load_layers(scope, n_layers=TRIALS)
    n_tasks = scope.count(quick=100, full=320)
    batch = draw_unseen(layers[0].settings.tasks, family, n_tasks, scope.seed, scope.device)
    return compare_with_dropout(batch, layers, scope.seed)


def measure_layer(name: str, scope: Scope) -> Record:
    """Return what dropout does to one layer of the package, on tasks of its own size."""
    layer = load(name)
    batch = draw_unseen(layer.settings.tasks, "normal", N_SHIPPED, scope.seed, scope.device)
    return {"change": compare_with_dropout(batch, [layer], scope.seed)["change"]}


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row for each family and the change by each layer of the package."""
    families = {family: outputs[family] for family in FAMILIES}
    return {
        "rows": {
            family: {
                "initial": one["lloyd"][0],
                "lloyd": one["lloyd"][-1],
                "transformer": one["dropout"]["median"][-1],
                "plain": one["plain"]["median"][-1],
                "change": one["change"],
                "error": one["error"],
            }
            for family, one in families.items()
        },
        "layers": {name: outputs[name]["change"] for name in available_layers()},
        "n_tasks": families["normal"]["n_tasks"],
        "n_layers": families["normal"]["n_layers"],
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the transformer's column, and whether dropout explains its difference."""
    rows = result["rows"]
    papers = {f: paper_row("mix-res", f)["transformer"] for f in FAMILIES}
    below = {f: papers[f] - rows[f]["plain"] for f in FAMILIES}
    changes = {f: rows[f]["change"] for f in FAMILIES}
    described = ", ".join(
        f"{TITLES[f]} {change:+.4f} ± {error:.4f} of {below[f]:+.4f}"
        for f, (change, error) in changes.items()
    )
    mean = sum(change for change, _ in changes.values()) / len(changes)
    error = hypot(*(error for _, error in changes.values())) / len(changes)
    missing = sum(below.values()) / len(below)
    layers = ", ".join(f"{name} {change:+.4f}" for name, (change, _) in result["layers"].items())
    return [
        *(
            number(
                f"{TITLES[family]}, transformer",
                "tab:mix-res",
                papers[family],
                rows[family]["transformer"],
                find_tolerance("mix-res.near"),
                rows[family]["error"],
            )
            for family in FAMILIES
        ),
        beyond(
            "mix-res-authors.dropout",
            f"it adds {mean:+.4f} ± {error:.4f} on average, and the paper's numbers are "
            f"{missing:+.4f} from ours without it: {described}",
            "On the same tasks. 'Of' the paper's number less ours without dropout, which is also "
            "another training and other tasks.",
            undecided=abs(mean) <= 2 * error,
        ),
        beyond("mix-res-authors.layers", layers),
    ]


def tables(result: Record) -> Sequence[TextTable]:
    """Return the table with dropout on, with the paper's numbers in brackets, and without."""
    rows = []
    for family in FAMILIES:
        row, paper = result["rows"][family], paper_row("mix-res", family)
        cells = [f"{row[c]:.4f} ({paper[c]:.4f})" for c in ("initial", "lloyd", "transformer")]
        rows.append([TITLES[family], *cells, f"{row['plain']:.4f}"])
    layers = "one layer" if result["n_layers"] == 1 else f"{result['n_layers']} layers (median)"
    return [
        TextTable(
            f"By the authors' code: mean log objective after {N_STEPS} steps over "
            f"{result['n_tasks']} tasks a family, {layers} (in brackets the paper's)",
            ["Family", "Initial", "Lloyd's", "transformer, dropout on", "dropout off"],
            rows,
        )
    ]
