"""Training curves of fig:tr-cvg-lambda and fig:tr-cvg-vary: quartiles, table, figure, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.training_runs import TrainingGroup, load_logs
from lloydformer.paper.verdict import Answer, judge
from lloydformer.plots.curves import ribbon

# The codes of both embeddings, and their names in the figures.
EMBEDDINGS = {"proposed": "onehot", "ablation": None}
_NAMES = {"proposed": "$d_{emb} = d + k$", "ablation": "$d_{emb} = d$"}
# Every second evaluation is a point of a curve: 100 of 200, which keeps the files small.
_EVERY = 2

# Chosen by hand: a median below this outperforms a Lloyd step significantly.
AHEAD = 0.95
# Fewer trials of a setting than half the paper's ten refute nothing.
_ENOUGH = 5


@dataclass(frozen=True)
class TrainingSetting:
    """One column of a figure: dimensions, clusters and the temperature of the loss."""

    n_features: int
    n_clusters: int
    temperature: float = 0.1

    @property
    def name(self) -> str:
        return f"d={self.n_features}, k={self.n_clusters}, lambda={self.temperature:g}"

    def groups(self) -> dict[str, TrainingGroup]:
        """Return the training groups with the k scratch dimensions and without."""
        size = self.n_features, self.n_clusters
        return {name: TrainingGroup(*size, codes=codes) for name, codes in EMBEDDINGS.items()}


def groups_of(settings: Sequence[TrainingSetting]) -> list[TrainingGroup]:
    """Return the training groups that these settings need, each once."""
    groups = [group for setting in settings for group in setting.groups().values()]
    return list(dict.fromkeys(groups))


def log_pieces(settings: Sequence[TrainingSetting], scope: Scope) -> dict[str, Piece]:
    """Return a piece for each training group, which loads its logs or trains it."""
    return {group.name: partial(load_logs, group, scope) for group in groups_of(settings)}


def combine_logs(logs: Mapping[str, Record], settings: Sequence[TrainingSetting]) -> Record:
    """Return final values by setting, curves, and the number of runs, from all logs."""
    needed = [logs[group.name] for group in groups_of(settings)]
    curves = {
        one.name: {which: _curves(logs[group.name], one) for which, group in one.groups().items()}
        for one in settings
    }
    wanted = {(s.n_features, s.n_clusters, s.temperature) for s in settings}
    return {
        "rows": {
            name: {which: curve["last"]["median"] for which, curve in both.items()}
            for name, both in curves.items()
        },
        "steps": needed[0]["steps"][_EVERY - 1 :: _EVERY],
        "curves": curves,
        "n_trials": min(len(c["last"]["each"]) for both in curves.values() for c in both.values()),
        "n_runs": sum(
            (log["n_features"], log["n_clusters"], run["loss_temperature"]) in wanted
            for log in needed
            for run in log["runs"]
        ),
        # logs in the package name the GPU, new ones the device
        "trained_on": sorted({log.get("gpu") or log["device"] for log in needed}),
    }


def _curves(log: Record, setting: TrainingSetting) -> Record:
    runs = [run for run in log["runs"] if run["loss_temperature"] == setting.temperature]
    # the last weights are evaluated, not the best ones, as in the authors' runs
    ends = [run["relative"][-1] for run in runs]
    finite = [end for end in ends if end is not None]
    return {
        "loss": _quartiles([run["loss"] for run in runs]),
        "relative": _quartiles([run["relative"] for run in runs]),
        "last": {"each": ends, "median": median(finite) if finite else None},
    }


def _quartiles(logs: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Return lower quartile, median and upper quartile over the trials that have a number.

    Where no trial has a number, the value before is repeated.
    """
    table = np.array(logs, dtype=float)[:, _EVERY - 1 :: _EVERY]
    empty = np.isnan(table).all(axis=0)
    quartiles = np.nanquantile(table[:, ~empty], [0.25, 0.5, 0.75], axis=0)
    filled = quartiles[:, np.maximum(np.cumsum(~empty) - 1, 0)]
    return [[float(f"{value:.4g}") for value in row] for row in filled]


def curves_table(result: Record) -> list[TextTable]:
    """Return the table of the relative validation loss of each setting after training."""

    def cell(last: Record) -> str:
        # trials without a number come last: None cannot be compared with a float
        each = sorted(last["each"], key=lambda end: (end is None, end))
        return f"{last['median']:.3f} ({', '.join('-' if v is None else f'{v:.3f}' for v in each)})"

    return [
        TextTable(
            f"Relative validation loss after training: median of {result['n_trials']} trials (each "
            "trial in brackets); below 1 is better than a Lloyd step",
            ["Setting", "d_emb = d + k", "d_emb = d"],
            [
                [name, *(cell(curve["last"]) for curve in both.values())]
                for name, both in result["curves"].items()
            ],
        )
    ]


def draw_curves(
    result: Record, settings: Mapping[str, TrainingSetting], name: str, about: str
) -> Picture:
    """Return a picture with a column for each setting, by title; `about` begins the caption.

    Training loss above, relative validation loss below.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(11, 5), layout="constrained")
    above, below = figure.subplots(2, len(settings), sharex=True, sharey="row")
    for upper, lower, (title, setting) in zip(above, below, settings.items(), strict=True):
        for ax, what in ((upper, "loss"), (lower, "relative")):
            for number, (which, words) in enumerate(_NAMES.items()):
                low, middle, high = result["curves"][setting.name][which][what]
                ribbon(result["steps"], middle, low, high, ax, words, number)
            ax.set_yscale("log")  # with decimal numbers in place of powers of ten
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 6)))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_locator(NullLocator())
            ax.set_xticks([0, 5000, 10000], ["0", "5k", "10k"])
        lower.axhline(1.0, color="black", linestyle="--", linewidth=1)
        upper.set_title(title, fontsize=10)
        lower.set_xlabel("training step")
    above[0].set_ylabel("training loss")
    below[0].set_ylabel("relative validation loss")
    handles, names = above[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    caption = (
        f"{about}: training loss above, validation objective relative to one Lloyd step below "
        f"(dashed: 1); lines are medians and ribbons quartiles of {result['n_trials']} trials."
    )
    return Picture(name, figure, caption)


def final_losses(result: Record, setting: TrainingSetting, which: str = "proposed") -> list[float]:
    """Return the final relative validation loss of each trial; infinity if it has no number."""
    each = result["curves"][setting.name][which]["last"]["each"]
    return [float("inf") if end is None else end for end in each]


def format_medians(
    result: Record, settings: Mapping[str, TrainingSetting], which: str = "proposed"
) -> str:
    """Return the median of each setting, by name, with the range of its trials."""
    found = {name: final_losses(result, setting, which) for name, setting in settings.items()}
    return ", ".join(
        f"{median(each):.3f} ({min(each):.3f} to {max(each):.3f}) for {name}"
        for name, each in found.items()
    )


def judge_trials(result: Record, holds: bool) -> Answer:
    """Return the answer of these trials."""
    return judge(holds, enough=result["n_trials"] >= _ENOUGH)


def judge_ablation(result: Record, settings: Sequence[TrainingSetting]) -> tuple[str, Answer]:
    """Return in words and as an answer whether no trial without codes matches a Lloyd step."""
    each = [end for setting in settings for end in final_losses(result, setting, "ablation")]
    above = sum(end > 1 for end in each)
    words = f"above 1 in {above} of {len(each)} trials, the least {min(each):.3f}"
    return words, judge_trials(result, above == len(each))


def format_trials(result: Record) -> str:
    """Return how many trials the answers are from."""
    return f"{result['n_trials']} trials of each setting, of the paper's 10."
