"""Lloyd's algorithm and a trained layer from the same centers: the objective after each step."""

from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.evaluation import Comparison, compare_on
from lloydformer.learning.pretrained import Pretrained
from lloydformer.learning.tasks import Batch
from lloydformer.paper.artefact import Record
from lloydformer.paper.scope import Scope
from lloydformer.paper.trained_layers import stacked

N_STEPS = 20
NAMES = {"lloyd": "Lloyd's algorithm", "transformer": "trained transformer"}


def compare_with_lloyd(
    batch: Batch, layers: list[Pretrained], scope: Scope
) -> tuple[Comparison, Record]:
    """Run both from the centers of the batch; returns the comparison and its summary as JSON.

    won: the share of tasks on which the layer ends below Lloyd's algorithm.
    """
    weights = stacked(layers, scope.device)
    found = compare_on(batch, layers[0].layer, weights, N_STEPS, scope.seed)
    lower = found.by_layer[..., -1] < found.by_lloyd[..., -1]
    return found, {
        "n_tasks": found.n_tasks, "n_layers": len(layers),
        "lloyd": curve(found.by_lloyd), "transformer": curve(found.by_layer),
        "won": rounded(float(lower.double().mean())),
    }  # fmt: skip


def curve(logs: Float[Tensor, "r b s"]) -> Record:
    """Mean, standard error, minimum and maximum at each step, over tasks and layers."""
    flat, n_tasks = logs.double().flatten(0, 1), logs.shape[1]
    parts = {
        "mean": flat.mean(dim=0), "low": flat.amin(dim=0), "high": flat.amax(dim=0),
        "error": flat.std(dim=0, correction=0) / n_tasks**0.5,
    }  # fmt: skip
    return {name: [rounded(v) for v in part.tolist()] for name, part in parts.items()}


def final_mean(found: Record, who: str) -> float:
    """The mean log objective after the last step; `who` is a key of NAMES."""
    last: float = found[who]["mean"][-1]
    return last


def rounded(value: float) -> float:
    """To the five decimals that are saved."""
    return round(value, 5)
