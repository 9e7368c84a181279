"""Lloyd's algorithm and a trained layer from the same centers, on batches of tasks.

The objective after each step, its figure, and other initial centers for the same tasks.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import Comparison, compare_on
from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Record, Scope
from lloydformer.paper.verdict import standard_error
from lloydformer.plots.curves import ribbon
from lloydformer.solving.batch.by_tensors import kmeans_plusplus, random_rows
from lloydformer.solving.batch.steps import DenseProblems

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Steps of fig:trf-train and fig:mix-res.
N_STEPS = 20
# The lines of the figures; only a full scope has the model that eq:l2-trf-updates prints.
NAMES = {
    "lloyd": "Lloyd's algorithm",
    "transformer": "trained transformer",
    "printed": "trained transformer, as the text prints it",
}
# Candidates for each center in plain k-means++, as published. The paper's numbers fit it: from
# greedy starts the order of both algorithms would turn (trf-train.json).
PLAIN = 1


def compare_with_lloyd(
    batch: Batch, layers: list[Pretrained], scope: Scope, printed: Sequence[Pretrained] = ()
) -> tuple[Comparison, Record]:
    """Run both from the centers of the batch; return the comparison and its summary as JSON.

    printed: layers of the model that the text prints, which start from the same centers.
    won: the share of tasks on which the layer ends below Lloyd's algorithm.
    """
    comparison = _compare(batch, layers, scope)
    lower = comparison.by_layer[..., -1] < comparison.by_lloyd[..., -1]
    summary = {
        "n_tasks": comparison.n_tasks,
        "n_layers": len(layers),
        "lloyd": _summarise_steps(comparison.by_lloyd),
        "transformer": _summarise_layers(comparison),
        "won": rounded_mean(lower),
    }
    if printed:
        summary["printed"] = _summarise_layers(_compare(batch, printed, scope))
    return comparison, summary


def _compare(batch: Batch, layers: Sequence[Pretrained], scope: Scope) -> Comparison:
    weights = torch.cat([layer.weights for layer in layers]).to(scope.device)
    return compare_on(batch, layers[0].layer, weights, N_STEPS, scope.seed)


def _summarise_layers(comparison: Comparison) -> Record:
    by_layer = [round(v, 5) for v in comparison.transformer[:, -1].tolist()]
    return {**_summarise_steps(comparison.by_layer), "by_layer": by_layer}


def _summarise_steps(logs: Float[Tensor, "r b s"]) -> Record:
    """Return mean, minimum, maximum and standard error at each step, over tasks and layers."""
    flat = logs.double().flatten(0, 1)
    parts = {
        "mean": flat.mean(dim=0),
        "low": flat.amin(dim=0),
        "high": flat.amax(dim=0),
        # only the tasks are independent: layers are evaluated on the same ones
        "error": flat.std(dim=0, correction=0) / logs.shape[1] ** 0.5,
    }
    return {name: [round(v, 5) for v in part.tolist()] for name, part in parts.items()}


# Attention weights that the authors' code drops, in evaluation as in training.
DROPOUT = 0.01


def compare_with_dropout(batch: Batch, layers: list[Pretrained], seed: int) -> Record:
    """Run layers from the centers of the batch as the authors' code does, and without dropout.

    Their lines are medians over the layers of the means over tasks, their ribbons go from the least
    to the greatest layer. change: what dropout adds to the log objective after the last step, on
    the same tasks, and its standard error.
    """
    weights = torch.cat([layer.weights for layer in layers]).to(batch.points.device)
    dropped, plain = (
        compare_on(batch, layers[0].layer, weights, N_STEPS, seed, dropout)
        for dropout in (DROPOUT, 0.0)
    )
    added = (dropped.by_layer[..., -1] - plain.by_layer[..., -1]).double().mean(dim=0)
    return {
        "n_tasks": dropped.n_tasks,
        "n_layers": len(layers),
        "lloyd": [round(v, 5) for v in dropped.lloyd[0].tolist()],
        "dropout": _over_layers(dropped.transformer),
        "plain": _over_layers(plain.transformer),
        "change": [rounded_mean(added), standard_error(added.numpy())],
        "error": standard_error(dropped.by_layer[..., -1].double().mean(dim=0).numpy()),
    }


def compare_layers(batch: Batch, layers: list[Pretrained], seed: int) -> float:
    """Return the median over layers of the mean log objective after the last step."""
    weights = torch.cat([layer.weights for layer in layers]).to(batch.points.device)
    found = compare_on(batch, layers[0].layer, weights, N_STEPS, seed)
    return float(found.transformer[:, -1].double().quantile(0.5))


def _over_layers(means: Float[Tensor, "r s"]) -> Record:
    """Return median, minimum and maximum over layers at each step."""
    parts = {
        # torch's median of an even number is the lower of the two in the middle
        "median": means.double().quantile(0.5, dim=0),
        "low": means.amin(dim=0),
        "high": means.amax(dim=0),
    }
    return {name: [round(v, 5) for v in part.tolist()] for name, part in parts.items()}


def rounded_mean(values: Tensor) -> float:
    """Return the mean to the five decimals that are saved."""
    return round(float(values.double().mean()), 5)


def final_row(summary: Record) -> Record:
    """Return the mean log objectives: of the initial centers, and of NAMES after the last step."""
    last = {who: summary[who]["mean"][-1] for who in NAMES if who in summary}
    return {"initial": summary["lloyd"]["mean"][0], **last}


def greedy_candidates(n_clusters: int) -> int:
    """Return the candidates for each center in greedy k-means++, as in scikit-learn."""
    return 2 + int(math.log(n_clusters))


def start_plusplus(batch: Batch, candidates: int, seed: int) -> Batch:
    """Return the tasks with k-means++ centers; each is the best of `candidates` draws."""
    points, k = batch.points[0], batch.centers.shape[2]
    draws = _draw_uniform(seed, len(points), k, candidates)
    weights = torch.ones(points.shape[:2], dtype=torch.float64, device=points.device)
    seeds = torch.zeros(len(points), dtype=torch.int64, device=points.device)  # of no noise
    unit = weights[:, 0]  # 1 for each problem
    problems = DenseProblems(points.double(), weights, seeds, unit)
    return _start_at_rows(batch, kmeans_plusplus(problems, draws))


def start_at_random(batch: Batch, seed: int) -> Batch:
    """Return the tasks with other random points as centers."""
    draws = _draw_uniform(seed, *batch.points.shape[1:3])
    return _start_at_rows(batch, random_rows(torch.ones_like(draws), batch.centers.shape[2], draws))


def _start_at_rows(batch: Batch, rows: Tensor) -> Batch:
    """Return the tasks with these rows of their points as centers."""
    places = rows.to(batch.points.device)[None, :, :, None]
    return Batch(batch.points, batch.points.gather(2, places.expand_as(batch.centers)))


def _draw_uniform(seed: int, *shape: int) -> Tensor:
    # on the CPU, so that every device has the same starts
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=torch.float64)


@torch.no_grad()
def run_lloyd_steps(batch: Batch, n_steps: int, seed: int) -> Float[Tensor, "r b"]:
    """Return the log objective after `n_steps` Lloyd steps from the centers of the batch.

    The centers may have a longer first axis than the points, which are then shared.
    """
    points, centers = batch
    seeds = torch.full((len(centers),), seed, device=points.device)
    ends = lloyd_path(points, centers, seeds, n_steps)[-1]
    # a view: the points of 320 tasks are not copied for every layer
    points = points.expand(len(centers), -1, -1, -1)
    return smoothed_objective(points, ends, smoothing="exact").log().cpu()


def best_of_starts(batches: list[Batch], n_steps: int, seed: int) -> Float[Tensor, " b"]:
    """Return the lowest final log objective of each task over several starts."""
    return torch.stack([run_lloyd_steps(batch, n_steps, seed)[0] for batch in batches]).amin(dim=0)


def draw_comparison(curves: Mapping[str, Record], share_y: bool = False) -> "Figure":
    """Return a figure with a panel for each title: the objectives over the steps.

    Lines are means, ribbons go from minimum to maximum. share_y: one vertical axis for all.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes: Sequence[Axes] = figure.subplots(1, len(curves), sharey=share_y)
    for ax, (title, summary) in zip(axes, curves.items(), strict=True):
        for number, (who, name) in enumerate(NAMES.items()):
            if who not in summary:
                continue
            mean, low, high = (summary[who][key] for key in ("mean", "low", "high"))
            ribbon(range(len(mean)), mean, low, high, ax, name, number, dashed=number > 0)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("clustering step")
        ax.set_title(title, fontsize=10)
    axes[0].set_ylabel("log k-means objective")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure
