"""The interface between plans and data: folds over blocks of points, tasks, rows, labels.

A session owns what is remembered of each point, wherever the points live: in this process, on a
GPU, on workers. No other object holds those arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.data.rows import Rows
from lloydformer.fork_safety import cached_property

Columns = tuple[str, ...]  # names of columns of a `PointBlock`


@dataclass(frozen=True)
class PointBlock:
    """A range of rows as a fold sees it: points, weights, and what the session remembers of them.

    `column(name)` gives a view (m,) into the session's array, which may be written.

    Attributes
    ----------
    start, size : int
        The global number of the first row, and the number of rows m.
    read : callable
        Reads the points.
    weights : Tensor of shape (m,) or None
        Weights in float64; None if every point weighs 1.
    column : callable
        Returns a column by its name; see above.
    """

    start: int
    size: int
    read: Callable[[], Rows]
    weights: Tensor | None
    column: Callable[[str], Tensor]

    @cached_property
    def rows(self) -> Rows:
        """The points; read only by folds that use them."""
        # Some folds need the columns alone (the rounds of trimmed and robust k-means): these must
        # not read a file or copy rows from a GPU.
        return self.read()

    @property
    def labels(self) -> Tensor:
        """The cluster of each point, int32; -1 at first."""
        return self.column("labels")

    @property
    def previous(self) -> Tensor:
        """The labels of the last iteration, int32; the smallest int32 after `forget`."""
        return self.column("previous")

    @property
    def second(self) -> Tensor:
        """The second nearest center of each point, int32."""
        return self.column("second")

    @property
    def distances(self) -> Tensor:
        """The squared distance of each point to its own center, in the precision of the data."""
        return self.column("distances")

    @property
    def trimmed(self) -> Tensor:
        """True for points that are left out of their cluster's mean, bool; False at first."""
        return self.column("trimmed")


@runtime_checkable
class Fold(Protocol):
    """One pass over the points: each block becomes a small summary, and summaries are merged.

    `merge` is associative and takes neighbours in row order. A fold is a value without references
    to the data, so that it can be sent to a worker.

    It may say which columns it overwrites (`writes`) and which columns the new numbers depend on
    (`writes_from`; none by default), so that state that is lost with a worker can be computed again
    by the folds that wrote it. A fold without `writes` is taken to depend on everything before it.
    """

    def map(self, block: PointBlock) -> Any: ...

    def merge(self, first: Any, second: Any) -> Any: ...


class SumFold:
    """Base of folds whose summaries are tuples of tensors that are added."""

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(a + b for a, b in zip(first, second, strict=True))


class Task:
    """Base of tasks: work of many folds that an engine may do in one call.

    It may have `writes` and `writes_from`, as a fold.
    """


@runtime_checkable
class Session(Protocol):
    """Points opened by an engine, with the state that it keeps of each point.

    Attributes
    ----------
    layout : Layout
        Sizes, precision and coordinates of the data.
    """

    @property
    def layout(self) -> Layout: ...

    def fold(self, fold: Fold) -> Any:
        """Run a fold over all points and return its summary, O(k d) numbers."""
        ...

    def run(self, task: Task) -> Any | None:
        """Run a whole task; None, without touching data, if the engine has no kernel for it."""
        ...

    def gather(self, rows: Tensor) -> Tensor:
        """Return rows by their global numbers, dense, in the coordinates of the layout."""
        ...

    def draw_by_distance(self, fractions: Tensor) -> Tensor:
        """Draw rows in proportion to weight times squared distance (column `distances`).

        Each fraction in [0, 1) is a position in the running sum of masses along the binary tree.
        """
        ...

    def draw_by_weight(self, fractions: Tensor) -> Tensor:
        """Draw different rows, one after the other, in proportion to their weights."""
        ...

    def labels(self) -> Tensor:
        """Return the label of each point, (n,) int32. Later folds do not write to this tensor."""
        ...

    def trimmed(self) -> Tensor | None:
        """Return a mask of the trimmed points, (n,) bool; None if no fold has trimmed any."""
        ...

    def forget(self) -> None:
        """Forget the labels of the last iteration: the next one counts every point as changed."""
        ...


def weighted_sum(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the weighted sum of a block's values, in float64."""
    # Also for float32: after 2^24 numbers of like size, such a sum would not grow any more.
    values = values.double()
    return (values if weights is None else values * weights).sum()
