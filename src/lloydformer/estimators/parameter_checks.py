"""Checks before a fit: parameters by scikit-learn's rules, sample weights, the random state.

The rules and the decorator for `fit` are private in scikit-learn and may change with any release.
No other module imports private names of scikit-learn; the bounds of scikit-learn in pyproject.toml
are versions that were tested.
"""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike
from sklearn.base import _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from lloydformer.data.shard import Shard
from lloydformer.engines.ranks import join_ranks
from lloydformer.engines.ranks.group import MessageKind
from lloydformer.engines.thread_pool import one_core
from lloydformer.numerics.checks import refuse_masked

__all__ = [
    "Interval",
    "StrOptions",
    "WholeNumbers",
    "checked_fit",
    "find_invalid_parameter",
]


class WholeNumbers(Interval):
    """Constraint for integers from `low` to `high`; True and False are not allowed."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(Integral, low, high, closed="both")

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def checked_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `fit` or `partial_fit`: check the parameters, then run.

    An error of one rank raises on all of them. The caller's thread runs torch on one core; sessions
    have their own threads.
    """
    # A fit that another one calls, as `KMedoids.fit` calls `Clusterer.fit`, is not checked again.
    checked = _fit_context(prefer_skip_nested_validation=True)(fit)

    @wraps(fit)
    @one_core()
    def run(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if not isinstance(X, Shard):
            return checked(self, X, *others, **named)
        # A rank that refuses its parameters alone would leave the others waiting for its rows.
        ranks = join_ranks()
        with ranks.together("fit"):
            ranks.gather_results(self._validate_params, MessageKind("fit"))
            return checked(self, X, *others, **named)

    return run


def find_invalid_parameter(estimator: Any) -> tuple[str, Any, list[Any]] | None:
    """Return the first parameter that is not allowed: its name, its value and its constraints.

    Faster than scikit-learn's own check, which reads the signature of the constructor and makes
    all constraints in each fit; that one is called for its error message only.
    """
    for name, default, allowed in _constraints(estimator.__class__):
        value = getattr(estimator, name)
        # Most parameters are the default itself; then there is nothing to check.
        if value is not default and not any(c.is_satisfied_by(value) for c in allowed):
            return name, value, allowed
    return None


@cache
def _constraints(kind: type) -> list[tuple[str, Any, list[Any]]]:
    """Return each parameter of a class that has constraints, its default, and these.

    A default is not checked again. A default that is not allowed is replaced by
    `inspect.Parameter.empty`, which is not a value of any parameter.
    """
    estimator: Any = kind
    parameters, constraints = inspect.signature(kind).parameters, []
    for name in estimator._get_param_names():
        if name in estimator._parameter_constraints:
            default = parameters[name].default
            allowed = [make_constraint(rule) for rule in estimator._parameter_constraints[name]]
            is_allowed = any(constraint.is_satisfied_by(default) for constraint in allowed)
            constraints.append((name, default if is_allowed else inspect.Parameter.empty, allowed))
    return constraints


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one weight for each row, in float64, at least one of them above 0."""
    weights = check_nonnegative_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
    return weights


def check_nonnegative_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one weight for each row, in float64; a number is the weight of all rows."""
    if isinstance(sample_weight, Number):  # as scikit-learn allows
        sample_weight = np.full(n_rows, sample_weight)
    refuse_masked("sample_weight", sample_weight)
    weights = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        order="C",
        input_name="sample_weight",
        ensure_min_samples=min(n_rows, 1),  # a rank may have no rows
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight: found shape {weights.shape}; pass one weight for each of the "
            f"{n_rows} rows of X"
        )
    if (negative := np.flatnonzero(weights < 0)).size:
        row = negative[0]
        raise ValueError(
            f"sample_weight: found the negative weight {weights[row]} in row {row}; "
            "pass weights of at least 0"
        )
    return weights


def check_enough_rows(estimator: Any, n_weighted: int, n_rows: int) -> None:
    """Raise `ValueError` if fewer rows than clusters have a weight above 0."""
    if n_weighted < estimator.n_clusters:
        raise ValueError(
            f"n_samples={n_weighted} should be >= n_clusters={estimator.n_clusters}."
            + (" Rows of weight 0 do not count." if n_weighted < n_rows else "")
        )


class _Zeros(ISeedSequence):
    """Initial state of a generator that is seeded before it draws."""

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> Any:
        # NumPy copies the words one by one: 624 elements of an array take 40 µs, of bytes 10.
        return bytes(n_words)


def make_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator of a fit, as scikit-learn's `check_random_state` does."""
    if type(random_state) is not int:
        return check_random_state(random_state)
    # `RandomState(seed)` first fills its state from the entropy of the system (0.1 ms, a tenth of
    # a small fit), and only then seeds it. Here it is filled with zeros.
    bits = np.random.MT19937(_Zeros())  # type: ignore[arg-type]  # documented: ISeedSequence
    generator = np.random.RandomState(bits)
    generator.seed(random_state)
    return generator
