"""Draws docs/pictures/symmetric-steps.png: `python docs/pictures/symmetric-steps.py`.

Three clusters hold all centers in the beginning, and the other five none.
"""

from pathlib import Path

import torch
from matplotlib.figure import Figure

import lloydformer as lf
from lloydformer import Trace, plots

N_LAYERS = 10


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    """Eight round clusters of 40 points, and a start with centers in three of them."""
    g = torch.Generator().manual_seed(3)
    corners = torch.tensor([[0, 0], [1, 0.1], [2, 0], [0, 1], [2.1, 1], [0.1, 2], [1, 2.1], [2, 2]])
    points = corners.repeat_interleave(40, dim=0) + 0.14 * torch.randn(320, 2, generator=g)
    rows = [0, 7, 15, 40, 45, 52, 60, 200]
    return points.double(), points[rows].double()


def draw(path: Path) -> None:
    points, centers = problem()
    figure = Figure(figsize=(9, 4.7), layout="constrained")
    learned = lf.learning.load_pretrained().circuit(2, len(centers))
    circuits = {"Lloyd": lf.Circuit(lf.recipes.lloyd(), 2, len(centers)), "learned": learned}
    for ax, (name, circuit) in zip(figure.subplots(1, 2), circuits.items(), strict=True):
        trace: Trace = circuit(points, centers, N_LAYERS)
        plots.trajectories(trace, ax)
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        ax.spines[:].set_color("#BBBBBB")
        ax.set_title(f"{name}: {trace.objective[-1]:.1f} after {N_LAYERS} steps", loc="left")
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
