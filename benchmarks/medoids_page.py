"""Writes the tables of docs/medoids.md from results/medoids.json."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from medoids import CLUSTERS, METRICS, OTHERS, PAPER, TUNED

from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "medoids.md"
_PLACE = re.compile(r"(<!-- medoids: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]
WORDS = {
    "sqeuclidean": "squared Euclidean",
    "manhattan": "Manhattan",
    "cosine": "cosine",
    "euclidean": "Euclidean",
}


# Values of `effort`: the records have their names of version 0.2.
EFFORTS = {"quick": "low", "balanced": "medium", "thorough": "high"}


def write_name(text: str) -> str:
    """Return a name of the results as readers know it: "ours, quick" is `KMedoids`, low."""
    before, ours, effort = text.partition("ours")
    if not ours:
        return text
    word = effort.removeprefix(", ")
    return f"{before}`KMedoids`{', ' if word else ''}{EFFORTS.get(word, word)}"


def table(head: list[str], rows: list[list[str]]) -> str:
    named = [[write_name(cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *named]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def excess(row: Result, name: str) -> float:
    """Percent above the lowest loss of all runs on this set, on average over the seeds."""
    best = min(run[0] for runs in row.values() for run in runs)
    return float(100 * (np.mean([run[0] for run in row[name]]) / best - 1))


def time_ratio(row: Result, name: str) -> float:
    """Mean CPU time over that of FasterPAM with its matrix."""
    mean, theirs = (np.mean([run[1] for run in row[n]]) for n in (name, "FasterPAM"))
    return float(mean / theirs)


def select_rows(result: Result, metric: str, k: int, sets: tuple[str, ...]) -> list[Result]:
    rows = [result["runs"].get(f"{name}/{metric}/{k}", {}) for name in sets]
    return [row for row in rows if "FasterPAM" in row]


def cell(rows: list[Result], name: str) -> str:
    there = [row for row in rows if name in row]
    if not there:
        return ""
    above = np.mean([excess(row, name) for row in there])
    ratios = [time_ratio(row, name) for row in there]
    return f"{above:.2f} % / {np.exp(np.mean(np.log(ratios))):.2f}"


def of_sets(sets: tuple[str, ...], names: tuple[str, ...]) -> Callable[[Result], str]:
    def write_table(result: Result) -> str:
        head = ["", *(f"{WORDS[m]}, k {k}" for m in METRICS for k in CLUSTERS)]
        lines = [
            [
                name,
                *(cell(select_rows(result, m, k, sets), name) for m in METRICS for k in CLUSTERS),
            ]
            for name in names
        ]
        return table(head, lines)

    return write_table


def others(result: Result) -> str:
    names = [
        "FasterPAM",
        "ours",
        "ours, quick",
        "ours, thorough",
        "the paper's sampler",
        "alternating",
        "CLARA",
    ]
    rows = {k: select_rows(result, "sqeuclidean", k, PAPER + OTHERS) for k in CLUSTERS}
    return table(
        ["", *(f"k {k}" for k in CLUSTERS)],
        [[name, *(cell(rows[k], name) for k in CLUSTERS)] for name in names],
    )


def bandit(result: Result) -> str:
    """BanditPAM, where it was run, beside the others from all their seeds."""
    k = CLUSTERS[0]
    rows = [r for r in select_rows(result, "euclidean", k, PAPER + OTHERS) if "BanditPAM" in r]
    lines = [[name, cell(rows, name)] for name in ("FasterPAM", "ours", "BanditPAM")]
    return table(["", f"Euclidean, k {k}"], lines)


def slowest(result: Result) -> str:
    """The highest time over FasterPAM's."""
    ratios = {key: time_ratio(row, "ours") for key, row in result["runs"].items()}
    worst = max(ratios, key=lambda key: ratios[key])
    name, metric, k = worst.split("/")
    return (
        f"A fit takes at most {ratios[worst]:.2f} times as long as FasterPAM with its matrix "
        f"({name}, {WORDS[metric]}, k {k}).\n"
    )


def losses(result: Result) -> str:
    """List the cases in which FasterPAM is better by more than 0.1 %, or takes less time."""
    lines = []
    for key, row in result["runs"].items():
        more, ratio = excess(row, "ours") - excess(row, "FasterPAM"), time_ratio(row, "ours")
        if more > 0.1 or ratio > 1:
            lines.append([*key.split("/"), f"{more:+.2f} %", f"{ratio:.2f}"])
    return table(["set", "metric", "k", "excess, less FasterPAM's", "time / FasterPAM's"], lines)


def large(result: Result) -> str:
    lines = [
        [f"{int(n):,}", name, f"{run[0]:.6g}", f"{run[1]:.1f} s", f"{run[2]:.1f} s"]
        for n, found in result["large"].items()
        for name, run in found.items()
    ]
    return table(["rows", "", "loss", "wall time", "CPU time"], lines)


def memory(result: Result) -> str:
    found = " and ".join(
        f"{value:.0f} ({EFFORTS.get(name[6:], name[6:])})"
        for name, value in result["memory"].items()
    )
    return f"A fit of 1,000,000 rows takes {found} bytes per row at its peak, besides the data.\n"


def count_runs(result: Result) -> str:
    runs = [len(row["FasterPAM"]) for row in result["runs"].values()]
    least, most = min(runs), max(runs)
    seeds = f"{least}" if least == most else f"{least} to {most}"
    sets = len({key.split("/")[0] for key in result["runs"]})
    return f"{sets} sets, {seeds} seeds each.\n"


TWO = ("FasterPAM", "ours", "ours, quick")
UNSEEN = tuple(name for name in PAPER + OTHERS if name not in TUNED)
PARTS = {
    "all": of_sets(PAPER + OTHERS, TWO),
    "unseen": of_sets(UNSEEN, TWO),
    "others": others,
    "losses": losses,
    "large": large,
    "counted": count_runs,
    "bandit": bandit,
    "slowest": slowest,
    "memory": memory,
}


def fill_page(page: str, result: Result) -> str:
    """Return the page with its tables."""
    return _PLACE.sub(lambda m: m[1] + PARTS[m[2]](result) + m[4], page)


def main() -> None:
    result = json.loads((HERE / "results" / "medoids.json").read_text())
    atomic_write_text(PAGE, fill_page(PAGE.read_text(encoding="utf-8"), result))


if __name__ == "__main__":
    sys.exit(main())
