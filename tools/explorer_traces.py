"""Record the traces that the explorer's page shows beside live runs: trained layers, relocation.

    python tools/explorer_traces.py --check    # exit status 1 if a file is out of date
    python tools/explorer_traces.py --write

The page runs recipes itself; trained weights and recipes of several sub-layers it cannot run. Each
file is a module with one value: points, and the runs from the same start. Shares and weights are in
thousandths.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.circuits.trace import Trace

FOLDER = Path(__file__).parents[1] / "src" / "lloydformer" / "app" / "explorer" / "page" / "traces"
N_LAYERS = 8
NOTE = "// Written by tools/explorer_traces.py; tests/app/explorer/test_traces.py compares.\n"


def record_learned() -> dict[str, Any]:
    """The paper's trained layer and the symmetric one beside Lloyd's algorithm; d = 4, k = 6."""
    points, centers = mixture(seed=0, n=100, d=4, k=6)
    runs = {
        ("lloyd", "Lloyd's algorithm, constructed"): lf.Circuit(lf.recipes.lloyd(), 4, 6),
        ("learned", "The paper's layer, learned"): lf.learning.load_pretrained("d4-k6").circuit(),
        ("symmetric", "The symmetric layer, learned"): lf.learning.load_pretrained().circuit(4, 6),
    }
    return {
        "name": "learned",
        "title": "Learned beside constructed",
        "says": "The same points in four dimensions, and the same start, chosen so that Lloyd's "
        "algorithm fails: its layer, with weights set by hand; the paper's layer after training; "
        "and a trained layer that respects the symmetries of k-means.",
        "points": round_values(points),
        "runs": [
            describe_trace(
                name, title, circuit(points, centers, N_LAYERS, names_filter="*cross.attention")
            )
            for (name, title), circuit in runs.items()
        ],
    }


def record_relocation() -> dict[str, Any]:
    """Relocation beside Lloyd's algorithm, from a start that Lloyd's cannot repair."""
    rng = np.random.default_rng(3)
    middles = np.array(
        [[-4.0, 2.0], [-2.6, 2.6], [-3.4, 0.6], [3.0, 2.2], [3.4, -2.0], [-1.0, -3.0]]
    )
    rows = np.repeat(middles, 18, axis=0) + 0.35 * rng.normal(size=(108, 2))
    points = torch.tensor(rows)
    centers = points[[0, 54, 60, 72, 76, 95]]  # one for the three clusters on the left
    lloyd, move = lf.recipes.lloyd(), lf.recipes.relocating(n_moved=2)
    runs = {
        ("lloyd", "Lloyd's algorithm"): [lloyd],
        ("relocating", "Lloyd's algorithm with relocations"): [lloyd, lloyd, lloyd, move],
    }
    return {
        "name": "relocation",
        "title": "Relocation beside Lloyd",
        "says": "From a bad start Lloyd's algorithm ends with one center for three clusters. A "
        "layer that splits clusters and removes centers, if that lowers the objective, repairs it.",
        "points": round_values(points),
        "runs": [
            describe_trace(
                name,
                title,
                lf.Circuit(schedule, 2, 6)(
                    points, centers, N_LAYERS, names_filter="*cross.attention", seed=0
                ),
                [r.name for r in schedule],
            )
            for (name, title), schedule in runs.items()
        ],
    }


RECORDED: dict[str, Callable[[], dict[str, Any]]] = {
    "learned": record_learned,
    "relocation": record_relocation,
}


def mixture(seed: int, n: int, d: int, k: int) -> tuple[Tensor, Tensor]:
    """Points of a mixture with k middles, scaled to the unit cube, and a random start."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(size=(k, d))
    points = middles[np.arange(n) % k] + 0.06 * rng.normal(size=(n, d))
    points = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    return torch.tensor(points), torch.tensor(points[rng.choice(n, size=k, replace=False)])


def describe_trace(
    name: str, title: str, trace: Trace, schedule: list[str] | None = None
) -> dict[str, Any]:
    """Return a run: centers, labels and objective, and for each layer its cross-attentions."""
    schedule = schedule or [name]
    layers = [
        {
            "recipe": schedule[t % len(schedule)],
            "assignments": thousandths(trace.assignments[t]),
            "update": thousandths(trace.kept.get(f"layers.{t}.decoder_cross.attention")),
        }
        for t in range(trace.n_layers)
    ]
    return {
        "name": name,
        "title": title,
        "objective": [float(f"{value:.5g}") for value in trace.objective.tolist()],
        "centers": round_values(trace.centers),
        "labels": trace.labels.tolist(),
        "layers": layers,
    }


def round_values(values: Tensor) -> Any:
    return np.round(values.detach().numpy().astype(float), 4).tolist()


def thousandths(values: Tensor | None) -> Any:
    return None if values is None else (values.detach() * 1000).round().int().tolist()


def module(value: dict[str, Any]) -> str:
    return f"{NOTE}export default {json.dumps(value, separators=(',', ':'))};\n"


def read(path: Path) -> dict[str, Any]:
    """Return the value of a module that was written."""
    text = path.read_text(encoding="utf-8").removeprefix(f"{NOTE}export default ")
    return json.loads(text.rstrip().removesuffix(";"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true")
    group.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    FOLDER.mkdir(exist_ok=True)
    stale = [n for n, make in RECORDED.items() if write or read(FOLDER / f"{n}.js") != make()]
    for name in stale:
        if write:
            (FOLDER / f"{name}.js").write_text(module(RECORDED[name]()), encoding="utf-8")
        else:
            print(f"{name}.js is out of date; run: python tools/explorer_traces.py --write")
    return 0 if write else bool(stale)


if __name__ == "__main__":
    sys.exit(main())
