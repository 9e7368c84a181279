"""fig:numerical_validation: Lloyd's algorithm and the transformer with gamma = 10^4.

The claims are judged on the authors' own data, drawn by the facts of their notebook. Beyond them,
the literal circuit with its n x n attention runs on another draw. Problems and runs are those of
`lloydformer verify`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lloydformer import algorithms
from lloydformer.algorithms.contract import History, squared_distances
from lloydformer.circuits.trace import Trace
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.verdict import Verdict, beyond, claim, judge, judge_less
from lloydformer.paper.verify import finite_temperature as runs
from lloydformer.paper.verify.finite_temperature import LloydDifference
from lloydformer.plots.axes import open_frame
from lloydformer.plots.palette import CLUSTERS, INK, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL = "numerical-validation"
# Numbers of points in a picture, chosen by eye: more would overlap, or hide the paths of the
# centers that are drawn above them.
N_SHOWN, N_BENEATH = 1500, 300
# The colour of points whose labels are the same.
PALE = "#DDDDDD"


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return the authors' run, two literal circuits with n x n attention, and other draws."""
    if scope.authors:
        return {"authors": measure_authors}
    problem = runs.figure_problem(scope.seed, runs.FIGURE, scope.device)
    seeds = range(scope.seed, scope.seed + scope.count(quick=20, full=200))
    return {
        "authors": measure_authors,
        "circuit": partial(measure_encoder_cross, *problem),
        "every-head": partial(measure_every_head, *problem),
        "scale-1": partial(measure_draws, runs.FIGURE, seeds),
        # scaling by 10 is gamma times 100, as the appendix proposes
        "scale-10": partial(measure_draws, replace(runs.FIGURE, scale=10), seeds),
    }


def measure_authors() -> Record:
    """Return the authors' run; shared: points whose last assignment is not one-hot in float32."""
    points, centers = runs.authors_problem()
    found = runs.run_as_authors(points, centers)
    compared = compare_runs(points, runs.run_lloyd(points, centers), found)
    # as the notebook counts: shares cast to integers are 1 only if no digit is missing
    one_hot = (found.assignments[-1] == 1).any(axis=1)
    return compared | {"shared": int((~one_hot).sum())}


def measure_encoder_cross(points: Tensor, centers: Tensor) -> Record:
    """Return the literal circuit with gamma in the encoder's cross-attention, and Lloyd's."""
    trace = runs.run_in_encoder_cross(points, centers)
    return compare_runs(points, runs.run_lloyd(points, centers), trace)


def compare_runs(points: Tensor, lloyd: History, found: History | Trace) -> Record:
    """Return both runs, and their differences.

    apart: the largest distance of a center to Lloyd's, at the start and after each layer.
    differing: points whose final labels differ, and both labels.
    """
    # the same points whatever the seed of the run, so that pictures can be compared
    shown = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:N_SHOWN]
    theirs, labels = runs.as_array(found.centers), runs.as_array(found.labels)[-1]
    apart = np.linalg.norm(theirs - lloyd.centers, axis=2).max(axis=1)
    rows = np.flatnonzero(labels != lloyd.labels[-1])
    return {
        "points": _round(points[shown], 4),
        "lloyd": _history(points, lloyd.centers, lloyd.labels[-1][shown.numpy()]),
        "transformer": _history(points, theirs, labels[shown.numpy()]),
        **asdict(runs.lloyd_difference(lloyd, found)),
        "apart": [float(f"{value:.4g}") for value in apart],
        "differing": {
            "points": _round(points[rows], 4),
            "lloyd": lloyd.labels[-1][rows].tolist(),
            "transformer": labels[rows].tolist(),
        },
    }


def measure_every_head(points: Tensor, centers: Tensor) -> Record:
    """Return the circuit with gamma in every head; itself: a point's median weight on itself."""
    trace = runs.run_in_every_head(points, centers)
    difference = runs.lloyd_difference(runs.run_lloyd(points, centers, runs.FEWER_LAYERS), trace)
    return {"itself": round(runs.median_weight_on_itself(trace), 4), **asdict(difference)}


def measure_draws(size: runs.MixtureSize, seeds: range) -> Record:
    """Return the difference of soft k-means to Lloyd's, for several draws of the data."""
    # by the plain algorithms, since the literal circuit has n x n attention
    draws = []
    for seed in seeds:
        points, centers = runs.figure_problem(seed, size)
        plain = algorithms.Soft(runs.GAMMA)
        soft = algorithms.run(plain, points.numpy(), centers.numpy(), runs.N_LAYERS)
        lloyd = runs.run_lloyd(points, centers)
        draws.append(asdict(runs.lloyd_difference(lloyd, soft, size.scale)))
    return {"scale": size.scale, "draws": draws}


def _history(points: Tensor, centers: np.ndarray, labels: np.ndarray) -> Record:
    """Return the objective, the centers, and the last labels as one string of digits."""
    rows = points.cpu().numpy()
    # computed again for both by the same code, so that only the centers can differ
    squares = [squared_distances(rows, c).min(axis=1).sum() for c in centers]
    return {
        "objective": [float(f"{square:.8g}") for square in squares],
        "centers": _round(torch.as_tensor(centers), 5),
        "labels": "".join(map(str, labels.tolist())),
    }


def _round(rows: Tensor, digits: int) -> list[Any]:
    return np.round(rows.cpu().numpy(), digits).tolist()


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return all outputs; `rows`: both objectives of the authors' run, before and after layers."""
    run = outputs["authors"]
    pairs = zip(run["lloyd"]["objective"], run["transformer"]["objective"], strict=True)
    result = {
        "rows": {str(layer): list(pair) for layer, pair in enumerate(pairs)},
        "authors": run,
    }
    if "circuit" not in outputs:  # by the authors' code alone
        return result
    return result | {
        "run": outputs["circuit"],
        "every_head": outputs["every-head"],
        "draws": {str(s): outputs[f"scale-{s}"]["draws"] for s in (1, 10)},
    }


def verdicts(result: Record) -> list[Verdict]:
    """Return verdicts on the figure; unless by the authors' code alone, on scaling and other data.

    The figure is the authors' run, so its sentences are judged on the authors' data.
    """
    authors = result["authors"]
    found = difference_of(authors)
    off = max(abs(lloyd - theirs) / lloyd for lloyd, theirs in result["rows"].values())
    differ = {t: count for t, count in enumerate(found.labels, start=1) if count}
    layers, counts = (", ".join(map(str, part)) for part in (differ, differ.values()))
    differing = f"labels differ in layers {layers}, for {counts} of {found.of:,} points"
    judged = [
        claim(
            "numerical-validation.layers",
            f"to the eye: the objective is off by {off:.2%} of its value at most; "
            f"{differing if differ else 'no label differs'}",
            judge(found.same_labels or off < runs.TO_THE_EYE),
        ),
        claim(
            "numerical-validation.paths",
            f"paths are off by {found.centers:.1e} of the picture's side at most; "
            f"{found.labels[-1]} of {found.of:,} final labels differ "
            f"({authors['shared']} assignments are not one-hot in float32)",
            judge(found.same_to_the_eye and found.same_final_labels),
        ),
    ]
    if "run" not in result:
        return judged
    run, every, words = difference_of(result["run"]), result["every_head"], []
    for scale in ("1", "10"):
        draws = [difference_of(draw) for draw in result["draws"][scale]]
        final = (
            f"the final ones in {sum(one.same_final_labels for one in draws)} of {len(draws)} draws"
        )
        words.append(f"{final}, those of all layers in {sum(one.same_labels for one in draws)}")
    return [
        *judged,
        judge_scaling(result["draws"]),
        beyond(
            "numerical-validation.literal",
            f"paths are off by {run.centers:.1e} of the picture's side at most; {run.labels[-1]} "
            f"of {run.of:,} final labels differ",
        ),
        beyond("numerical-validation.draws", "; with points scaled by 10, ".join(words)),
        beyond(
            "numerical-validation.every-head",
            f"centers are off by {every['centers']:.2f} of the picture's side after "
            f"{runs.FEWER_LAYERS} layers",
            f"A point's median weight on itself is {every['itself']:.2g}, so self-attention is not "
            "the identity. The text does not say that every head has γ, and the authors' "
            "code has the identity there.",
        ),
    ]


def difference_of(record: Record) -> LloydDifference:
    """Return the part of a saved record that `verify` also judges."""
    return LloydDifference(record["centers"], record["labels"], record["of"])


def judge_scaling(draws: Record) -> Verdict:
    """Return the verdict on whether fewer final labels differ at scale 10, draw by draw."""
    plain, scaled = ([draw["labels"][-1] for draw in draws[scale]] for scale in ("1", "10"))
    fewer = np.subtract(scaled, plain)
    # paired: both scales have the same draws. One draw decides nothing.
    error = fewer.std(ddof=1) / len(fewer) ** 0.5 if len(fewer) > 1 else np.inf
    of = sum(draw["of"] for draw in draws["1"])
    return claim(
        "numerical-validation.scaling",
        f"with points scaled by 10, {sum(scaled)} in place of {sum(plain)} of {of:,} final labels "
        "differ",
        judge_less(float(fewer.mean()), float(error)),
        f"{len(plain)} draws; see also fig:parameter_sweep.",
    )


def tables(result: Record) -> Sequence[TextTable]:
    """Return one table: a row for each layer, with the number of labels that differ there."""
    differing = [0, *result["authors"]["labels"]]
    rows = [
        [layer, *(f"{value:.6g}" for value in pair), str(count)]
        for (layer, pair), count in zip(result["rows"].items(), differing, strict=True)
    ]
    columns = ["layers", "Lloyd's", "transformer", "labels that differ"]
    caption = "k-means objective on the authors' data, and labels that differ"
    return [TextTable(caption, columns, rows)]


def pictures(result: Record) -> list[Picture]:
    """Return one figure: objective, paths of the centers and assignments of both, differences."""
    from matplotlib.figure import Figure

    run = result["authors"]
    figure = Figure(figsize=(12, 11.1), layout="constrained")
    grid = figure.subplots(3, 3)
    for axes, who in zip(grid, ("lloyd", "transformer"), strict=False):
        _draw_run(axes, torch.tensor(run["points"]), run[who])
        axes[0].set_ylabel(f"{'Lloyd' if who == 'lloyd' else 'transformer'}\nk-means objective")
        axes[0].set_xlabel("iteration" if who == "lloyd" else "layer")
    lloyd, transformer = (np.array(run[who]["objective"]) for who in ("lloyd", "transformer"))
    relative = np.abs(transformer - lloyd) / lloyd
    _draw_logarithmic(grid[2, 0], relative, "difference\nof the objective, relative")
    _draw_logarithmic(grid[2, 1], np.array(run["apart"]), "largest distance of a center")
    _draw_differing(grid[2, 2], run)
    for ax, letter in zip(grid.flat, "ABCDEFGHI", strict=True):
        ax.set_title(letter, loc="left", weight="bold")
    caption = (
        "On the authors' data, Lloyd's algorithm (A to C) and the transformer with γ = 10⁴ "
        f"(D to F), n = {run['of']}, d = 2, k = 5: the objective, the paths of the centers from "
        "circle to triangles, and the assignments after 10 layers "
        f"({len(run['points'])} of the points are drawn). Beyond the paper, their "
        "differences: (G) of the objective, as a part of Lloyd's, (H) the largest distance of "
        "a center to Lloyd's, both on a logarithmic scale, and (I) the points whose final "
        f"labels differ ({len(run['differing']['points'])} of all). There the left half of a "
        "circle has the colour of Lloyd's label, the right half that of the transformer's; lines "
        "are Lloyd's borders."
    )
    return [Picture(LABEL, figure, caption)]


def _draw_run(axes: np.ndarray, points: Tensor, shown: Record) -> None:
    """Draw the objective, the paths of the centers and the final assignment of one run."""
    from lloydformer.plots.clusters import cluster_map, trajectories
    from lloydformer.plots.curves import history_curve

    centers, labels = torch.tensor(shown["centers"]), torch.tensor([*map(int, shown["labels"])])
    # a Trace of the saved numbers, as far as the paths of the centers need one
    few = torch.nn.functional.one_hot(labels[:N_BENEATH], centers.shape[1]).float()[None]
    history_curve(shown["objective"], axes[0])
    trajectories(Trace(points[:N_BENEATH], centers, few, points[:1], (), {}), axes[1])
    last = {j: (center[0], center[1]) for j, center in enumerate(centers[-1].tolist())}
    cluster_map(points, labels, last, axes[2])
    for ax in axes[1:]:
        _set_unit_square(ax)


def _draw_logarithmic(ax: "Axes", values: np.ndarray, name: str) -> None:
    """Draw a value for each layer; the initial centers, which are the same, are left out."""
    ax.plot(range(1, len(values)), values[1:], "o-", markersize=4, color=CLUSTERS[0])
    ax.set(yscale="log", xlabel="layer", ylabel=name, xlim=(-0.5, len(values) - 0.5))
    if (positive := values[1:][values[1:] > 0]).size:
        # whole decades: a zero difference has no place on this axis
        decades = np.log10([positive.min(), positive.max()])
        ax.set_ylim(10.0 ** np.floor(decades[0] - 0.2), 10.0 ** np.ceil(decades[1] + 0.2))
    open_frame(ax)


def _draw_differing(ax: "Axes", run: Record) -> None:
    """Draw points whose final labels differ, in both colours, and Lloyd's borders."""
    x, y = np.array(run["points"]).T
    ax.scatter(x, y, s=8, c=PALE, linewidths=0)
    ticks = np.linspace(-0.03, 1.03, 400)
    rows = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    # the last labels are those of the centers before the last update
    centers = np.array(run["lloyd"]["centers"][-2])
    nearest = squared_distances(rows, centers).argmin(axis=1).reshape(400, 400)
    for cluster in range(len(centers)):
        ax.contour(ticks, ticks, nearest == cluster, levels=[0.5], colors=INK, linewidths=0.6)
    columns = (run["differing"][key] for key in ("points", "lloyd", "transformer"))
    for (across, up), lloyd, transformer in zip(*columns, strict=True):
        ax.plot(
            across,
            up,
            "o",
            markersize=9,
            fillstyle="left",
            color=cluster_colour(lloyd),
            markerfacecoloralt=cluster_colour(transformer),
            markeredgecolor=INK,
        )
    _set_unit_square(ax)


def _set_unit_square(ax: "Axes") -> None:
    ax.set(xlabel="feature 0", ylabel="feature 1", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_aspect("equal", adjustable="box")
