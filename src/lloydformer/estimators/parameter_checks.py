"""How parameters are checked before a fit: scikit-learn's rules for them, and its decorator.

Both are private in scikit-learn and may change with any release. No other module imports private
names of scikit-learn; the bounds of scikit-learn in pyproject.toml are versions that were tested.
"""

from functools import cache
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

__all__ = ["Interval", "StrOptions", "checked_fit", "parameters_hold"]

checked_fit = _fit_context(prefer_skip_nested_validation=True)
"""Decorator of `fit` and `partial_fit`: check the parameters, then run."""


def parameters_hold(estimator: Any) -> bool:
    """Has every parameter an allowed type and value? Faster than scikit-learn's own check.

    That one reads the signature of the constructor, and makes all constraints, in each fit; it is
    left to find the words for what does not hold.
    """
    return all(
        any(constraint.is_satisfied_by(getattr(estimator, name)) for constraint in allowed)
        for name, allowed in _constraints(type(estimator))
    )


@cache
def _constraints(kind: Any) -> list[tuple[str, list[Any]]]:
    """The constraints of each parameter of a class."""
    found = kind._parameter_constraints
    names = [name for name in kind._get_param_names() if name in found]
    return [(name, [make_constraint(each) for each in found[name]]) for name in names]
