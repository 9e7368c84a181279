"""How training converges in a setting: quartiles over its trials, with and without scratch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from lloydformer.paper.artefact import Claim, Found, Table
from lloydformer.paper.trainings import Group

EMBEDDINGS = {"proposed": "onehot", "ablation": None}
ALL_RUNS = 260
"""Ten trials of each of the 26 settings in both figures."""
_EVERY = 2
"""Of the evaluations so many are one point of a curve."""


@dataclass(frozen=True)
class Setting:
    """A column of a figure."""

    n_features: int
    n_clusters: int
    temperature: float = 0.1

    @property
    def name(self) -> str:
        return f"d={self.n_features}, k={self.n_clusters}, lambda={self.temperature:g}"

    def groups(self) -> dict[str, Group]:
        """With the k scratch dimensions and without."""
        of = self.n_features, self.n_clusters
        return {name: Group(*of, codes=codes) for name, codes in EMBEDDINGS.items()}


def groups(settings: Sequence[Setting]) -> list[Group]:
    """Those that the settings need, each once."""
    found = [group for setting in settings for group in setting.groups().values()]
    return list(dict.fromkeys(found))


def gathered(logs: Mapping[str, Found], settings: Sequence[Setting]) -> Found:
    """Rows of last values by setting, curves, and how many runs were really trained."""
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
        "trained_on": sorted({_where(logs[group.name]) for group in needed}),
    }  # fmt: skip


def _where(log: Found) -> str:
    place: str = log.get("gpu") or log["device"]
    return place


def _curves(log: Found, setting: Setting) -> Found:
    runs = [run for run in log["runs"] if run["loss_temperature"] == setting.temperature]
    ends = [run["relative"][-1] for run in runs]
    there = [end for end in ends if end is not None]
    return {
        "loss": _quartiles([run["loss"] for run in runs]),
        "relative": _quartiles([run["relative"] for run in runs]),
        "last": {"each": ends, "median": median(there) if there else None},
    }


def _quartiles(logs: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """Lower quartile, median and upper quartile over trials; a trial without a number is left out.

    Where no trial has one, the last that there was stays.
    """
    table = np.array(logs, dtype=float)[:, _EVERY - 1 :: _EVERY]
    lost = np.isnan(table).all(axis=0)
    found = np.nanquantile(table[:, ~lost], [0.25, 0.5, 0.75], axis=0)
    whole = found[:, np.maximum(np.cumsum(~lost) - 1, 0)]
    return [[float(f"{value:.4g}") for value in row] for row in whole]


def table(result: Found) -> Table:
    """The last relative validation loss of each setting."""
    return Table(
        f"Relative validation loss after training: median of {result['n_trials']} trials (each "
        "trial in brackets); below 1 is better than a Lloyd step",
        ["Setting", "d_emb = d + k", "d_emb = d"],
        [
            [name, *(_cell(of["last"]) for of in both.values())]
            for name, both in result["curves"].items()
        ],
    )


def _cell(last: Found) -> str:
    each = sorted(last["each"], key=lambda end: (end is None, end))
    return f"{last['median']:.3f} ({', '.join('-' if v is None else f'{v:.3f}' for v in each)})"


def ends(result: Found, setting: Setting, which: str = "proposed") -> list[float]:
    """The last relative validation loss of each trial; infinity where there is no number."""
    each = result["curves"][setting.name][which]["last"]["each"]
    return [float("inf") if end is None else end for end in each]


def trials_claim(result: Found) -> Claim:
    """What the curves are made of."""
    n_trials, n_runs = result["n_trials"], result["n_runs"]
    return Claim(
        "Curves and inter-quartile ribbons are over the trials of each setting, each really "
        "trained for 10,000 steps.",
        "10 trials a setting",
        f"{n_trials} trials a setting, {n_runs} runs",
        n_trials >= 5,
        f"Trained on {', '.join(result['trained_on'])}. Both figures together: {26 * n_trials} "
        f"runs of the {ALL_RUNS} of the paper's protocol, which --full trains.",
    )


def ablation_claim(result: Found, settings: Sequence[Setting], says: str) -> Claim:
    """That no trial without the scratch dimensions comes to a Lloyd step."""
    each = [end for setting in settings for end in ends(result, setting, "ablation")]
    above = sum(end > 1 for end in each)
    return Claim(
        says, "above 1 in every setting",
        f"above 1 in {above} of {len(each)} trials, the least {min(each):.3f}",
        above == len(each),
    )  # fmt: skip
