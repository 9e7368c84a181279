"""Labels that stay where the points are."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.partitioned.requests import Labelling, LabelsRequest
from lloydformer.plans.session import Fold


@dataclass(frozen=True)
class DistributedLabels:
    """The labels of all points at one moment, as the folds that compute them.

    They can be computed again wherever the points are, now or after the fit.

    Attributes
    ----------
    session : PartitionedSession
        Sends requests to the partitions.
    folds : tuple of Fold
        Those that compute the labels.
    numbers : Tensor of shape (k,) or None
        The number that each cluster has got since; None: its own.
    """

    session: Any
    folds: tuple[Fold, ...]
    numbers: Tensor | None = None

    def same_as(self, other: Any, n_clusters: int) -> bool:
        """Return whether two labellings are equal up to the numbers of the clusters."""
        function = partial(_code_pairs, n_clusters=n_clusters)
        found = self._map(LabelsRequest(folds=(self.folds, other.folds), function=function))
        # Labels are compared where they are; at most 4 k^2 pairs come here. They are a bijection if
        # no code of either labelling is in two of them.
        pairs = {pair for _, some in found for pair in some}
        return all(len({pair[i] for pair in pairs}) == len(pairs) for i in (0, 1))

    def count_clusters(self, n_clusters: int) -> int:
        """Return the number of clusters that have points."""
        function = partial(_has_points, n_clusters=n_clusters)
        found = self._map(LabelsRequest(folds=(self.folds,), function=function))
        return int(torch.stack([mask for _, mask in found]).any(dim=0).sum())

    def renumber(self, numbers: Tensor) -> "DistributedLabels":
        """Give each cluster j the number numbers[j]."""
        return replace(self, numbers=numbers)

    def gather(self) -> Tensor:
        """Return the labels of all points, (n,) int32; -1 for points that are trimmed."""
        function = partial(finish_labels, numbers=self.numbers)
        found = self._map(LabelsRequest(folds=(self.folds,), function=function))
        # Responses come in any order; the first row of a partition says where its labels belong.
        return torch.cat([labels for _, labels in sorted(found, key=lambda each: each[0])])

    def _map(self, request: LabelsRequest) -> list[tuple[int, Any]]:
        return [each for some in self.session.send(request) for each in some]


def finish_labels(labelling: Labelling, numbers: Tensor | None) -> Tensor:
    """Return labels as users get them: renumbered, and -1 for points that are trimmed."""
    labels, trimmed = labelling
    if numbers is not None:
        labels = numbers.to(labels)[labels.long()]
    return labels if trimmed is None else labels.masked_fill_(trimmed, -1)


# Not inside the methods: requests are pickled, which inner functions cannot be.


def _has_points(labelling: Labelling, n_clusters: int) -> Tensor:
    return torch.bincount(labelling[0], minlength=n_clusters) > 0


def _code_pairs(one: Labelling, other: Labelling, n_clusters: int) -> list[tuple[int, int]]:
    """Return the different pairs of codes in two labellings; a code is a label and its mask."""
    base = 2 * n_clusters
    first, second = (
        labels.long() if trimmed is None else labels.long() + n_clusters * trimmed
        for labels, trimmed in (one, other)
    )
    joint = np.unique((first * base + second).numpy())
    return [divmod(code, base) for code in joint.tolist()]
