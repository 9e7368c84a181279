"""Writes the tables and pictures of docs/relocating.md from results/relocating.json."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from relocating import OPENML

from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.plots.palette import cluster_colour

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "relocating.md"
PICTURES = HERE.parent / "docs" / "pictures"
_PLACE = re.compile(r"(<!-- relocating: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]
# Left out of the picture: it stands where one start of scikit-learn's does.
SAME = "Lloyd, same start"


def best(result: Result, key: str) -> float:
    """The lowest objective of all runs of the study."""
    rows = [result.get(part, {}).get(key, {}) for part in ("runs", "ablations", "effort")]
    found = [run for row in rows for name, runs in row.items() for run in runs if name != "history"]
    return float(min(run[0] for run in found))


def excess(result: Result, part: str, key: str, name: str) -> float:
    """Percent above the best, on average over the seeds."""
    runs = np.array([run[0] for run in result[part][key][name]])
    return float(100 * (runs / best(result, key) - 1).mean())


def seconds(result: Result, key: str, name: str) -> float:
    return float(np.mean([run[1] for run in result["runs"][key][name]]))


def keys(result: Result, part: str, k: int, sets: tuple[str, ...] | None = None) -> list[str]:
    found = [key for key in result.get(part, {}) if key.endswith(f"/{k}")]
    return [key for key in found if sets is None or key.split("/")[0] in sets]


def clusters(result: Result, part: str) -> list[int]:
    return sorted({int(key.split("/")[1]) for key in result.get(part, {})})


def table(head: list[str], rows: list[list[str]]) -> str:
    # Results call it "ours"; readers know it by its class.
    named = [[cell.replace("ours", "`RelocatingKMeans`") for cell in row] for row in (head, *rows)]
    lines = [named[0], ["---"] * len(head), *named[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_sets(sets: tuple[str, ...] | None) -> Callable[[Result], str]:
    """Mean excess and geometric mean of the times, by contender and number of clusters."""

    def write_table(result: Result) -> str:
        counts = [k for k in clusters(result, "runs") if keys(result, "runs", k, sets)]
        names = list(result["runs"][next(iter(result["runs"]))])
        head = ["", *(f"k = {k}, {len(keys(result, 'runs', k, sets))} sets" for k in counts)]
        return table(head, [[n, *(_cell(result, k, sets, n) for k in counts)] for n in names])

    return write_table


def _cell(result: Result, k: int, sets: tuple[str, ...] | None, name: str) -> str:
    there = [key for key in keys(result, "runs", k, sets) if result["runs"][key][name]]
    above = np.mean([excess(result, "runs", key, name) for key in there])
    took = np.exp(np.mean([np.log(seconds(result, key, name)) for key in there]))
    return f"{above:.2f} %, {1e3 * took:.0f} ms"


def pairs(result: Result) -> str:
    """How often it is worse than Lloyd's algorithm from the same start, and by how much."""
    ours, theirs = (
        np.array([run[0] for row in result["runs"].values() for run in row[name]])
        for name in ("ours", "Lloyd, same start")
    )
    worse = ours > theirs * (1 + 1e-9)
    most = 100 * (ours / theirs - 1).max()
    return (
        f"In {worse.sum()} of {len(ours)} pairs of set and seed it is worse than Lloyd's algorithm "
        f"from the same start, by at most {max(most, 0):.3f} %.\n"
    )


def losses(result: Result) -> str:
    """List the sets on which a peer has a lower mean objective."""
    lines = []
    for key in result["runs"]:
        for name in ("breathing", "k-means++ 10", "k-means++ 50"):
            less = excess(result, "runs", key, "ours") - excess(result, "runs", key, name)
            if less > 0.005:
                lines.append([key.replace("/", ", k = "), name, f"{less:.2f} %"])
    return table(["set", "better", "by"], lines) if lines else "It loses on no set.\n"


def tasks(result: Result) -> str:
    rows = result["tasks"]["rows"]
    names = list(next(iter(rows.values())))
    lines = [[f, *(f"{row[name]:.2f} %" for name in names)] for f, row in rows.items()]
    return table(["family", *names], lines)


def ablations(result: Result) -> str:
    counts = clusters(result, "ablations")
    names = list(next(iter(result["ablations"].values())))
    lines = [[n, *(_variant(result, k, n) for k in counts)] for n in names]
    return table(["", *(f"k = {k}" for k in counts)], lines)


def _variant(result: Result, k: int, name: str) -> str:
    there = keys(result, "ablations", k)
    above = np.mean([excess(result, "ablations", key, name) for key in there])
    layers = np.mean([run[2] for key in there for run in result["ablations"][key][name]])
    return f"{above:.2f} %, {layers:.0f} layers"


def picture(name: str, words: str, draw: Callable[[Result, int, Any], None], part: str) -> Any:
    """A picture with one plot for each number of clusters, and the line that shows it."""

    def draw_all(result: Result) -> str:
        import matplotlib.pyplot as plt

        counts = clusters(result, part)
        figure, axes = plt.subplots(1, len(counts), figsize=(4.5 * len(counts), 3.6), squeeze=False)
        for k, ax in zip(counts, axes[0], strict=True):
            draw(result, k, ax)
            ax.set_title(f"k = {k}", fontsize="medium")
            ax.set_ylabel("percent above the best")
            ax.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(PICTURES / f"relocating-{name}.svg", metadata={"Date": None})
        plt.close(figure)
        return f"![{words}](pictures/relocating-{name}.svg)\n"

    return draw_all


def _by_time(result: Result, k: int, ax: Any) -> None:
    there = keys(result, "runs", k)
    for number, name in enumerate(n for n in result["runs"][there[0]] if n != SAME):
        some = [key for key in there if result["runs"][key][name]]
        took = np.exp(np.mean([np.log(seconds(result, key, name)) for key in some]))
        above = np.mean([excess(result, "runs", key, name) for key in some])
        ax.plot(took, above, "o", color=cluster_colour(number))
        down = 4 if number > 1 else -11  # ours stand close to others
        ax.annotate(name, (took, above), (4, down), textcoords="offset points", fontsize="small")
    ax.set(xscale="log", yscale="log", xlabel="seconds, geometric mean")
    ax.margins(x=0.25, y=0.1)
    _plain_numbers(ax.yaxis)


def _plain_numbers(axis: Any) -> None:
    """0.5 and 20, no powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _curves(result: Result, k: int) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Return the points of each kind: columns of distances, percent above the best."""
    there = keys(result, "effort", k)
    for kind in ("ours", "k-means++"):
        names = [n for n in result["effort"][there[0]] if n.startswith(kind)]
        yield (
            kind,
            [
                (
                    np.exp(
                        np.mean([np.log(r[1]) for key in there for r in result["effort"][key][n]])
                    ),
                    np.mean([excess(result, "effort", key, n) for key in there]),
                )
                for n in names
            ],
        )


def _by_distances(result: Result, k: int, ax: Any) -> None:
    for number, (kind, points) in enumerate(_curves(result, k)):
        ax.plot(*zip(*points, strict=True), "o-", label=kind, color=cluster_colour(number))
    ax.set(xscale="log", xlabel="distances computed, in n k")
    ax.legend(frameon=False)


def _by_depth(result: Result, k: int, ax: Any) -> None:
    depth, above = 100, []
    for key in keys(result, "effort", k):
        for history in result["effort"][key]["history"]:
            long = history[:depth] + [history[-1]] * (depth - len(history))
            above.append(100 * (np.array(long) / best(result, key) - 1))
    ax.plot(np.mean(above, axis=0), color=cluster_colour(0))
    ax.set(yscale="log", xlabel="layers")
    _plain_numbers(ax.yaxis)


FILLED: dict[str, Callable[[Result], str]] = {
    "openml": of_sets(OPENML),
    "pairs": pairs,
    "losses": losses,
    "tasks": tasks,
    "ablations": ablations,
    "time": picture("time", "Quality against time.", _by_time, "runs"),
    "distances": picture("distances", "Quality against distances.", _by_distances, "effort"),
    "depth": picture("depth", "Quality against depth.", _by_depth, "effort"),
}


def fill_page(page: str, result: Result) -> str:
    """Return the page with its tables; pictures are drawn."""
    return _PLACE.sub(lambda m: m[1] + "\n" + FILLED[m[2]](result) + "\n" + m[4], page)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results" / "relocating.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    atomic_write_text(PAGE, fill_page(PAGE.read_text(encoding="utf-8"), result))


if __name__ == "__main__":
    main()
