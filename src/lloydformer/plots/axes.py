"""Where pictures are drawn: the given axes, or new ones if matplotlib is there."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

MISSING = 'matplotlib is missing; get it with: pip install "lloydformer[plots]"'


def axes_or_new(ax: "Axes | None") -> "Axes":
    """The axes themselves; for None, those of a new figure."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def require_matplotlib() -> None:
    """An ImportError that ends with the command that repairs it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(MISSING) from None


def colormap(colours: tuple[str, ...]) -> "Colormap":
    """A smooth scale through the colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("lloydformer", colours)
