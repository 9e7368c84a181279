"""Axes and colour maps of matplotlib, which is imported only when something is drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

MISSING = 'matplotlib is missing; get it with: pip install "lloydformer[plots]"'


def axes_or_new(ax: "Axes | None") -> "Axes":
    """Return the given axes; for None, those of a new figure."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def require_matplotlib() -> None:
    """Raise an ImportError with the command that installs matplotlib, if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(MISSING) from None


def colormap(colours: tuple[str, ...]) -> "Colormap":
    """Return a continuous colour map through the colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("lloydformer", colours)
