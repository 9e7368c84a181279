"""Python code that runs a recipe and an algorithm on a problem again."""

import torch

from lloydformer.verify.checking.trial import FirstDifference, Trial
from lloydformer.verify.user_algorithm import StepAlgorithm


def snippet(difference: FirstDifference, known: bool) -> str:
    """Return Python code that runs both on the problem; it takes `recipe` and `algorithm`.

    known: whether the algorithm is that of `known_algorithm`; the code then makes it.
    """
    trial = difference.trial
    problem, step = trial.problem, isinstance(trial.algorithm, StepAlgorithm)
    dtype = ", np.float32" if trial.dtype == torch.float32 else ""
    lines = ["import numpy as np", "import lloydformer as lf"]
    if not step:
        lines.append("from lloydformer import algorithms")
    if known:
        lines.append("from lloydformer.verify.known import known_algorithm")
    lines.append("")
    for name in ("points", "centers"):
        lines.append(f"{name} = np.array({getattr(problem, name).tolist()}{dtype})")
    if known:
        lines.append(f"algorithm = known_algorithm(recipe, seed={trial.seed})")
    n_features, n_clusters = problem.points.shape[1], len(problem.centers)
    lines.append(f"circuit = lf.Circuit(recipe, n_features={n_features}, n_clusters={n_clusters})")
    lines.append(f"trace = circuit(points, centers, n_layers={trial.n_layers}, seed={trial.seed})")
    return "\n".join([*lines, *(_runs_step(trial) if step else _runs_algorithm(difference))])


def _runs_step(trial: Trial) -> list[str]:
    counts = isinstance(trial.algorithm, StepAlgorithm) and trial.algorithm.counts
    return [
        "new = centers",
        f"for iteration in range({trial.n_layers}):",
        f"    new = algorithm(points, new{', iteration' if counts else ''})",
        "print(trace.centers[-1].numpy())  # the circuit",
        "print(new)  # the algorithm",
    ]


def _runs_algorithm(difference: FirstDifference) -> list[str]:
    last = "assignments" if difference.kind == "assignment" else "centers"
    return [
        f"history = algorithms.run(algorithm, points, centers, {difference.trial.n_layers})",
        f"print(trace.{last}[-1].numpy())  # the circuit",
        f"print(history.{last}[-1])  # the algorithm",
    ]
