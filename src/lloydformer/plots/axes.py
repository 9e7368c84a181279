"""Axes, colour maps and elements that several plots share.

matplotlib is an extra, and `import matplotlib.pyplot` takes more than a second. So every module of
this room imports it inside of the functions that draw.
"""

from typing import TYPE_CHECKING, Any

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


def open_frame(ax: "Axes") -> "Axes":
    """Hide the lines at the top and on the right, and return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def mark_value(ax: "Axes", value: float | int, words: str) -> None:
    """Draw a dashed vertical line at a value, with words above the frame."""
    ax.axvline(value, color="black", linestyle="--", linewidth=1)
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    ax.annotate(words, (value, 1.0), xytext=(0, 3), ha="center", fontsize=9, **place)
