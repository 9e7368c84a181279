"""Lloyd's algorithm and the trained layer over the steps: mean and range over the tasks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import Comparison, compare_on
from lloydformer.learning.pretrained import Pretrained
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Found
from lloydformer.paper.layers import stacked
from lloydformer.paper.scope import Scope
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.ribbons import ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_STEPS = 20
NAMES = {"lloyd": "Lloyd's algorithm", "transformer": "trained transformer"}


def contest(batch: Batch, layers: list[Pretrained], scope: Scope) -> tuple[Comparison, Found]:
    """Both from the centers of the batch, and what of it is kept."""
    weights = stacked(layers, scope.device)
    found = compare_on(batch, layers[0].layer, weights, N_STEPS, scope.seed)
    lower = found.by_layer[..., -1] < found.by_lloyd[..., -1]
    return found, {
        "n_tasks": found.n_tasks, "n_layers": len(layers),
        "lloyd": curve(found.by_lloyd), "transformer": curve(found.by_layer),
        "won": short(float(lower.double().mean())),
    }  # fmt: skip


def curve(logs: Float[Tensor, "r b s"]) -> Found:
    """Mean, its standard error, least and greatest at each step, over tasks and layers."""
    flat, n_tasks = logs.double().flatten(0, 1), logs.shape[1]
    parts = {
        "mean": flat.mean(dim=0), "low": flat.amin(dim=0), "high": flat.amax(dim=0),
        "error": flat.std(dim=0, correction=0) / n_tasks**0.5,
    }  # fmt: skip
    return {name: [short(v) for v in part.tolist()] for name, part in parts.items()}


def end(found: Found, who: str) -> float:
    """The mean log objective after the last step."""
    last: float = found[who]["mean"][-1]
    return last


def short(value: float) -> float:
    return round(value, 5)


def panels(curves: Mapping[str, Found], shared: bool = False) -> "Figure":
    """A panel for each title, as in fig:trf-train: lines are means, ribbons from least to most.

    shared: all with the same vertical axis.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    row: Sequence[Axes] = figure.subplots(1, len(curves), sharey=shared)
    for ax, (title, found) in zip(row, curves.items(), strict=True):
        _draw(ax, found)
        ax.set_title(title, fontsize=10)
    row[0].set_ylabel("log k-means objective")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw(ax: "Axes", found: Found) -> None:
    for number, (who, name) in enumerate(NAMES.items()):
        of = found[who]
        steps = range(len(of["mean"]))
        ribbon(steps, of["mean"], of["low"], of["high"], ax, name, number, dashed=number > 0)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("clustering step")
