"""A user's algorithm, or a function that does one step of it, with checks of what it returns."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from lloydformer.algorithms import Algorithm
from lloydformer.algorithms.contract import share, squared_distances
from lloydformer.paper.verify.known import StepFunction


class AlgorithmError(ValueError):
    """A user's algorithm failed, or returned something of a wrong shape."""


class GuardedAlgorithm:
    """An algorithm whose results are checked; the arrays that it receives are copies.

    Its further members (`decision`, `scores`, `seed`) are those of the algorithm.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm

    def __getattr__(self, name: str) -> Any:
        # copy and pickle ask for members before __init__ has run
        if name == "algorithm":
            raise AttributeError(name)
        return getattr(self.algorithm, name)

    def __repr__(self) -> str:
        return repr(self.algorithm)

    def assign(self, points: ndarray, centers: ndarray) -> ndarray:
        shape = (len(points), len(centers))
        return _call("assign", self.algorithm.assign, shape, points, centers)

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> ndarray:
        given = (points, centers, assignments, iteration)
        return _call("weigh", self.algorithm.weigh, (len(centers), len(points)), *given)

    def place(self, points: ndarray, weights: ndarray) -> ndarray:
        shape = (len(weights), points.shape[1])
        return _call("place", self.algorithm.place, shape, points, weights)


class StepAlgorithm:
    """A step function as an algorithm: `weigh` does the step, `place` returns its result.

    It has no assignments that could be compared; `assign` names the nearest centers.

    Attributes
    ----------
    step : callable
        The function.
    takes_iteration : bool
        Whether it has a third parameter, the number of the iteration.
    """

    def __init__(self, step: StepFunction) -> None:
        self.step, self.takes_iteration = step, _takes_iteration(step)

    def __repr__(self) -> str:
        return getattr(self.step, "__name__", None) or repr(self.step)

    def assign(self, points: ndarray, centers: ndarray) -> ndarray:
        distances = squared_distances(points, centers)
        return share(distances == distances.min(axis=1, keepdims=True), "first")

    def weigh(
        self, points: ndarray, centers: ndarray, assignments: ndarray, iteration: int
    ) -> ndarray:
        more = (iteration,) if self.takes_iteration else ()
        return _call(repr(self), self.step, centers.shape, points, centers, *more)

    def place(self, points: ndarray, weights: ndarray) -> ndarray:
        return weights


def as_algorithm(algorithm: object) -> GuardedAlgorithm | StepAlgorithm:
    """Return a user's algorithm or step function with checks; raise ValueError for anything else.

    algorithm: an object with `assign`, `weigh` and `place` (`lloydformer.algorithms.Algorithm`), or
    a function of points and centers that returns the new centers.
    """
    if isinstance(algorithm, type):
        raise ValueError(
            f"algorithm: found the class {algorithm.__name__}; pass an instance of it, "
            f"{algorithm.__name__}(...)"
        )
    if isinstance(algorithm, Algorithm):
        return GuardedAlgorithm(algorithm)
    if callable(algorithm):
        return StepAlgorithm(algorithm)
    raise ValueError(
        f"algorithm: found {algorithm!r}; pass a function step(points, centers) that returns the "
        "new centers, or an object with assign, weigh and place (lloydformer.algorithms.Algorithm)"
    )


def _takes_iteration(step: StepFunction) -> bool:
    """Return whether a third parameter has no default; raise ValueError unless there are 2 or 3."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):  # a function in C
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    needed = sum(p.default is p.empty for p in parameters if p.kind is not p.VAR_KEYWORD)
    if needed not in (2, 3):
        raise ValueError(
            f"algorithm: found a function of {needed} parameters; pass step(points, centers), or "
            "step(points, centers, iteration)"
        )
    return needed == 3


def _call(name: str, method: Callable[..., Any], shape: tuple[int, ...], *given: Any) -> ndarray:
    """Call a user's method with copies; raise AlgorithmError if it fails or the shape is wrong.

    Centers that are not numbers are not passed on: the result is then not a number either.
    """
    # copies, because a method may change its arguments in place
    arrays = [a for a in given if isinstance(a, ndarray)]
    if not all(np.isfinite(a).all() for a in arrays):
        return np.full(shape, np.nan)
    sizes = f"for arrays of shapes {', '.join(str(a.shape) for a in arrays)}"
    try:
        found = np.asarray(method(*(a.copy() if isinstance(a, ndarray) else a for a in given)))
        found = found.astype(float)
    except Exception as error:
        raise AlgorithmError(
            f"algorithm: {name} raised {type(error).__name__}: {error}, {sizes}"
        ) from error
    if found.shape != shape:
        raise AlgorithmError(
            f"algorithm: {name} returned shape {found.shape}; expected {shape}, {sizes}"
        )
    return found
