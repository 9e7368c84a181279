"""The curves of the benchmark of methods that find circuits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lloydformer.interp.benchmark import mean_areas
from lloydformer.plots.axes import open_frame
from lloydformer.plots.palette import MARKERS, cluster_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Below one half is worse than a guess; some methods are, on disguised circuits.
_LOWEST = 0.4


def draw_finding_curves(rows: Sequence[dict[str, Any]], figure: "Figure") -> None:
    """Draw the area under the curve against inverse temperature, plain and disguised side by side.

    Every line is a method: the mean over the recipes that exist at the temperature. The last place
    is the limit, in which heads choose.

    Parameters
    ----------
    rows : sequence of dict
        Results of `lloydformer.interp.benchmark.measure_case`.
    figure : matplotlib.figure.Figure
        An empty figure.

    See Also
    --------
    lloydformer.interp.score_edges : The methods.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lloydformer.plots.finding_curve import draw_finding_curves
    >>> figure, area = Figure(), {"ACDC": 0.9}
    >>> rows = [{"form": "plain", "inverse_temperature": g, "area": area} for g in (1.0, None)]
    >>> draw_finding_curves(rows, figure)
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['1', 'limit']
    """
    forms = [form for form in ("plain", "disguised") if any(row["form"] == form for row in rows)]
    # soft recipes have no limit, so that a mean with them in one place only would be a jump
    of_all = [row for row in rows if not str(row.get("name", "")).startswith("soft")]
    # lloyd_binary exists in the limit alone
    of_all = [row for row in of_all if row.get("name") != "lloyd_binary"]
    panels = figure.subplots(1, len(forms), sharey=True, squeeze=False)[0]
    for axes, form in zip(panels, forms, strict=True):
        points = [level for level in mean_areas(of_all) if level[0] == form]
        places = range(len(points))
        for number, method in enumerate(points[0][2]):
            axes.plot(
                places,
                [areas[method] for _, _, areas in points],
                color=cluster_colour(number),
                marker=MARKERS[number],
                # later lines are thinner: some coincide
                linewidth=3.2 - 0.7 * number,
                markersize=9 - 1.5 * number,
                label=method,
            )
        axes.axhline(0.5, color="black", linestyle="--", linewidth=1)
        axes.set_xticks(places, ["limit" if g is None else f"{g:g}" for _, g, _ in points])
        axes.set(title=f"{form} circuits", xlabel="inverse temperature", ylim=(_LOWEST, 1.02))
        open_frame(axes)
    first = figure.axes[0]
    first.set_ylabel("area under the curve")
    first.annotate("a guess", (0, 0.5), (0, -12), textcoords="offset points", fontsize=9)
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4)
