"""Run the circuits of the demo, and compare each with its plain algorithm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.jobs.demo.data import cases, digits, plane
from lloydformer.jobs.one_thread import one_thread
from lloydformer.report.circuit import KEEP
from lloydformer.verify.cases import Case
from lloydformer.verify.compare import Deviation, layer_by_layer

TOLERANCE = 1e-9
"""Centers that differ by less, in spreads of the data, differ by rounding only."""


@dataclass(frozen=True)
class CircuitRun:
    """The trace of a circuit on one problem, and its deviation from the plain algorithm."""

    case: Case
    trace: Trace
    deviation: Deviation

    @property
    def equal(self) -> bool:
        return self.deviation.within(TOLERANCE)

    @property
    def verdict(self) -> str:
        return "equal" if self.equal else "differs"

    @property
    def measured(self) -> list[str]:
        """Data, objective at the start and at the end, labels, centers, verdict."""
        objective = [f"{v:#.5g}".rstrip(".") for v in self.trace.objective[[0, -1]].tolist()]
        off = [str(self.deviation.labels), one_digit(self.deviation.centers)]
        return [self.case.problem.family, *objective, *off, self.verdict]


def demo_cases(seed: int) -> list[Case]:
    """Every row of the table on the points in the plane, then on the digits."""
    return [*cases(plane(seed), seed), *cases(digits(seed), seed)]


def run_circuits(
    tried: Sequence[Case],
    n_layers: int,
    after: Callable[[CircuitRun], None] = lambda run: None,
) -> list[CircuitRun]:
    """Run each circuit and its algorithm; `after` is called after each."""
    done: list[CircuitRun] = []
    with one_thread():
        for case in tried:
            done.append(CircuitRun(case, _trace(case, n_layers), layer_by_layer(case, n_layers)))
            after(done[-1])
    return done


def as_rows(done: Sequence[CircuitRun]) -> dict[str, dict[str, object]]:
    """The measurements as JSON, by recipe and data."""
    rows: dict[str, dict[str, object]] = {}
    for run in done:
        row = rows.setdefault(run.case.recipe.name, {"algorithm": run.case.recipe.algorithm})
        row[run.case.problem.family] = {
            "objective_start": run.trace.objective[0].item(),
            "objective_end": run.trace.objective[-1].item(),
            "labels_differing": run.deviation.labels,
            "largest_deviation": run.deviation.centers,
            "verdict": run.verdict,
        }
    return rows


def one_digit(number: float) -> str:
    return f"{number:.0e}" if number else "0"


def _trace(case: Case, n_layers: int) -> Trace:
    points, centers = torch.tensor(case.problem.points), torch.tensor(case.problem.centers)
    circuit = Circuit(case.recipe, n_features=points.shape[1], n_clusters=len(centers))
    return circuit(points, centers, n_layers, keep=KEEP, seed=case.seed)
