"""Writes the tables of docs/recombining.md from results/recombining.json."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from provenance import RESULTS
from recombining import LARGE, TUNED

from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.plots.palette import cluster_colour

PAGE = Path(__file__).parent.parent / "docs" / "recombining.md"
PICTURES = PAGE.parent / "pictures"
_PLACE = re.compile(r"(<!-- recombining: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]
BEFORE = "low, step by step"
# Columns: CPU time divided by that of these two.
RATIOS = ("× low, step by step", "× low")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def best(result: Result, key: str) -> float:
    """The lowest objective of all runs, long ones included."""
    parts = ("efforts", "known", "learned", "earlier")
    rows = [result.get(part, {}).get(key, {}) for part in parts]
    return float(min(run[0] for row in rows for runs in row.values() for run in runs))


def above(result: Result, part: str, key: str, name: str) -> float:
    """Percent above the best known, on average over the seeds."""
    runs = np.array([run[0] for run in result[part][key][name]])
    return float(100 * (runs / best(result, key) - 1).mean())


def seconds(result: Result, part: str, key: str, name: str) -> float:
    return float(np.mean([run[1] for run in result[part][key][name]]))


def mean_ratio(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _row(result: Result, name: str, keys: list[str]) -> list[str]:
    excess = [above(result, "efforts", key, name) for key in keys]
    took = [seconds(result, "efforts", key, name) for key in keys]
    bases = [[seconds(result, "efforts", key, base) for key in keys] for base in (BEFORE, "low")]
    times = [mean_ratio(took) / mean_ratio(base) for base in bases]
    return [
        f"{np.mean(excess):.3f} %",
        f"{max(excess):.3f} %",
        f"{1e3 * mean_ratio(took):.0f} ms",
        *(f"{ratio:.1f}" for ratio in times),
    ]


def efforts(result: Result) -> str:
    names = list(next(iter(result["efforts"].values())))
    head = ["", "k", "sets", "mean above", "most above", "CPU time", *RATIOS]
    rows = []
    for name in names:
        for k in (10, 50, None):
            keys = [key for key in result["efforts"] if k is None or key.endswith(f"/{k}")]
            count = str(len({key.split("/")[0] for key in keys}))
            rows.append([name, "both" if k is None else str(k), count, *_row(result, name, keys)])
    return table(head, rows)


def unseen_table(result: Result) -> str:
    """Return the table of efforts for sets on which no parameter was chosen."""
    keys = [key for key in result["efforts"] if key.split("/")[0] not in TUNED]
    rows = [[n, str(len(keys)), *_row(result, n, keys)] for n in (BEFORE, "low", "medium", "high")]
    return table(["", "problems", "mean above", "most above", "CPU time", *RATIOS], rows)


def each(result: Result) -> str:
    """Every set: percent above the best known."""
    names = ("low", "patience 50", "medium", "high")
    rows = [
        [
            key.replace("/", ", "),
            *(f"{above(result, 'efforts', key, n):.3f}" for n in names),
            f"{best(result, key):.8g}",
        ]
        for key in sorted(result["efforts"])
    ]
    return table(["set, k", *names, "best known objective"], rows)


def rivals(result: Result) -> str:
    """HG-means on the sets where it was run."""
    keys = [key for key, row in result.get("known", {}).items() if "HG-means" in row]
    rows = []
    for key in sorted(keys):
        cells = [
            ("known", "HG-means"),
            ("efforts", "medium"),
            ("efforts", "high"),
            ("known", "best"),
        ]
        rows.append(
            [key.replace("/", ", ")]
            + [
                f"{above(result, p, key, n):.3f} %, {seconds(result, p, key, n):.2f} s"
                for p, n in cells
            ]
        )
    return table(["set, k", "HG-means, 5000 iterations", "medium", "high", "best"], rows)


def reached_table(result: Result) -> str:
    """Return the table of runs that are within a bound."""
    names = ["k-means++ 10", "breathing", BEFORE, "low", "patience 50", "medium", "high"]
    keys = list(result["efforts"])
    rows = []
    for name in names:
        runs = [
            100 * (run[0] / best(result, key) - 1)
            for key in keys
            for run in result["efforts"][key][name]
        ]
        share = [f"{100 * np.mean(np.array(runs) <= bound):.0f} %" for bound in BOUNDS]
        took = mean_ratio([seconds(result, "efforts", key, name) for key in keys])
        rows.append([name, f"{1e3 * took:.0f} ms", *share])
    return table(["", "CPU time", "within 1 %", "within 0.1 %", "within 0.01 %"], rows)


# Percent above the best known.
BOUNDS = (1, 0.1, 0.01)
# Part of the study, and contender, of each curve.
DRAWN = (
    ("efforts", "k-means++ 10"),
    ("efforts", "breathing"),
    ("efforts", "low"),
    ("efforts", "medium"),
    ("efforts", "high"),
    ("known", "best"),
    ("known", "HG-means"),
)


def times_to_reach(result: Result, part: str, name: str, bound: float) -> list[float]:
    """For each problem the CPU seconds until a run is within the bound, others being repeated.

    The time of a run divided by the share of runs that are within it; infinite if none is.
    """
    found = []
    for key, row in result[part].items():
        if name in row:
            runs = np.array([run[0] for run in row[name]])
            share = np.mean(runs <= (1 + bound / 100) * best(result, key))
            found.append(seconds(result, part, key, name) / share if share else np.inf)
    return sorted(found)


def curves(result: Result) -> str:
    """The share of problems on which a bound is reached, by time."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(BOUNDS), figsize=(11, 3.9), sharey=True)
    for ax, bound in zip(axes, BOUNDS, strict=True):
        for number, (part, name) in enumerate(DRAWN):
            times = times_to_reach(result, part, name, bound)
            share = 100 * np.arange(1, len(times) + 1) / len(times)
            line = "--" if name == "HG-means" else "-"
            ax.step(times, share, line, where="post", label=name, color=cluster_colour(number))
        ax.set(xscale="log", xlabel="CPU seconds", ylim=(0, 103))
        ax.set_title(f"within {bound:g} %", fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("percent of the problems")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        ncols=len(DRAWN),
        loc="lower center",
        frameon=False,
        fontsize="small",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(PICTURES / "recombining-time.svg", metadata={"Date": None})
    plt.close(figure)
    return "\n![Time to reach a bound.](pictures/recombining-time.svg)\n\n"


def planted_table(result: Result) -> str:
    rows = []
    for name, row in result.get("planted", {}).items():
        cells = [
            f"{sum(run[0] == 0 for run in row[e])} of {len(row[e])}, "
            f"{1e3 * np.mean([run[2] for run in row[e]]):.0f} ms"
            for e in ("low", "medium", "high")
        ]
        rows.append([name, *cells])
    return table(["problem", "low", "medium", "high"], rows)


def large(result: Result) -> str:
    rows = []
    for name in LARGE:
        row = result.get("large", {}).get(name)
        if not row or not row["k-means++"]:
            continue
        medium, restarts = np.array(row["medium"]), np.array(row["k-means++"])
        lower = 100 * (restarts[:, 0].min() / medium[:, 0].mean() - 1)
        rows.append(
            [
                name,
                f"{medium[:, 1].mean():.1f} s",
                f"{10 * restarts[:, 1].mean():.1f} s",
                f"{len(restarts)}",
                f"{lower:.2f} %",
            ]
        )
    if not rows:
        return "\nNot run yet; it takes about half an hour on two idle cores.\n\n"
    return table(
        ["", "medium", "ten restarts", "restarts", "the best of them is above medium by"], rows
    )


def learned_table(result: Result) -> str:
    part = result.get("learned", {})
    names = list(next(iter(part.values()), {}))
    rows = [
        [
            name,
            f"{np.mean([above(result, 'learned', key, name) for key in part]):.3f} %",
            f"{1e3 * mean_ratio([seconds(result, 'learned', key, name) for key in part]):.0f} ms",
        ]
        for name in names
    ]
    return table(["first steps", "mean above", "CPU time"], rows)


WRITERS: dict[str, Callable[[Result], str]] = {
    "efforts": efforts,
    "unseen": unseen_table,
    "each": each,
    "rivals": rivals,
    "reached": reached_table,
    "curves": curves,
    "planted": planted_table,
    "large": large,
    "learned": learned_table,
}


def fill_page(page: str, result: Result) -> str:
    """Return the page with its tables."""
    return _PLACE.sub(lambda m: m[1] + WRITERS[m[2]](result) + m[4], page)


def main() -> None:
    result = json.loads((RESULTS / "recombining.json").read_text())
    atomic_write_text(PAGE, fill_page(PAGE.read_text(encoding="utf-8"), result))


if __name__ == "__main__":
    main()
