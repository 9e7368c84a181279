"""tab:comp-alg: the rows as the recipes print them, and each circuit against its algorithm.

One circuit is no recipe: that of thm:l2-clus-ip-informal, with d rectified quadratic units, for
given data. The units see each center plus a shift, through the code rows of W_1, so that no
coordinate is negative; V_3 and V_4 take off what the shift adds to the squared norm. It is written
out from the equations alone: `verify.errata.constructions.with_shift` has the same weights in a
circuit, as a second truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Ties
from lloydformer.paper.artefact import Piece, Record, Scope, TextTable
from lloydformer.paper.verdict import Answer, Verdict, beyond, claim, judge, read_label_texts
from lloydformer.paper.verify.compare import Deviation, free_running, layer_by_layer
from lloydformer.paper.verify.finding import TOLERANCE
from lloydformer.paper.verify.known import has_average_ties
from lloydformer.paper.verify.problems import CONTINUOUS, FAMILIES, Problem, small_problems
from lloydformer.paper.verify.trials import N_LAYERS, draw_trial

INFORMAL = "informal"
# By name, algorithm and description: what the table does not list.
BEYOND = {
    INFORMAL: ("Lloyd's algorithm", "dot products, and d rectified units with a shift"),
    "soft_dot": ("*Soft k-means", "dot-product scores in place of Euclidean ones"),
    "spherical_layer": ("Spherical k-means", "LayerNorm, for points whose coordinates sum to 0"),
    "robust_lifted": ("*Robust k-means", "dot-product scores in place of Euclidean ones"),
    "lloyd_binary": ("Lloyd's algorithm", "clusters as binary codes, d + log2 k dimensions"),
    "trimmed_by_gamma": ("*Trimmed k-means", "norm-max with one γ for all clusters, as printed"),
    "trimmed_dot": ("*Trimmed k-means", "dot-product scores in place of Euclidean ones"),
    "robust_dot": ("*Robust k-means", "dot-product scores, with four attentions"),
    "medoids_dot": ("*Euclidean k-medoids", "dot-product scores in place of Euclidean ones"),
    "spherical_soft": ("*Soft k-means", "on the sphere: dot products of unit vectors, RMSNorm"),
    "spherical_trimmed": ("*Trimmed k-means", "on the sphere"),
    "spherical_robust": ("*Robust k-means", "on the sphere"),
    "spherical_medoids": ("*Euclidean k-medoids", "on the sphere"),
}
# The two variations of the four algorithms that the table marks with a star.
STARRED = (
    *("soft_dot", "trimmed_dot", "robust_lifted", "medoids_dot"),
    *("spherical_soft", "spherical_trimmed", "spherical_robust", "spherical_medoids"),
)


# Circuits that are exact with a choice that the text leaves open.
OPEN = ("trimmed",)


def paper_table() -> Record:
    """Return the paper's table, cell by cell: `columns`, and `rows` by the names of our recipes."""
    table: Record = read_label_texts()["comp-alg"]["table"]
    return table


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each circuit."""
    count = scope.count(quick=40, full=400)
    names = (*paper_table()["rows"], *BEYOND)
    return {name: partial(measure, name, count, scope.seed) for name in names}


def measure(name: str, count: int, seed: int) -> Record:
    """Compare a circuit with its algorithm on `count` random problems.

    layers: each layer starts from the algorithm's centers. free: all layers run without
    correction, on continuous data only.
    """
    # its own random numbers, so that a new circuit does not change those of others
    rng = np.random.default_rng([seed, crc32(name.encode())])
    layers, free = Deviation(problems=0), Deviation(problems=0)
    if name == INFORMAL:
        for problem in small_problems(rng, count):
            free += compare_informal(problem, N_LAYERS)
        return {"layers": _as_record(layers), "free": _as_record(free)}
    # points that are shifted by 1e6 are no unit vectors
    families = [f for f in FAMILIES if not (f == "shifted" and "spherical" in name)]
    for number in range(count):  # every family and rule for ties in turn
        family = families[number % len(families)]
        turn = number // len(families) % 2
        ties: Ties = "average" if turn and has_average_ties(name) else "first"
        layers += layer_by_layer(draw_trial(rng, name, family, ties))
        if family in CONTINUOUS:  # on integers ties may turn a free run by rounding
            free += free_running(draw_trial(rng, name, family)) or Deviation(problems=0)
    return {"layers": _as_record(layers), "free": _as_record(free)}


def _as_record(found: Deviation) -> Record:
    # three digits: the last bits of a maximum depend on the machine
    deviation, decisions = float(f"{found.centers:.3g}"), found.labels + found.weights
    return {"problems": found.problems, "deviation": deviation, "decisions": decisions}


@dataclass(frozen=True)
class InformalWeights:
    """Queries, keys and values of the four attentions, and the two matrices of the network."""

    query: list[ndarray]
    key: list[ndarray]
    value: list[ndarray]
    w1: ndarray
    w2: ndarray


def informal_weights(problem: Problem) -> InformalWeights:
    """Return the weights for these points; the shift makes their least coordinate at least 0."""
    d, k = problem.points.shape[1], len(problem.centers)
    shift = max(0.0, -float(problem.points.min()))
    identity, row = np.eye(d + 2 + k), np.arange(d + 2 + k)
    position, codes = identity * (row < d + 2), identity * (row > d + 1)
    # With norm and -1/2 exchanged in the keys, a dot product of lifted tokens is
    # <x, c> - |x|^2 / 2 - |c|^2 / 2 = -|x - c|^2 / 2 (lem perm).
    swapped = position[[*range(d), d + 1, d, *range(d + 2, d + 2 + k)]]
    mean = identity * (row < d)
    # sum (c + b)^2 = |c|^2 + 2 b sum(c) + d b^2: V_3 takes off the last two, and keeps -1/2
    mean[d, :d], mean[d, d + 1], mean[d + 1, d + 1] = -2 * shift, 2 * d * shift**2, 1.0
    return InformalWeights(
        query=[position, position, codes, codes],
        key=[swapped, swapped, codes, codes],
        value=[codes, -codes, mean, -position],
        w1=np.hstack([np.eye(d), np.zeros((d, 2)), np.full((d, k), shift)]),
        w2=np.outer(np.ones(d), identity[d]),
    )


def compare_informal(problem: Problem, n_layers: int) -> Deviation:
    """Return the largest deviation from Lloyd's algorithm, over free-running layers."""
    d, k = problem.points.shape[1], len(problem.centers)
    lloyd = algorithms.run(algorithms.Lloyd(), problem.points, problem.centers, n_layers)
    weights = informal_weights(problem)
    x = _embed(problem.points, np.zeros((k, len(problem.points))))
    c = _embed(problem.centers, np.eye(k))
    worst, differing = 0.0, 0
    for expected, labels in zip(lloyd.centers[1:], lloyd.labels, strict=True):
        x, c = informal_layer(weights, x, c)
        worst = max(worst, float(np.abs(c[:d].T - expected).max()) / problem.spread)
        differing += int((x[d + 2 :].argmax(axis=0) != labels).sum())
    return Deviation(worst, labels=differing)


def _embed(places: ndarray, codes: ndarray) -> ndarray:
    """Return tokens as columns: place, squared norm, -1/2, code."""
    norms = np.square(places).sum(axis=1)
    return np.vstack([places.T, norms, np.full(len(places), -0.5), codes])


def informal_layer(weights: InformalWeights, x: ndarray, c: ndarray) -> tuple[ndarray, ndarray]:
    """Return the tokens after one layer of eq:l2-trf-ip-updates."""

    def attend(head: int, queries: ndarray, keys: ndarray) -> ndarray:
        """Return the output of limiting soft-max attention with dot products."""
        scores = (weights.key[head] @ keys).T @ (weights.query[head] @ queries)
        best = scores == scores.max(axis=0)
        attended: ndarray = weights.value[head] @ keys @ (best / best.sum(axis=0))
        return attended

    # self-attention is the identity, so that it takes off the old assignment and the old center
    x = x + attend(0, x, c) + attend(1, x, x)
    c = c + attend(2, c, x) + attend(3, c, c)
    return x, c + weights.w2.T @ np.square(np.maximum(weights.w1 @ c, 0.0))


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return the table as the recipes print it, and the deviations of each circuit."""
    rows = {recipe.name: list(recipe.row().values()) for recipe in recipes.table()}
    return {"columns": paper_table()["columns"], "rows": rows, "compared": dict(outputs)}


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return a verdict on the sentence of each circuit, then what the paper does not have."""
    judged = []
    for name, said in read_label_texts()["comp-alg"]["claims"].items():
        circuit = said["circuit"]
        circuits = STARRED if circuit == "starred" else (circuit,)
        parts = [part for each in circuits for part in result["compared"][each].values()]
        exact = all(p["deviation"] <= TOLERANCE and p["decisions"] == 0 for p in parts)
        answer = Answer.OPEN if exact and circuit in OPEN else judge(exact)
        here = f"{circuit}: {_describe(result, *circuits)}"
        judged.append(claim(f"comp-alg.{name}", here, answer))
    wrong = wrong_cells(result["rows"])
    n_cells = sum(map(len, paper_table()["rows"].values()))
    return [
        *judged,
        beyond("comp-alg.cells", f"{n_cells - len(wrong)} of {n_cells} cells", "; ".join(wrong)),
        beyond("comp-alg.binary", _describe(result, "lloyd_binary")),
    ]


def _summarise(result: Record, *circuits: str) -> tuple[int, float, int]:
    """Return the number of problems, the largest deviation in spreads, and differing decisions."""
    parts = [part for each in circuits for part in result["compared"][each].values()]
    worst = max(part["deviation"] for part in parts)
    return sum(p["problems"] for p in parts), worst, sum(p["decisions"] for p in parts)


def _describe(result: Record, *circuits: str) -> str:
    problems, worst, differing = _summarise(result, *circuits)
    return f"off by {worst:.0e} on {problems} problems, {differing} decisions differ"


def wrong_cells(rows: Mapping[str, list[str]]) -> list[str]:
    """Return every cell that differs from the paper's, in words."""
    wrong = []
    for name, row in paper_table()["rows"].items():
        ours = rows.get(name, [""] * len(row))
        for column, theirs, mine in zip(paper_table()["columns"], row, ours, strict=True):
            if mine != theirs:
                wrong.append(f"{name}, {column}: {mine} and not {theirs}")
    return wrong


def tables(result: Record) -> Sequence[TextTable]:
    """Return the paper's table and that of BEYOND, with problems and the largest deviation."""

    def deviations(name: str) -> tuple[str, str]:
        problems, worst, _ = _summarise(result, name)
        return str(problems), f"{worst:.0e}"

    columns = ("problems", "largest deviation")
    return [
        TextTable(
            "Configurations and their algorithms, printed from the recipes",
            [*result["columns"], *columns],
            [[*row, *deviations(name)] for name, row in result["rows"].items()],
        ),
        TextTable(
            "Beyond the table",
            ["recipe", "algorithm", "how", *columns],
            [[name, *words, *deviations(name)] for name, words in BEYOND.items()],
        ),
    ]
