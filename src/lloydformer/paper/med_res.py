"""tab:med-res: randomised k-medoids on ten whole data sets, by sampling gap, and FasterPAM.

The paper prints neither the number of steps nor whether the last or the best medoids count. Both
were chosen by comparing 28 settings with the paper's numbers: last or best, 3 to 30 steps, scores
with or without a division by sqrt(d). The root mean square difference of the improvement over the
initial medoids, over seven sets, separates last (0.09 and more) from best (0.025 to 0.055) and
little else: best in ten steps of alg:rnd-kmeds as written had 0.027 there (0.028 in med-res.json),
with the division and 20 steps 0.025. Both last and best are reported, since the algorithm returns
the last.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances

from lloydformer.estimators import KMedoids
from lloydformer.numerics.clusters import log_kmeans_objective
from lloydformer.paper.artefact import Piece, Record, Scope, TextTable
from lloydformer.paper.datasets import OTHER_DATA, load_scaled_points
from lloydformer.paper.paper_numbers import paper_row, row_names, rows_beside_paper
from lloydformer.paper.verdict import (
    Answer,
    Verdict,
    beyond,
    claim,
    find_tolerance,
    judge,
    number,
    standard_error,
)

LABEL = "med-res"
N_STEPS, N_CLUSTERS = 10, 10
# The paper's columns: values of the gap delta.
GAPS = {"0": 0.0, "0.01": 0.01, "1": 1.0, "1e2": 1e2, "1e4": 1e4, "1e8": 1e8, "1e15": 1e15}
ENDS = ("0", "1e15")
BETWEEN = [column for column in GAPS if column not in ENDS]
# With gaps from 100 on, a point of another cluster has a weight of exp(-200) or less; with a
# smaller one above 0, medoids can be drawn from outside of the cluster.
LARGE = [column for column, gap in GAPS.items() if gap >= 100]
SMALL = ("0.01", "1")
# Beginnings of the columns of our rows, and their meaning.
KINDS = {"best_": "best medoids of a run", "": "last medoids"}
# Limits of the quick run, since FasterPAM needs the distances of all pairs of rows.
PAM_ROWS, PAM_TRIALS = 2000, 3
PAM_MISSING = "the package kmedoids is not installed"


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each data set."""
    return {name: partial(measure, name, scope) for name in row_names(LABEL)}


def measure(name: str, scope: Scope) -> Record:
    """Return the log objective in each trial.

    Of the initial medoids, of the last and the best ones of each gap, of the search of `KMedoids`
    and of FasterPAM.
    """
    points = load_scaled_points(name).numpy()
    rng = np.random.default_rng(scope.seed)
    # all gaps start from the same rows; ten trials are the paper's
    starts = [rng.permutation(len(points))[:N_CLUSTERS] for _ in range(scope.count(10, 10))]
    last, best = {}, {}
    for place, (column, gap) in enumerate(GAPS.items()):
        histories = []
        for trial, start in enumerate(starts):
            # every gap has its own random numbers
            seed = scope.seed + len(GAPS) * trial + place
            model = fit_paper_medoids(points, start, gap, seed, scope.device)
            histories.append(np.log(model.objective_history_))
        last[column] = _round([history[-1] for history in histories])
        best[column] = _round([history.min() for history in histories])
    searches = [
        KMedoids(N_CLUSTERS, init=points[start], n_init=1, random_state=scope.seed).fit(points)
        for start in starts
    ]
    return {
        "initial": _round([_log_objective(points, points[start]) for start in starts]),
        "last": last,
        "best": best,
        "one_algorithm": draws_same_medoids(points, starts[0], scope),
        "relocate": _round([np.log(search.inertia_) for search in searches]),
        **measure_fasterpam(points, starts, scope),
    }


def fit_paper_medoids(
    points: ndarray, start: Int[ndarray, " k"], gap: float, seed: int, device: str
) -> KMedoids:
    """Return the estimator after N_STEPS steps of alg:rnd-kmeds from these rows."""
    model = KMedoids(
        N_CLUSTERS,
        method="paper",
        separation=gap,
        init=points[start],
        n_init=1,
        max_iter=N_STEPS,
        return_last=True,  # as alg:rnd-kmeds; the history has the best
        random_state=seed,
        device=device,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # two medoids may coincide
        model.fit(points)
    return model


def draws_same_medoids(points: ndarray, start: ndarray, scope: Scope) -> bool:
    """Return whether all gaps from 100 on draw the same medoids from the same noise."""
    drawn = [
        fit_paper_medoids(points, start, GAPS[gap], scope.seed, scope.device).medoid_indices_
        for gap in LARGE
    ]
    return all(np.array_equal(drawn[0], other) for other in drawn)


def measure_fasterpam(points: ndarray, starts: Sequence[ndarray], scope: Scope) -> Record:
    """Return the log objective of FasterPAM in each trial.

    A quick run searches PAM_ROWS rows; the objective is of all points.
    """
    if not has_fasterpam():
        return {"fasterpam": None, "fasterpam_rows": 0}
    rng = np.random.default_rng(scope.seed)
    # FasterPAM takes n x n memory, so a quick run searches a sample
    rows = np.arange(len(points)) if scope.full else rng.permutation(len(points))[:PAM_ROWS]
    if not scope.full:
        starts = [rng.permutation(len(rows))[:N_CLUSTERS] for _ in starts[:PAM_TRIALS]]
    medoids = run_fasterpam(points[rows], starts)
    logs = [_log_objective(points, points[rows[found]]) for found in medoids]
    return {"fasterpam": _round(logs), "fasterpam_rows": len(rows)}


def has_fasterpam() -> bool:
    """Return whether the optional package `kmedoids` can be imported."""
    return find_spec("kmedoids") is not None


def run_fasterpam(
    points: Float[ndarray, "n d"], starts: Sequence[Int[ndarray, " k"]]
) -> list[Int[ndarray, " k"]]:
    """Return, for each start, medoids (rows) that no single exchange improves."""
    solver = import_module("kmedoids")
    # n x n numbers: float32 halves the memory
    distances = euclidean_distances(points.astype(np.float32), squared=True)
    found = [solver.fasterpam(distances, start.astype(np.uint64), n_cpu=1) for start in starts]
    return [one.medoids.astype(np.int64) for one in found]


def _log_objective(points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"]) -> float:
    return float(log_kmeans_objective(torch.from_numpy(points), torch.from_numpy(centers)))


def _round(values: Sequence[float]) -> list[float]:
    return [round(float(value), 5) for value in values]


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row for each set: the paper's columns have the last medoids, `best_...` the best."""
    first = next(iter(outputs.values()))
    return {
        "rows": {name: _row(one) for name, one in outputs.items()},
        # of the difference of the best medoids to those with the smallest and the largest gap
        "errors": {
            name: {
                c: [standard_error(np.subtract(one["best"][c], one["best"][e])) for e in ENDS]
                for c in BETWEEN
            }
            for name, one in outputs.items()
        },
        "one_algorithm": [name for name, one in outputs.items() if one["one_algorithm"]],
        "fasterpam_rows": max(one["fasterpam_rows"] for one in outputs.values()),
        "fasterpam_trials": len(first["fasterpam"] or ()),
        "n_trials": len(first["initial"]),
    }


def _row(one: Record) -> Record:
    values = {
        "initial": one["initial"],
        **one["last"],
        **{f"best_{column}": one["best"][column] for column in GAPS},
        "relocate": one["relocate"],
        "fasterpam": one["fasterpam"],
    }
    return {c: None if v is None else round(float(np.mean(v)), 6) for c, v in values.items()}


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentences of the text, on the numbers, and findings beyond."""
    return [*_claims(result), *_numbers(result["rows"]), *_findings(result)]


def _claims(result: Record) -> list[Verdict]:
    """Judge that the best gap is above 0, that it is not too large, that a balance is critical.

    By the rule of tab:rob-res: a sentence that sums up the paper's table holds if the table shows
    it and our trials do not refute it. Whether they show it too is a question beyond the paper.
    """
    answers = [answer for _, answer in _judge_trials(result)]
    above, balanced = _count_papers(ENDS[:1]), _count_papers(ENDS)
    n_sets = len(row_names(LABEL))
    return [
        claim(
            "med-res.above-zero",
            f"the best δ of the paper's table is above 0 on {above} of {n_sets} sets",
            _judge_table(above, answers[0]),
        ),
        claim(
            "med-res.not-too-large",
            f"the best δ of the paper's table is below 100 on {_count_papers(LARGE)} of {n_sets} "
            f"sets, and below 10^15 on {_count_papers(ENDS[1:])}",
            # unless our trials decide it, which of the two readings is meant does
            Answer.OPEN if answers[1] is Answer.UNDECIDED else answers[1],
        ),
        claim(
            "med-res.balance",
            f"the best δ of the paper's table is between 0 and 10^15 on {balanced} of {n_sets}",
            _judge_table(balanced, answers[2]),
        ),
    ]


def _judge_trials(result: Record) -> list[tuple[int, Answer]]:
    """Judge the three sentences by our trials, each with its number of sets."""
    pairs = ((BETWEEN, ENDS[:1]), (SMALL, LARGE), (BETWEEN, ENDS))
    return [_judge_better(result, gaps, than) for gaps, than in pairs]


def _judge_table(count: int, trials: Answer) -> Answer:
    """Return whether most sets of the paper's table show it, and our trials do not refute it."""
    most = judge(count > len(row_names(LABEL)) / 2)
    return trials if trials is Answer.FAILS else most


def judge_other_starts(result: Record) -> Verdict:
    """Return the finding on whether our starts show what the paper's table shows."""
    (above, first), (small, _), (balanced, last) = _judge_trials(result)
    n_sets = len(result["rows"])
    chance = n_sets * (len(GAPS) - 1) / len(GAPS)
    return beyond(
        "med-res.other-starts",
        f"the best δ is above 0 on {_count_ours(result, ENDS[:1])}, by more than two standard "
        f"errors of {result['n_trials']} trials on {above}; below 100 on "
        f"{_count_ours(result, LARGE)}, by more than two on {small}; a δ between 0 and 10^15 is "
        f"better than both by more than two on {balanced}",
        f"If δ made no difference, chance would put the best above 0 on {chance:.1f} of {n_sets}.",
        undecided=Answer.UNDECIDED in (first, last),
    )


def _judge_better(result: Record, gaps: Sequence[str], than: Sequence[str]) -> tuple[int, Answer]:
    """Return on how many sets a gap is better than all of `than`, and whether on most.

    Differences count beyond two standard errors. Most sets on which every gap is worse refute it.
    """

    def differs(name: str, gap: str, sign: int) -> bool:
        # errors are those of the differences to gap 0, and to gap 10^15 for the large gaps
        row, (to_none, to_large) = result["rows"][name], result["errors"][name][gap]
        return all(
            sign * (row[f"best_{gap}"] - row[f"best_{other}"])
            > 2 * (to_none if other == "0" else to_large)
            for other in than
        )

    names = list(result["rows"])
    better = sum(any(differs(name, gap, -1) for gap in gaps) for name in names)
    worse = sum(all(differs(name, gap, 1) for gap in gaps) for name in names)
    half = len(names) / 2
    return better, judge(better > half, enough=worse > half)


def _count_ours(result: Record, excluded: Iterable[str]) -> str:
    """Return on how many sets the best gap is not among these, for both kinds of medoids."""
    rows, excluded = result["rows"].values(), list(excluded)
    counts = []
    for kind, words in KINDS.items():
        best = [min(GAPS, key=lambda gap: row[kind + gap]) for row in rows]
        counts.append(f"{sum(gap not in excluded for gap in best)} ({words})")
    return f"{' and '.join(counts)} of {len(rows)} sets"


def _count_papers(excluded: Iterable[str]) -> int:
    """Return on how many sets of the paper's table the best gap is not among these."""
    best = [min(GAPS, key=paper_row(LABEL, name).__getitem__) for name in row_names(LABEL)]
    return sum(gap not in excluded for gap in best)


def _numbers(rows: Record) -> Iterator[Verdict]:
    """Yield verdicts on the initial column, then on the columns of the gaps.

    The latter are of the best medoids; a number that fits the last only depends on what the text
    reports, and the numbers of OTHER_DATA depend on the data.
    """
    for name in row_names(LABEL):
        is_other = name in OTHER_DATA
        paper, ours = paper_row(LABEL, name)["initial"], round(rows[name]["initial"], 4)
        near = find_tolerance("med-res.initial-other" if is_other else "med-res.initial")
        yield number(f"{name}, initial", "tab:med-res", paper, ours, near, is_open=is_other)
    # the notes count separately what fits in both groups of sets
    for is_other in (False, True):
        names = [name for name in row_names(LABEL) if (name in OTHER_DATA) == is_other]
        fits = [_fits_last(rows, name, gap) for name in names for gap in GAPS]
        near = find_tolerance("med-res.gaps-other" if is_other else "med-res.gaps")
        near = replace(near, why=near.why.format(fit=f"{sum(fits)} of {len(fits)}"))
        for name in names:
            for gap in GAPS:
                yield number(
                    f"{name}, delta = {gap}",
                    "tab:med-res",
                    paper_row(LABEL, name)[gap],
                    round(rows[name][f"best_{gap}"], 4),
                    near,
                    is_open=is_other or _fits_last(rows, name, gap),
                )


def _fits_last(rows: Record, name: str, gap: str) -> bool:
    """Return whether the last medoids are within the tolerance of the paper's number."""
    difference = round(rows[name][gap], 4) - paper_row(LABEL, name)[gap]
    return find_tolerance("med-res.gaps").excess(difference) <= 0


def _findings(result: Record) -> list[Verdict]:
    rows = list(result["rows"].values())
    with_pam = [row for row in rows if row["fasterpam"] is not None]
    by_best, by_last = (gain_difference(result["rows"], kind) for kind in KINDS)
    improved = sum(row[gap] < row["initial"] for row in rows for gap in GAPS)

    def mean_above(column: str, some: Sequence[Record]) -> float:
        """Return how far the best gap of each set is above a column, on average."""
        return float(np.mean([min(row[f"best_{g}"] for g in GAPS) - row[column] for row in some]))

    against_pam, note, beside_pam = f"{PAM_MISSING}: pip install kmedoids", "", ""
    if with_pam:
        against_pam = f"{mean_above('fasterpam', with_pam):.3f} above on average"
        note = f"The best gap of each set, best medoids seen; FasterPAM on {_pam_sample(result)}."
        search = np.mean([row["relocate"] - row["fasterpam"] for row in with_pam])
        beside_pam = f"; {search:+.4f} compared with FasterPAM"
    return [
        judge_other_starts(result),
        beyond(
            "med-res.last-or-best",
            f"the improvement over the initial medoids differs from the paper's by {by_best:.3f} "
            f"with the best medoids, and by {by_last:.3f} with the last (root mean square, seven "
            "sets)",
            "In the paper's table all 70 cells are below the initial objective; here all with the "
            f"best medoids, and {improved} with the last.",
        ),
        beyond(
            "med-res.large-gaps",
            "no: with the same random numbers they draw the same medoids, on "
            f"{len(result['one_algorithm'])} of {len(rows)} sets",
        ),
        beyond("med-res.fasterpam", against_pam, note, undecided=not with_pam),
        beyond(  # the future work of the appendix; docs/medoids.md describes the search
            "med-res.search",
            "yes: exchanges with drawn points and relocations end "
            f"{mean_above('relocate', rows):.3f} below the best gap of each set{beside_pam}",
            f"From the same starts, on all rows; FasterPAM on {_pam_sample(result)}. An exchange "
            "is a circuit, recipes.medoids_swap().",
        ),
    ]


def gain_difference(rows: Record, kind: str) -> float:
    """Return the root mean square difference to the paper of the gain over initial medoids."""
    differences = []
    for name in rows:
        if name in OTHER_DATA:
            continue
        ours, theirs = rows[name], paper_row(LABEL, name)
        for gap in GAPS:
            gain = ours["initial"] - ours[f"{kind}{gap}"]
            differences.append(gain - (theirs["initial"] - theirs[gap]))
    return float(np.sqrt(np.mean(np.square(differences))))


def _pam_sample(result: Record) -> str:
    """Return on what FasterPAM was run, in words."""
    if not result["fasterpam_rows"]:
        return f"no rows ({PAM_MISSING})"
    return f"up to {result['fasterpam_rows']} rows, {result['fasterpam_trials']} trials"


def tables(result: Record) -> Sequence[TextTable]:
    """Return the paper's table with its numbers in brackets: last medoids, then best medoids."""
    rows = result["rows"]
    columns = ["Dataset", "Initial", *(f"delta = {gap}" for gap in GAPS)]
    last, best = (
        rows_beside_paper(
            LABEL, rows, {"initial": "initial", **{gap: f"{kind}{gap}" for gap in GAPS}}, 3
        )
        for kind in ("", "best_")
    )
    for cells in best:
        row = rows[cells[0]]
        pam = PAM_MISSING if row["fasterpam"] is None else f"{row['fasterpam']:.3f}"
        cells += [pam, f"{row['relocate']:.3f}"]
    return [
        TextTable(
            f"Mean log objective of the last medoids, {N_STEPS} steps, {result['n_trials']} "
            f"trials, k = {N_CLUSTERS} (in brackets the paper's)",
            columns,
            last,
        ),
        TextTable(
            "The same of the best medoids seen, and beyond the paper FasterPAM on "
            f"{_pam_sample(result)}, and the search of KMedoids",
            [*columns, "FasterPAM", "KMedoids"],
            best,
        ),
    ]
