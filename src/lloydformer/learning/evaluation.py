"""Comparison of a trained layer with Lloyd's algorithm, on new tasks, over many steps."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.random_numbers import Dropout, stream_keys
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.stacked_layer import FlatLayer
from lloydformer.learning.tasks import Batch, Tasks

# Upper bound of the encoder self-attention scores in memory at a time: 512 MiB in float32.
_CELLS = 1 << 27


@dataclass(frozen=True)
class Comparison:
    """Hold the log objectives of Lloyd's algorithm and of trained layers on the same tasks.

    Parameters
    ----------
    by_lloyd : Tensor of shape (r, b, s + 1)
        Log objective of each run and task under Lloyd's algorithm, before the first step and
        after each of s steps.
    by_layer : Tensor of shape (r, b, s + 1)
        The same under the layer.
    centers : Tensor of shape (r, b, k, d)
        Centers after the layer's last step.

    See Also
    --------
    compare : Makes comparisons.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.learning.load_pretrained("d4-k6")
    >>> tasks = found.settings.tasks
    >>> result = lf.learning.compare(found.layer, found.weights, tasks, n_tasks=4, n_steps=3)
    >>> result.by_layer.shape, result.centers.shape
    (torch.Size([1, 4, 4]), torch.Size([1, 4, 6, 4]))
    """

    by_lloyd: Float[Tensor, "r b s"]
    by_layer: Float[Tensor, "r b s"]
    centers: Float[Tensor, "r b k d"]

    @property
    def n_tasks(self) -> int:
        """Return the number of tasks of each run.

        See Also
        --------
        compare : Makes comparisons.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> logs = torch.zeros(1, 4, 3)
        >>> lf.learning.Comparison(logs, logs, torch.zeros(1, 4, 6, 2)).n_tasks
        4
        """
        return self.by_layer.shape[1]

    @property
    def lloyd(self) -> Float[Tensor, "r s"]:
        """Return Lloyd's mean log objective over the tasks, (r, s + 1).

        See Also
        --------
        Comparison.transformer : The same of the layer.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> logs = torch.tensor([[[3.0, 2.0], [5.0, 4.0]]])
        >>> lf.learning.Comparison(logs, logs, torch.zeros(1, 2, 6, 2)).lloyd
        tensor([[4., 3.]])
        """
        return self.by_lloyd.mean(dim=1)

    @property
    def transformer(self) -> Float[Tensor, "r s"]:
        """Return the layer's mean log objective over the tasks, (r, s + 1).

        See Also
        --------
        Comparison.lloyd : The same of Lloyd's algorithm.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> logs = torch.tensor([[[3.0, 2.0], [5.0, 4.0]]])
        >>> lf.learning.Comparison(logs, logs, torch.zeros(1, 2, 6, 2)).transformer
        tensor([[4., 3.]])
        """
        return self.by_layer.mean(dim=1)

    def row(self) -> tuple[float, float, float]:
        """Average over runs and tasks: a row of tab:mix-res of the paper.

        Returns
        -------
        tuple of float
            The mean log objective of the initial centers, of Lloyd's last centers and of the
            layer's last centers.

        See Also
        --------
        Comparison.lloyd : The mean of each run and step.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> lloyd, layer = torch.tensor([[[3.0, 2.0]]]), torch.tensor([[[3.0, 1.5]]])
        >>> lf.learning.Comparison(lloyd, layer, torch.zeros(1, 1, 6, 2)).row()
        (3.0, 2.0, 1.5)
        """
        ends = self.lloyd[:, 0], self.lloyd[:, -1], self.transformer[:, -1]
        initial, lloyd, transformer = (float(end.mean()) for end in ends)
        return initial, lloyd, transformer


def compare(
    layer: FlatLayer,
    weights: Float[Tensor, "r p"],
    tasks: Tasks,
    family: str = "normal",
    n_tasks: int = 320,
    n_steps: int = 20,
    seed: int = 0,
) -> Comparison:
    """Compare trained layers with Lloyd's algorithm, from the same centers on new tasks.

    All runs get the same tasks, and no task is one of training or validation.

    Parameters
    ----------
    layer : FlatLayer
        The layer, for example `load("d32-k10").layer`.
    weights : Tensor of shape (r, p)
        Weights of each run; their device is used.
    tasks : Tasks
        Distribution of the tasks.
    family : str, default="normal"
        Family of the tasks.
    n_tasks : int, default=320
        Number of tasks.
    n_steps : int, default=20
        Number of steps of both.
    seed : int, default=0
        Seed of the tasks.

    Returns
    -------
    Comparison
        Log objectives of every run, task and step.

    See Also
    --------
    load_pretrained : Load trained weights.
    train : Train weights.

    Examples
    --------
    >>> import lloydformer as lf
    >>> found = lf.learning.load_pretrained("d16-k6")
    >>> tasks = found.settings.tasks
    >>> result = lf.learning.compare(found.layer, found.weights, tasks, n_tasks=8, n_steps=5)
    >>> initial, lloyd, transformer = result.row()
    >>> transformer < lloyd < initial
    True
    """
    batch = draw_unseen(tasks, family, n_tasks, seed, weights.device)
    return compare_on(batch, layer, weights, n_steps, seed)


def draw_unseen(
    tasks: Tasks,
    family: str = "normal",
    n_tasks: int = 320,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Batch:
    """Draw tasks that no run is trained or validated on, as a batch of one run."""
    seeds = _seeds(seed, device)
    return tasks.draw((family,), seeds, torch.zeros_like(seeds[0]), n_tasks)


def draw_validation(settings: Settings, run: Run, n_tasks: int, device: str = "cpu") -> Batch:
    """Return the first tasks on which a run was validated, as a batch of one run."""
    zero = torch.zeros((), dtype=torch.int64, device=device)
    seeds = stream_keys(torch.tensor([run.seed], device=device), "validation", zero)
    return settings.tasks.draw((run.family,), seeds, zero, n_tasks)


@torch.no_grad()
def compare_on(
    batch: Batch,
    layer: FlatLayer,
    weights: Float[Tensor, "r p"],
    n_steps: int = 20,
    seed: int = 0,
    dropout: float = 0.0,
) -> Comparison:
    """Compare on given tasks, from their centers.

    seed: of the points for empty clusters. dropout: the share of attention weights that is dropped
    in evaluation too, as the authors' code does; 0 for none.
    """
    seeds = _seeds(seed, weights.device)
    size = max(1, _CELLS // (len(weights) * batch.points.shape[2] ** 2))
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    chunks = (torch.split(whole.to(weights), size, dim=1) for whole in batch)
    for part, (points, centers) in enumerate(zip(*chunks, strict=True)):
        by_lloyd = lloyd_path(points, centers, seeds, n_steps)
        # All runs get the same tasks: they are expanded, not copied.
        many = points.expand(len(weights), -1, -1, -1)
        by_layer = [centers.expand(len(weights), -1, -1, -1)]
        for step in range(n_steps):  # recipes with noise draw other numbers in each step
            drops = None
            if dropout:  # other weights in each step, and for each part of the tasks
                number = torch.tensor(part * n_steps + step, device=weights.device)
                own = seeds + torch.arange(len(weights), device=weights.device)
                drops = Dropout(own, number, dropout)
            by_layer.append(layer(weights, many, by_layer[-1], drops, step))
        parts.append((_logs(points, by_lloyd), _logs(many, by_layer), by_layer[-1]))
    lloyd, transformer, last = (
        torch.cat(column, dim=1).cpu() for column in zip(*parts, strict=True)
    )
    return Comparison(lloyd.expand_as(transformer), transformer, last)


def _seeds(seed: int, device: str | torch.device) -> Int[Tensor, " 1"]:
    """Return a seed that neither training nor validation uses; validation has step 0."""
    step = torch.full((), -1, dtype=torch.int64, device=device)  # no training step has this number
    return stream_keys(torch.full((1,), seed, device=device), "validation", step)


def _logs(points: Tensor, path: list[Tensor]) -> Float[Tensor, "r b s"]:
    """Return the log objective of the centers before the first step and after each."""
    objectives = [smoothed_objective(points, now, smoothing="exact") for now in path]
    return torch.stack(objectives, dim=-1).log()
