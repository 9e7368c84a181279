"""How parameters are checked before a fit: scikit-learn's rules for them, and its decorator.

Both are private in scikit-learn and may change with any release. No other module imports private
names of scikit-learn; the bounds of scikit-learn in pyproject.toml are versions that were tested.
"""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from numbers import Integral
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from lloydformer.data.shard import Shard
from lloydformer.engines.ranks import joined_ranks
from lloydformer.engines.ranks.group import MessageKind

__all__ = ["Interval", "StrOptions", "WholeNumbers", "checked_fit", "parameters_hold"]


class WholeNumbers(Interval):
    """Integers from `low` to `high`. True and False are not among them."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(Integral, low, high, closed="both")

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, bool) and super().is_satisfied_by(val)


def checked_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `fit` or `partial_fit`: check the parameters, then run.

    An error of one rank raises on all of them.
    """
    checked = _fit_context(prefer_skip_nested_validation=True)(fit)

    @wraps(fit)
    def run(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if not isinstance(X, Shard):
            return checked(self, X, *others, **named)
        ranks = joined_ranks()
        with ranks.together("fit"):
            ranks.gather_results(self._validate_params, MessageKind("fit"))
            return checked(self, X, *others, **named)

    return run


def parameters_hold(estimator: Any) -> bool:
    """Has every parameter an allowed type and value? Faster than scikit-learn's own check.

    That one reads the signature of the constructor, and makes all constraints, in each fit; it is
    left to find the words for what does not hold.
    """
    return all(
        (value := getattr(estimator, name)) is default
        or any(constraint.is_satisfied_by(value) for constraint in allowed)
        for name, default, allowed in _constraints(estimator.__class__)
    )


@cache
def _constraints(kind: type) -> list[tuple[str, Any, list[Any]]]:
    """Each parameter of a class that has constraints, its default, and these.

    A default is not checked again; one that is not allowed itself is given as `inspect`'s marker.
    """
    estimator: Any = kind
    found, made = inspect.signature(kind).parameters, []
    for name in estimator._get_param_names():
        if name in estimator._parameter_constraints:
            default = found[name].default
            allowed = [make_constraint(each) for each in estimator._parameter_constraints[name]]
            fine = any(constraint.is_satisfied_by(default) for constraint in allowed)
            made.append((name, default if fine else inspect.Parameter.empty, allowed))
    return made
