"""A step over some of the rows: the sums of a mini-batch."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lloydformer.data.rows import DenseRows
from lloydformer.plans.assign import cluster_masses
from lloydformer.plans.contract import Sums
from lloydformer.plans.session import Columns, Session, Task


@dataclass(frozen=True)
class MinibatchSums(Task):
    """Label some rows by their nearest centers; returns their `Sums` and the sum of d^2.

    Weights are ignored, because rows are drawn in proportion to them.

    Attributes
    ----------
    rows : Tensor of shape (b,)
        Global row numbers.
    centers : Tensor of shape (k, d)
        The centers, in the precision of the data.
    """

    rows: Tensor
    centers: Tensor
    writes: ClassVar[Columns] = ()

    def of(self, points: Tensor) -> tuple[Sums, Tensor]:
        """Compute the task in Python, for these points (b, d)."""
        rows, k = DenseRows(points, None), len(self.centers)
        labels = rows.nearest(self.centers)
        away = rows.squared_distances(self.centers, labels).double().sum()
        return Sums(rows.sums(labels, k, None), cluster_masses(labels, None, k)), away


def sum_minibatch(session: Session, rows: Tensor, centers: Tensor) -> tuple[Sums, Tensor]:
    """Return the sums of these rows, in one engine call if there is such a task."""
    # Not a fold: a fold reads every block, and a mini-batch is a small part of the rows.
    task = MinibatchSums(rows, centers)
    found = session.run(task)
    return task.of(session.gather(rows)) if found is None else found
