"""The explorer inside of a notebook: the page in a frame."""

from dataclasses import dataclass
from html import escape

from numpy import ndarray
from torch import Tensor

import lloydformer as lf
from lloydformer.app.explorer.page_files import build_single_file
from lloydformer.circuits.serialise import serialise


@dataclass(frozen=True)
class EmbeddedPage:
    """The explorer's page for a notebook: the last value of a cell shows it.

    The page is part of the notebook's output, half a megabyte, and runs without Python.

    Parameters
    ----------
    recipe : Recipe or None, default=None
        The recipe to begin with.
    points : ndarray or Tensor of shape (n, d), or None, default=None
        The points to begin with.
    centers : ndarray or Tensor of shape (k, d), or None, default=None
        The first centers.
    height : int, default=760
        Height of the frame in pixels.

    See Also
    --------
    lloydformer.Trace : Shows itself as a small figure.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.rand(60, 2)
    >>> page = lf.EmbeddedPage(lf.recipes.soft(20.0), points, points[:3])
    """

    recipe: lf.Recipe | None = None
    points: ndarray | Tensor | None = None
    centers: ndarray | Tensor | None = None
    height: int = 760

    def _repr_html_(self) -> str:
        given = {"points": self.points, "centers": self.centers}
        state = {name: rows.tolist() for name, rows in given.items() if rows is not None}
        if self.recipe is not None:
            state["recipe"] = serialise(self.recipe)
        # A frame has styles and scripts of its own, and the page stays whole in a saved notebook.
        return (
            f'<iframe title="lloydformer explorer" width="100%" height="{self.height}" '
            f'style="border:0" srcdoc="{escape(build_single_file(state))}"></iframe>'
        )
