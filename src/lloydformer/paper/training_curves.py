"""Training curves of fig:tr-cvg-lambda and fig:tr-cvg-vary: quartiles over the trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.training_runs import TrainingGroup

EMBEDDINGS = {"proposed": "onehot", "ablation": None}
_EVERY = 2
"""One point of a curve for this many evaluations."""


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
        """The training groups with the k scratch dimensions and without."""
        size = self.n_features, self.n_clusters
        return {name: TrainingGroup(*size, codes=codes) for name, codes in EMBEDDINGS.items()}


def groups(settings: Sequence[TrainingSetting]) -> list[TrainingGroup]:
    """The training groups that these settings need, each once."""
    found = [group for setting in settings for group in setting.groups().values()]
    return list(dict.fromkeys(found))


def gathered(logs: Mapping[str, Record], settings: Sequence[TrainingSetting]) -> Record:
    """Final values by setting, curves, and the number of runs, from the logs of all groups."""
    needed = groups(settings)
    curves = {
        one.name: {name: _curves(logs[group.name], one) for name, group in one.groups().items()}
        for one in settings
    }
    temperatures = {(s.n_features, s.n_clusters, s.temperature) for s in settings}
    return {
        "rows": {
            name: {which: of["last"]["median"] for which, of in both.items()}
            for name, both in curves.items()
        },
        "steps": logs[needed[0].name]["steps"][_EVERY - 1 :: _EVERY],
        "curves": curves,
        "n_trials": min(len(of["last"]["each"]) for c in curves.values() for of in c.values()),
        "n_runs": sum(
            (log["n_features"], log["n_clusters"], run["loss_temperature"]) in temperatures
            for log in (logs[group.name] for group in needed)
            for run in log["runs"]
        ),
        "trained_on": sorted({_device_name(logs[group.name]) for group in needed}),
    }  # fmt: skip


def _device_name(log: Record) -> str:
    name: str = log.get("gpu") or log["device"]
    return name


def _curves(log: Record, setting: TrainingSetting) -> Record:
    runs = [run for run in log["runs"] if run["loss_temperature"] == setting.temperature]
    ends = [run["relative"][-1] for run in runs]
    finite = [end for end in ends if end is not None]
    return {
        "loss": _quartiles([run["loss"] for run in runs]),
        "relative": _quartiles([run["relative"] for run in runs]),
        "last": {"each": ends, "median": median(finite) if finite else None},
    }


def _quartiles(logs: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Lower quartile, median and upper quartile over the trials that have a number.

    Where no trial has a number, the value before is repeated.
    """
    table = np.array(logs, dtype=float)[:, _EVERY - 1 :: _EVERY]
    empty = np.isnan(table).all(axis=0)
    found = np.nanquantile(table[:, ~empty], [0.25, 0.5, 0.75], axis=0)
    whole = found[:, np.maximum(np.cumsum(~empty) - 1, 0)]
    return [[float(f"{value:.4g}") for value in row] for row in whole]


def table(result: Record) -> TextTable:
    """The relative validation loss of each setting after training."""
    return TextTable(
        f"Relative validation loss after training: median of {result['n_trials']} trials (each "
        "trial in brackets); below 1 is better than a Lloyd step",
        ["Setting", "d_emb = d + k", "d_emb = d"],
        [
            [name, *(_cell(of["last"]) for of in both.values())]
            for name, both in result["curves"].items()
        ],
    )


def _cell(last: Record) -> str:
    each = sorted(last["each"], key=lambda end: (end is None, end))
    return f"{last['median']:.3f} ({', '.join('-' if v is None else f'{v:.3f}' for v in each)})"
