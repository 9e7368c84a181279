"""The charts of docs/notes/cluster-costs.md, from what was simulated."""

from pathlib import Path
from typing import Any

from lloydformer.plots.palette import INK, cluster_colour

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
Result = dict[str, Any]


def _axes(n_plots: int, height: float = 3.4) -> Any:
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "scale"
    figure, axes = plt.subplots(
        1, n_plots, figsize=(4.6 * n_plots, height), squeeze=False, layout="constrained"
    )
    for ax in axes[0]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes[0]


def _save_figure(figure: Any, name: str, words: str) -> str:
    import matplotlib.pyplot as plt

    figure.savefig(PICTURES / f"scale-{name}.svg", metadata={"Date": None})
    plt.close(figure)
    return f"![{words}](../pictures/scale-{name}.svg)\n"


def iteration_chart(simulated: Result) -> str:
    from matplotlib.ticker import EngFormatter

    shapes = list(dict.fromkeys((r["d"], r["k"]) for r in simulated["iterations"]))
    figure, axes = _axes(len(shapes), 3.9)
    for (d, k), ax in zip(shapes, axes, strict=True):
        some = [r for r in simulated["iterations"] if (r["d"], r["k"]) == (d, k)]
        for n, style in zip(sorted({r["rows"] for r in some}), ("-", "--"), strict=True):
            rows = [r for r in some if r["rows"] == n]
            size = [r["workers"] for r in rows]
            lines = {
                "map alone": [r["map"] for r in rows],
                "with a tree": [r["map"] + r["tree"] for r in rows],
                "with an all-gather": [r["map"] + r["ring"] for r in rows],
                "a task a worker": [r["scheduled"] for r in rows],
            }
            for number, (name, values) in enumerate(lines.items()):
                colour = INK if number == 0 else cluster_colour(number - 1)
                ax.plot(
                    size,
                    values,
                    style,
                    color=colour,
                    marker="o",
                    markersize=3.5,
                    linewidth=1 if number == 0 else 1.8,
                    zorder=2 + (number == 0),
                    label=name if style == "-" else None,
                )
            exponent = len(str(n)) - 1
            ax.annotate(
                f"$10^{{{exponent}}}$ points",
                (size[0], rows[0]["map"]),
                (4, 6),
                textcoords="offset points",
                fontsize="small",
                color=INK,
            )
        ax.set(xscale="log", yscale="log", xlabel="workers", title=f"d = {d}, k = {k}")
        ax.title.set_fontsize("medium")
        ax.yaxis.set_major_formatter(EngFormatter(unit="s"))
    axes[0].set_ylabel("time per iteration")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    return _save_figure(figure, "iteration", "Time of an iteration by the number of workers")


def trouble_chart(simulated: Result) -> str:
    figure, (left, right) = _axes(2)
    rows = simulated["troubles"]
    size = [r["workers"] for r in rows]
    for number, (name, words) in enumerate(
        {"jitter": "times vary by 5 %", "slow": "1 of 100 takes 3 times as long"}.items()
    ):
        left.plot(size, [r[name] for r in rows], "o-", color=cluster_colour(number), label=words)
    for number, (name, words) in enumerate(
        {"replaced": "rows go elsewhere", "restarted": "all start again"}.items(), start=2
    ):
        right.plot(size, [r[name] for r in rows], "o-", color=cluster_colour(number), label=words)
    for ax, title in ((left, "Slow workers"), (right, "Failures")):
        ax.set(xscale="log", xlabel="workers", title=title, ylim=(0.95, None))
        ax.title.set_fontsize("medium")
        ax.legend(frameon=False, loc=(0.35, 0.22) if ax is left else "upper left")
    left.set_ylabel("times an even iteration")
    return _save_figure(figure, "trouble", "What slow workers and failures cost")


# By their names in the page; each draws a file and returns the line that shows it.
CHARTS = {"iteration_chart": iteration_chart, "trouble_chart": trouble_chart}
