"""tab:mix-res and fig:mix-res: the trained layer on mixtures of families it has not seen."""

from collections.abc import Mapping, Sequence
from functools import partial

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.tasks import FAMILIES, Batch
from lloydformer.paper.artefact import Artefact, Found, Picture, Piece, Table
from lloydformer.paper.contest import N_STEPS, contest, end, panels, short
from lloydformer.paper.layers import layers, trained
from lloydformer.paper.mix_res_claims import BEYOND, TITLES, claims, printed
from lloydformer.paper.scope import Scope
from lloydformer.paper.starts import at_random, best_of, descended, greedy, plusplus

N_STARTS = 10


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One for each family; before them the training, where one is asked for."""
    first: dict[str, Piece] = {"training": partial(trained, scope)} if scope.full else {}
    return first | {family: partial(measured, family, scope) for family in FAMILIES}


def measured(family: str, scope: Scope) -> Found:
    """Both over 20 steps from the same random points; then what starts and steps add."""
    found = layers(scope)
    tasks = found[0].settings.tasks
    batch = unseen(tasks, family, scope.count(100, 320), scope.seed, scope.device)
    comparison, kept = contest(batch, found, scope)
    many = Batch(batch.points, comparison.centers.to(batch.points))
    candidates = greedy(batch.centers.shape[2])
    by_chance = [batch, *(at_random(batch, scope.seed + i) for i in range(1, N_STARTS))]
    careful = [plusplus(batch, candidates, scope.seed + i) for i in range(N_STARTS)]
    ends = {
        "polished": descended(many, N_STEPS, scope.seed),
        "greedy": descended(careful[0], N_STEPS, scope.seed),
        "ten_random": best_of(by_chance, N_STEPS, scope.seed),
        "ten_greedy": best_of(careful, N_STEPS, scope.seed),
    }
    return kept | {name: short(float(logs.double().mean())) for name, logs in ends.items()}


def result(found: Mapping[str, Found]) -> Found:
    """A row of the table for each family: the paper's columns, then ours."""
    families = {family: found[family] for family in FAMILIES}
    return {
        "rows": {
            family: {
                "initial": one["lloyd"]["mean"][0], "lloyd": end(one, "lloyd"),
                "transformer": end(one, "transformer"), **{name: one[name] for name in BEYOND},
            }
            for family, one in families.items()
        },
        "curves": {
            family: {who: one[who] for who in ("lloyd", "transformer")}
            for family, one in families.items()
        },
        "n_tasks": families["normal"]["n_tasks"], "n_layers": families["normal"]["n_layers"],
    }  # fmt: skip


def tables(result: Found) -> Sequence[Table]:
    """The paper's, with its numbers in brackets; then other starts and steps."""
    rows = result["rows"]
    over = f"over {result['n_tasks']} tasks a family, d = 32, k = 10"
    return [
        Table(
            f"Mean log objective after {N_STEPS} steps {over} (in brackets the paper's)",
            ["Family", "Initial objective", "Lloyd's", "k-means transformer"],
            [
                [TITLES[f], *(f"{rows[f][c]:.4f} ({v:.4f})" for c, v in printed(f).items())]
                for f in FAMILIES
            ],
        ),
        Table(
            f"Beyond the paper's comparison: the same {over}",
            ["Family", "Lloyd's", "transformer", *BEYOND.values()],
            [
                [TITLES[f], *(f"{rows[f][c]:.4f}" for c in ("lloyd", "transformer", *BEYOND))]
                for f in FAMILIES
            ],
        ),
    ]


def pictures(result: Found) -> Sequence[Picture]:
    """fig:mix-res: the whole trajectory, a panel for each family."""
    curves = {TITLES[family]: result["curves"][family] for family in FAMILIES}
    caption = (
        f"The log objective over {N_STEPS} steps: mean over {result['n_tasks']} tasks a family, "
        "ribbons from the least to the greatest."
    )
    return [Picture("mix-res", panels(curves), caption)]


ARTEFACT = Artefact(
    label="mix-res",
    cites=("tab:mix-res", "fig:mix-res"),
    title="Mixtures of other families",
    about=(
        "A layer trained on mixtures of Gaussians takes 20 steps on mixtures of five families, "
        "and so does Lloyd's algorithm from the same random points."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
