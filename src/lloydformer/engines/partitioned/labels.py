"""Labels that stay where the points are."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.parts.questions import Labelling, OfLabels, PartsQuestion
from lloydformer.plans.session import Fold


@runtime_checkable
class Asked(Protocol):
    """What labels need of a session."""

    def ask(self, question: PartsQuestion) -> list[Any]: ...


@dataclass(frozen=True)
class LabelsOnParts:
    """The labels of all points at one moment, as the folds that lead to them.

    They can be made again wherever the points are, now or after the fit.

    Attributes
    ----------
    folds : tuple of Fold
        Those that lead to them.
    numbers : Tensor of shape (k,) or None
        The number that each cluster has got since; None: its own.
    """

    session: Asked
    folds: tuple[Fold, ...]
    numbers: Tensor | None = None

    def same_as(self, other: Any, n_clusters: int) -> bool:
        """Are the two labellings equal up to the numbers of the clusters?"""
        function = partial(_pairs, n_clusters=n_clusters)
        pairs = self._of_parts(OfLabels(folds=(self.folds, other.folds), function=function))
        both = {pair for _, found in pairs for pair in found}
        return all(len({pair[i] for pair in both}) == len(both) for i in (0, 1))

    def n_seen(self, n_clusters: int) -> int:
        """The number of clusters that have points."""
        function = partial(_seen, n_clusters=n_clusters)
        found = self._of_parts(OfLabels(folds=(self.folds,), function=function))
        return int(torch.stack([seen for _, seen in found]).any(dim=0).sum())

    def renumbered(self, numbers: Tensor) -> "LabelsOnParts":
        """Give each cluster j the number numbers[j]."""
        return replace(self, numbers=numbers)

    def gather(self) -> Tensor:
        """The labels of all points, (n,) int32; -1 for points that are trimmed."""
        function = partial(final_labels, numbers=self.numbers)
        found = self._of_parts(OfLabels(folds=(self.folds,), function=function))
        return torch.cat([labels for _, labels in sorted(found, key=lambda each: each[0])])

    def _of_parts(self, question: OfLabels) -> list[tuple[int, Any]]:
        return [each for some in self.session.ask(question) for each in some]


def final_labels(found: Labelling, numbers: Tensor | None) -> Tensor:
    """Labels as users get them."""
    labels, trimmed = found
    if numbers is not None:
        labels = numbers.to(labels)[labels.long()]
    return labels if trimmed is None else labels.masked_fill_(trimmed, -1)


def _seen(found: Labelling, n_clusters: int) -> Tensor:
    return torch.bincount(found[0], minlength=n_clusters) > 0


def _pairs(one: Labelling, other: Labelling, n_clusters: int) -> list[tuple[int, int]]:
    """The different pairs of codes for label and mask in two labellings."""
    base = 2 * n_clusters
    joint = np.unique((_codes(one, n_clusters) * base + _codes(other, n_clusters)).numpy())
    return [divmod(code, base) for code in joint.tolist()]


def _codes(found: Labelling, n_clusters: int) -> Tensor:
    labels, trimmed = found
    return labels.long() if trimmed is None else labels.long() + n_clusters * trimmed
