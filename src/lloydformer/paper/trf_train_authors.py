"""fig:trf-train as the authors' code evaluates it, panels (a) to (c).

The tasks are those on which a layer was validated, which drove its learning rate (the text has
unseen ones), dropout stays on, and lines and ribbons are over seeds (the caption has tasks). A
quick run has one layer for each panel, those of the package.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from lloydformer.learning.evaluation import draw_unseen, draw_validation
from lloydformer.paper.artefact import Piece, Record, Scope, TextTable
from lloydformer.paper.lloyd_comparison import (
    N_STEPS,
    PLAIN,
    compare_layers,
    compare_with_dropout,
    start_plusplus,
)
from lloydformer.paper.training_runs import (
    ABLATION,
    PROPOSED,
    TRIALS,
    load_layers,
    training_pieces,
)
from lloydformer.paper.trf_train import PANELS, PLUSPLUS, RANDOM, REDUCED
from lloydformer.paper.verdict import Verdict, beyond

NAMES = ("random", "ablation", "plain")
# The text's numbers, of the transformer.
PAPERS = {RANDOM: 5.0, REDUCED: 5.35, PLUSPLUS: 4.85}


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each panel; a full scope trains first."""
    training = training_pieces(scope, {"training": PROPOSED, "training-ablation": ABLATION})
    return training | {name: partial(measure, name, scope) for name in NAMES}


def measure(name: str, scope: Scope) -> Record:
    """Return the comparison on validation tasks, and without dropout on as many unseen ones."""
    layers = load_layers(scope, ABLATION if name == "ablation" else PROPOSED, TRIALS)
    count, first = scope.count(quick=100, full=320), layers[0]
    # the authors' seeds have different validation tasks; here all layers get those of the first
    batch = draw_validation(first.settings, first.run, count, scope.device)
    unseen = draw_unseen(first.settings.tasks, "normal", count, scope.seed, scope.device)
    if name == "plain":
        batch, unseen = (start_plusplus(b, PLAIN, scope.seed) for b in (batch, unseen))
    found = compare_with_dropout(batch, layers, scope.seed)
    return found | {"unseen": round(compare_layers(unseen, layers, scope.seed), 5)}


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row for each panel, and the steps."""
    panels = {PANELS[name]: outputs[name] for name in NAMES}
    return {
        "rows": {
            row: {
                "initial": one["lloyd"][0],
                "lloyd": one["lloyd"][-1],
                "transformer": one["dropout"]["median"][-1],
                "plain": one["plain"]["median"][-1],
                "unseen": one["unseen"],
                "change": one["change"],
            }
            for row, one in panels.items()
        },
        "curves": panels,
        "n_tasks": panels[RANDOM]["n_tasks"],
        "n_layers": panels[RANDOM]["n_layers"],
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return what dropout and the choice of the tasks change."""
    rows = result["rows"]
    dropout = ", ".join(
        f"{name} {row['change'][0]:+.4f} ± {row['change'][1]:.4f}" for name, row in rows.items()
    )
    tasks = ", ".join(f"{name} {row['plain'] - row['unseen']:+.3f}" for name, row in rows.items())
    return [
        beyond("trf-train-authors.dropout", dropout),
        beyond("trf-train-authors.tasks", tasks),
    ]


def tables(result: Record) -> Sequence[TextTable]:
    """Return a row for each panel: with dropout on, off, and on unseen tasks."""
    layers = "one layer" if result["n_layers"] == 1 else f"{result['n_layers']} layers (median)"
    rows = [
        [
            name,
            *(f"{row[c]:.3f}" for c in ("initial", "lloyd", "transformer", "plain", "unseen")),
            f"{PAPERS[name]:.2f}",
        ]
        for name, row in result["rows"].items()
    ]
    columns = ["Setting", "Initial", "Lloyd's", "dropout on", "dropout off", "unseen", "paper"]
    caption = (
        f"By the authors' code: mean log objective after {N_STEPS} steps on {result['n_tasks']} "
        f"validation tasks, {layers}; without dropout; and without it on as many unseen tasks"
    )
    return [TextTable(caption, columns, rows)]
