"""The runs of the demo: circuits on built-in data, each compared with its plain algorithm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy import ndarray
from sklearn.datasets import load_digits

from lloydformer.app.jobs.torch_threads import torch_threads
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.paper.verify.compare import Deviation, layer_by_layer
from lloydformer.paper.verify.known import paired_algorithm
from lloydformer.paper.verify.problems import Problem, with_centers
from lloydformer.paper.verify.trials import Trial
from lloydformer.plots.report.circuit import KEEP

PLANE, DIGITS = "plane", "digits"
# Clusters on a ring around the origin, so that they have different directions too, and outliers
# outside of the ring.
_MIDDLES = np.array([[-2.7, 1.3], [0.0, 3.0], [2.7, 1.3], [1.8, -2.0], [-1.8, -2.0]])
_OUTLIERS = np.array([[-5.0, 3.7], [4.3, 4.7], [5.3, -2.7], [-4.7, -4.0], [0.3, -5.0]])

# Centers that differ by less, in spreads of the data, differ by rounding only: the numbers policy
# of exact circuits in float64 (docs/guarantees.md).
TOLERANCE = 1e-9


@dataclass(frozen=True)
class CircuitRun:
    """The trace of a circuit on one problem, and its deviation from the plain algorithm."""

    case: Trial
    trace: Trace
    deviation: Deviation

    @property
    def equal(self) -> bool:
        return self.deviation.within(TOLERANCE)

    @property
    def verdict(self) -> str:
        return "equal" if self.equal else "differs"

    @property
    def cells(self) -> list[str]:
        """Data, objective at the start and at the end, labels, centers, verdict."""
        objective = [f"{v:#.5g}".rstrip(".") for v in self.trace.objective[[0, -1]].tolist()]
        off = [str(self.deviation.labels), format_deviation(self.deviation.centers)]
        return [self.case.problem.family, *objective, *off, self.verdict]


def format_deviation(number: float) -> str:
    """Return a number with one digit, as 2e-16."""
    return f"{number:.0e}" if number else "0"


def demo_cases(seed: int) -> list[Trial]:
    """Return every row of the table on the points in the plane, then on the digits."""
    return [*make_cases(make_plane(seed), seed), *make_cases(load_images(seed), seed)]


def make_plane(seed: int, n_points: int = 120) -> Problem:
    """Return five round clusters around the origin, and five outliers; k = 5."""
    rng = np.random.default_rng(seed)
    n_inside = n_points - len(_OUTLIERS)
    middles = _MIDDLES[np.arange(n_inside) % len(_MIDDLES)]
    points = np.concatenate([middles + 0.75 * rng.normal(size=middles.shape), _OUTLIERS])
    # Starts are rows of the clusters, never outliers.
    return Problem(points, points[rng.choice(n_inside, size=5, replace=False)], PLANE)


def load_images(seed: int, n_points: int = 500) -> Problem:
    """Return the first images of scikit-learn's digits, 8 by 8 with values from 0 to 1; k = 10."""
    points = load_digits().data[:n_points] / 16  # grey values are from 0 to 16
    return with_centers(np.random.default_rng(seed), points, 10, DIGITS)


def make_cases(problem: Problem, seed: int) -> list[Trial]:
    """Return every row of the table on this problem, with the algorithm that it must equal."""
    directions = to_directions(problem)
    return [
        Trial(r, paired_algorithm(r, seed), directions if r.norm else problem, seed=seed)
        for r in recipes.table()
    ]


def to_directions(problem: Problem) -> Problem:
    """Return the rows as unit vectors, which circuits with a norm need.

    Points in the plane are centered first, so that they lie all around the circle; images are not.
    """

    def normalize(rows: ndarray) -> ndarray:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    origin = problem.points.mean(axis=0) if problem.family == PLANE else 0.0
    points, centers = normalize(problem.points - origin), normalize(problem.centers - origin)
    return Problem(points, centers, problem.family)


def run_circuits(
    cases: Sequence[Trial], n_layers: int, after: Callable[[CircuitRun], None] = lambda run: None
) -> list[CircuitRun]:
    """Run each circuit and its algorithm; `after` is called after each."""
    runs: list[CircuitRun] = []
    with torch_threads(1):
        for case in cases:
            points, centers = torch.tensor(case.problem.points), torch.tensor(case.problem.centers)
            circuit = Circuit(case.recipe, n_features=points.shape[1], n_clusters=len(centers))
            trace = circuit(points, centers, n_layers, names_filter=KEEP, seed=case.seed)
            runs.append(CircuitRun(case, trace, layer_by_layer(replace(case, n_layers=n_layers))))
            after(runs[-1])
    return runs


def as_rows(runs: Sequence[CircuitRun]) -> dict[str, dict[str, object]]:
    """Return the measurements for JSON, by recipe and data."""
    rows: dict[str, dict[str, object]] = {}
    for run in runs:
        row = rows.setdefault(run.case.recipe.name, {"algorithm": run.case.recipe.algorithm})
        row[run.case.problem.family] = {
            "objective_start": run.trace.objective[0].item(),
            "objective_end": run.trace.objective[-1].item(),
            "labels_differing": run.deviation.labels,
            "largest_deviation": run.deviation.centers,
            "verdict": run.verdict,
        }
    return rows
