"""fig:trf-train: the trained layer against Lloyd's algorithm, by embedding, start and size."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import hypot

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Artefact, Found, Piece, Table
from lloydformer.paper.contest import N_STEPS, NAMES, contest, end, short
from lloydformer.paper.layers import ABLATION, PROPOSED, layers, trained
from lloydformer.paper.scope import Scope
from lloydformer.paper.starts import PLAIN, best_of, greedy, plusplus
from lloydformer.paper.trf_train_claims import claims
from lloydformer.paper.trf_train_pictures import pictures

PANELS = {
    "random": "random init", "ablation": "random init, d_emb=d", "plain": "k-means++ init",
    "greedy": "greedy k-means++ init",
}  # fmt: skip
"""Pieces and the rows that they are; the last one is beyond the paper."""
SIZES = (128, 256, 1024, 2048)
"""Beside 512, which is the first panel's."""
N_STARTS = 20


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Four kinds of start and embedding, then the other sizes."""
    first: dict[str, Piece] = {}
    if scope.full:
        groups = {"training": PROPOSED, "training-ablation": ABLATION}
        first = {name: partial(trained, scope, group) for name, group in groups.items()}
    panels: dict[str, Piece] = {name: partial(panel, name, scope) for name in PANELS}
    return first | panels | {f"n{n}": partial(sized, n, scope) for n in SIZES}


def panel(name: str, scope: Scope) -> Found:
    """512 points: the same tasks for every start and embedding."""
    batch = _tasks(512, scope)
    candidates = {"plain": PLAIN, "greedy": greedy(batch.centers.shape[2])}
    if name in candidates:
        batch = plusplus(batch, candidates[name], scope.seed)
    found = layers(scope, ABLATION if name == "ablation" else PROPOSED)
    kept = contest(batch, found, scope)[1]
    return kept | ({"best_of_20": _best(batch, scope)} if name == "greedy" else {})


def sized(n_points: int, scope: Scope) -> Found:
    """The layer that was trained with 512 points, on tasks of another size."""
    return contest(_tasks(n_points, scope), layers(scope), scope)[1]


def n_tasks(n_points: int, scope: Scope) -> int:
    """A step takes time that grows with n^2: quick runs give the two large sizes fewer tasks."""
    fewer = 1 if scope.full else {1024: 2, 2048: 4}.get(n_points, 1)
    return max(1, scope.count(160, 320) // fewer)


def _tasks(n_points: int, scope: Scope) -> Batch:
    tasks = replace(PROPOSED.settings.tasks, n_points=n_points)
    count = n_tasks(n_points, scope)
    return unseen(tasks, "normal", count, scope.seed, scope.device)


def _best(batch: Batch, scope: Scope) -> float:
    """Lloyd's algorithm from the best of 20 starts of greedy k-means++."""
    candidates = greedy(batch.centers.shape[2])
    starts = [plusplus(batch, candidates, scope.seed + i) for i in range(N_STARTS)]
    return short(float(best_of(starts, N_STEPS, scope.seed).double().mean()))


def result(found: Mapping[str, Found]) -> Found:
    """Where each ends, keyed as in the text; and the curves."""
    curves = {PANELS[name]: found[name] for name in PANELS}
    sizes = {str(n): found["random"] if n == 512 else found[f"n{n}"] for n in sorted((512, *SIZES))}
    rows: Found = {name: _ends(one) for name, one in curves.items()}
    rows["greedy k-means++ init"]["best_of_20"] = found["greedy"]["best_of_20"]
    rows["n in 128,256,1024,2048"] = {n: _ends(one) for n, one in sizes.items()}
    return {"rows": rows, "curves": curves, "sizes": sizes}


def _ends(one: Found) -> Found:
    """Means after the last step; error: the standard error of their difference, at most."""
    return {
        "initial": one["lloyd"]["mean"][0], "lloyd": end(one, "lloyd"),
        "transformer": end(one, "transformer"), "won": one["won"], "n_tasks": one["n_tasks"],
        "error": short(hypot(*(one[who]["error"][-1] for who in NAMES))),
    }  # fmt: skip


def tables(result: Found) -> Sequence[Table]:
    """Where the curves end."""
    rows = {name: row for name, row in result["rows"].items() if not name.startswith("n in")}
    sizes = result["rows"]["n in 128,256,1024,2048"]
    rows |= {f"n = {n}, random init": row for n, row in sizes.items()}
    columns = ["Setting", "Tasks", "Initial", "Lloyd's", "Transformer", "Tasks that it wins"]
    return [
        Table(
            f"Mean log objective after {N_STEPS} steps, d = 32, k = 10, n = 512 where not said "
            "otherwise",
            columns,
            [[name, *_cells(row)] for name, row in rows.items()],
        )
    ]


def _cells(row: Found) -> list[str]:
    ends = [f"{row[name]:.3f}" for name in ("initial", "lloyd", "transformer")]
    return [str(row["n_tasks"]), *ends, f"{100 * row['won']:.0f} %"]


ARTEFACT = Artefact(
    label="trf-train",
    cites=("fig:trf-train",),
    title="The trained transformer against Lloyd's algorithm",
    about=(
        "One layer, trained for a single step on mixtures of Gaussians, is applied 20 times to new "
        "tasks, beside Lloyd's algorithm from the same centers: with and without the k scratch "
        "dimensions, from random points and from k-means++, and with 128 to 2048 points."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
