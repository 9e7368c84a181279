"""Squared distances in float64, how a kernel may round them, and how numbers are compared."""

import math
from functools import cached_property

import numpy as np
import torch
from kernel_problems import Problem

U = float(np.finfo(np.float64).eps)


class Distances:
    """Squared distances (n, k) of the rows to some centers, and how a kernel may round them."""

    def __init__(self, given: Problem, centers: torch.Tensor) -> None:
        self.given, self.centers = given, centers.double().numpy()
        self.squares = np.stack([((given.rows - c) ** 2).sum(axis=1) for c in self.centers], axis=1)
        away = np.sqrt(self.squares)
        e = given.error[:, None]
        self.read = 2 * math.sqrt(given.d) * away * e + given.d * e**2  # by rounded rows

    @cached_property
    def by_differences(self) -> np.ndarray:
        tiny = float(torch.finfo(self.given.data.dtype).tiny)
        return (self.given.d + 6) * self.given.eps * self.squares + self.read + tiny

    @cached_property
    def expanded(self) -> np.ndarray:
        """|c|^2 - 2 x c + |x|^2."""
        norms = (self.given.rows**2).sum(axis=1) + (self.centers**2).sum(axis=1).max()
        return 2 * (self.given.d + 6) * self.given.eps * norms[:, None] + self.read

    @cached_property
    def exactly(self) -> np.ndarray:
        """Of labels: ties are decided in float64, from rows that only a transformation rounds."""
        data = self.given.data
        read = self.read if data.scaling is not None or data.directions else 0.0
        return 4 * (self.given.d + 6) * U * self.squares + 2 * read

    @property
    def least(self) -> np.ndarray:
        return self.squares.min(axis=1)

    def check_labels(self, labels: np.ndarray, error: np.ndarray) -> None:
        """No center is nearer, but for this error."""
        rows = np.arange(len(labels))
        assert labels.min() >= 0
        assert labels.max() < len(self.centers)
        own = self.squares[rows, labels] - error[rows, labels]
        assert (own <= (self.squares + error).min(axis=1)).all(), "not the nearest center"

    def check_exact_labels(self, labels: np.ndarray) -> None:
        """No center is nearer in float64; of equal centers the first."""
        self.check_labels(labels, self.exactly)
        _, first, back = np.unique(self.centers, axis=0, return_index=True, return_inverse=True)
        assert (labels == first[back.reshape(-1)][labels]).all(), "the first of equal centers"


def close(found, expected, tolerance, what: str) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape, what
    assert np.isfinite(found).all(), what
    worst = (np.abs(found - expected) - tolerance).max(initial=-1.0)
    assert worst <= 0, (what, float(worst), np.abs(expected).max(initial=0.0))


def by_label(values: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    out = np.zeros((k, *values.shape[1:]))
    np.add.at(out, labels, values)
    return out
