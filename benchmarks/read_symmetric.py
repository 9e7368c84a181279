"""Reads the learned symmetric layer: what its numbers are, and what is lost without each.

`LLOYDFORMER_DATA=folder python benchmarks/read_symmetric.py` (minutes on one core) writes
results/read_symmetric.json; `python benchmarks/symmetric_page.py` fills docs/symmetric.md from it.
Numbers are changed in the trained layer, and nothing is trained again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from provenance import provenance, save
from torch import Tensor

import lloydformer as lf
from lloydformer.learning.symmetric.circuit import measure_invariants
from lloydformer.learning.symmetric.layer import (
    INVARIANTS,
    RANGES,
    Frame,
    SymmetricLayer,
    distances_by_product,
)
from lloydformer.learning.symmetric.model import SymmetricModel, load_symmetric
from lloydformer.learning.symmetric.training import lloyd_keeping_empty, times
from lloydformer.learning.tasks import Tasks

N_TASKS, N_MANY, N_TRIALS, N_STEPS, SEED = 64, 24, 12, 10, 9
# Sets on which the model was chosen; the others of the paper's fifteen are not looked at.
SETS = ("gina-agnostic", "mfeat-factors", "ada-agnostic", "oil-spill", "pc4")
ROWS, COLUMNS, CLUSTERS = 900, 32, 10
SOLVED = 1e-3
N_LOOKED = 8


class Problems(NamedTuple):
    points: Tensor
    centers: Tensor
    best: Tensor
    """The least inertia of 20 greedy k-means++ starts."""


def mixtures(tasks: Tasks, n_tasks: int) -> Problems:
    batch = tasks.draw(("normal",), torch.tensor([SEED]), torch.tensor(0), n_tasks)
    return _with_best(batch.points[0], batch.centers[0])


def real(folder: Path) -> Problems:
    rng = np.random.default_rng(SEED)
    sets = [np.load(folder / f"{name}.npz")["X"].astype(np.float32) for name in SETS]
    points = torch.from_numpy(np.stack([_part(x, rng) for x in sets for _ in range(N_TRIALS)]))
    return _with_best(points, points[:, :CLUSTERS].clone())


def _part(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows and columns by chance, columns scaled to [0, 1]; rows are in no order."""
    x = x[rng.choice(len(x), ROWS, replace=False)]
    x = x[:, rng.permutation(x.shape[1])[:COLUMNS]]
    low, high = x.min(axis=0), x.max(axis=0)
    scaled = (x - low) / np.where(high > low, high - low, 1.0)
    return np.pad(scaled, ((0, 0), (0, COLUMNS - scaled.shape[1])))


def _with_best(points: Tensor, centers: Tensor) -> Problems:
    best = lf.fit_batch(points, centers.shape[1], n_init=20, random_state=SEED, tol=0.0).inertia
    return Problems(points, centers, torch.as_tensor(best))


# Writes into a copy of the weights, (numbers, invariants).
Change = Callable[[SymmetricModel, Tensor], None]


def kinds(*names: str, heads: slice = slice(None), times: float = 0.0) -> Change:
    def change(model: SymmetricModel, theta: Tensor) -> None:
        for name in names:
            theta[model.numbers.rows(name)][heads] *= times

    return change


def columns(*names: str, at: float = 0.0, of: str = "") -> Change:
    """Numbers no longer know an invariant: it is always the same, 0 in the middle of its range.

    of: one kind of numbers; all without it.
    """

    def change(model: SymmetricModel, theta: Tensor) -> None:
        rows = theta[model.numbers.rows(of)] if of else theta
        for name in names:
            rows[:, 0] += at * rows[:, INVARIANTS.index(name)]
            rows[:, INVARIANTS.index(name)] = 0

    return change


def sharp_as(head: int) -> Change:
    def change(model: SymmetricModel, theta: Tensor) -> None:
        rows = theta[model.numbers.rows("sharpness")]
        rows[:] = rows[head].clone()

    return change


def given_to(head: int, *others: int) -> Change:
    """One head goes the way of others as well."""

    def change(model: SymmetricModel, theta: Tensor) -> None:
        rows = theta[model.numbers.rows("stride")]
        for other in others:
            rows[head] += rows[other]
            rows[other] = 0

    return change


def no_longer(model: SymmetricModel, theta: Tensor) -> None:
    """Strides whose sum is 1 in the middle of all ranges."""
    rows = theta[model.numbers.rows("stride")]
    rows /= rows[:, 0].sum()


CHANGES: dict[str, Change] = {
    "as learned": kinds(),
    "all heads as soft as the softest": sharp_as(0),
    "all heads as sharp as the sharpest": sharp_as(-1),
    "strides of the two soft heads given to the sharpest": given_to(3, 0, 1),
    "strides of the two sharp heads given to the softest": given_to(0, 2, 3),
    "strides that sum to 1": no_longer,
    "no repulsion": kinds("apart"),
    "no soft repulsion": kinds("apart", heads=slice(0, 1)),
    "no sharp repulsion": kinds("apart", heads=slice(1, 2)),
    "blind to badly served points": kinds("nearest", "second"),
    "blind to the nearest center's distance": kinds("nearest"),
    "blind to the second nearest's": kinds("second"),
    "no belonging": kinds("belonging"),
    "no distance": kinds("distance"),
    "no invariant": columns(*RANGES),
    "all centers alike": columns("members", "share"),
    "all centers alike in their strides": columns("members", "share", of="stride"),
    "time stands still at the start": columns("time", at=-1.0),
    "time stands still at the end": columns("time", at=1.0),
    **{f"no {name}": columns(name) for name in RANGES},
}


@torch.no_grad()
def run(model: SymmetricModel, theta: Tensor, problems: Problems) -> dict[str, float]:
    """Means of the log objective, of the percentage above the best, and of the tasks solved."""
    frame = Frame.of(problems.points)
    points, now = frame.inside(problems.points), frame.inside(problems.centers).unsqueeze(1)
    layer = SymmetricLayer(model.numbers)
    for time in times(N_STEPS):
        now = layer(theta.reshape(1, -1), points, now, time)
    return _measure(problems, frame, points, now)


@torch.no_grad()
def by_lloyd(problems: Problems) -> dict[str, float]:
    frame = Frame.of(problems.points)
    points, now = frame.inside(problems.points), frame.inside(problems.centers).unsqueeze(1)
    for _ in range(N_STEPS):
        now = lloyd_keeping_empty(points, now)
    return _measure(problems, frame, points, now)


def _measure(problems: Problems, frame: Frame, points: Tensor, now: Tensor) -> dict[str, float]:
    """As it is, and after as many steps of Lloyd's algorithm."""
    raw = _above(problems, frame, now)
    for _ in range(N_STEPS):
        now = lloyd_keeping_empty(points, now)
    return {**raw, "polished": _above(problems, frame, now)["excess"]}


def _above(problems: Problems, frame: Frame, now: Tensor) -> dict[str, float]:
    least = distances_by_product(frame.inside(problems.points), now).amin(dim=2)[:, 0].sum(dim=-1)
    found = least * frame.unit[:, 0, 0].square()
    excess = found / problems.best - 1
    return {
        "log_objective": found.log().mean().item(),
        "excess": 100 * excess.mean().item(),
        "solved": 100 * (excess < SOLVED).double().mean().item(),
    }


@torch.no_grad()
def along(model: SymmetricModel, problems: Problems) -> list[dict[str, Any]]:
    """The numbers of each step: means over problems and centers, and of centers apart."""
    frame = Frame.of(problems.points)
    points, now = frame.inside(problems.points), frame.inside(problems.centers).unsqueeze(1)
    theta, layer = model.theta, SymmetricLayer(model.numbers)
    rows = []
    for time in times(N_STEPS):
        z, _ = measure_invariants(points, now[:, 0], time)
        rows.append(_read(model, theta, z.unsqueeze(1)))
        now = layer(theta.reshape(1, -1), points, now, time)
    return rows


def _read(model: SymmetricModel, theta: Tensor, z: Tensor) -> dict[str, Any]:
    at = model.numbers.evaluate(theta[None], z)
    soft, hard = at["stride"][..., :2].sum(dim=-1), at["stride"][..., 2:].sum(dim=-1)
    badly = (at["nearest"] + at["second"]).mean(dim=-1)
    poor, rich = _ends(z)
    each = {"soft": soft, "sharp": hard, "served": badly, "apart": at["apart"].sum(dim=-1)}
    return {
        "invariants": dict(zip(INVARIANTS, z.mean(dim=(0, 1, 2)).tolist(), strict=True)),
        "sharpness": at["sharpness"].log().mean(dim=(0, 1)).exp().tolist(),
        "strides": at["stride"].mean(dim=(0, 1, 2)).tolist(),
        "apart_sharpness": at["apart_sharpness"].log().mean(dim=(0, 1, 2)).exp().tolist(),
        "aparts": at["apart"].mean(dim=(0, 1, 2)).tolist(),
        **{name: value.mean().item() for name, value in each.items()},
        "poor": {name: value[poor].mean().item() for name, value in each.items()},
        "rich": {name: value[rich].mean().item() for name, value in each.items()},
    }


def _ends(z: Tensor) -> tuple[Tensor, Tensor]:
    """The quarters of the centers that have the least and the greatest share of the cost."""
    share = z[..., INVARIANTS.index("share")]
    return share <= share.quantile(0.25), share >= share.quantile(0.75)


@torch.no_grad()
def looks(model: SymmetricModel, problems: Problems) -> list[dict[str, float]]:
    """Whom decoder heads look at in the first step, as the literal circuit's trace has it."""
    (_, _, d), k = problems.points.shape, problems.centers.shape[1]
    points, centers = problems.points[:N_LOOKED], problems.centers[:N_LOOKED]
    trace = model.circuit(d, k)(points, centers, N_STEPS, names_filter="layers.0.*")
    poor, rich = _ends(trace["layers.0.numbers.invariants"])
    names = [name for name in trace.kept if "decoder_cross" in name and "attention" in name]
    found = []
    for attention in (trace[name] for name in names):
        own = (attention * trace.assignments[:, 0].mT).sum(dim=-1)
        entropy = -torch.special.xlogy(attention, attention).sum(dim=-1)
        shares = {"own_poor": own[poor].mean().item(), "own_rich": own[rich].mean().item()}
        found.append({"points": entropy.exp().mean().item(), **shares})
    return found


def main() -> None:
    model = load_symmetric()
    sets = {
        "paper": mixtures(Tasks(), N_TASKS),
        "many": mixtures(Tasks(n_features=16, n_clusters=30), N_MANY),
        "real": real(Path(os.environ["LLOYDFORMER_DATA"])),
    }
    rows: dict[str, Any] = {"Lloyd": {name: by_lloyd(given) for name, given in sets.items()}}
    for name, change in CHANGES.items():
        theta = model.theta.clone()
        change(model, theta)
        rows[name] = {which: run(model, theta, given) for which, given in sets.items()}
        print(name, {which: round(found["excess"], 2) for which, found in rows[name].items()})
    steps = {name: along(model, given) for name, given in sets.items()}
    asked = {
        "n_tasks": N_TASKS,
        "n_many": N_MANY,
        "n_trials": N_TRIALS,
        "n_steps": N_STEPS,
        "sets": SETS,
        "seed": SEED,
        "dtype": "float32",
        "n_looked": N_LOOKED,
        "looks": looks(model, sets["paper"]),
    }
    save("read_symmetric", {"provenance": provenance(), **asked, "rows": rows, "steps": steps})


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
