"""How parameters are checked before a fit: scikit-learn's rules for them, and its decorator.

Both are private in scikit-learn and may change with any release. No other module imports private
names of scikit-learn; the bounds of scikit-learn in pyproject.toml are versions that were tested.
"""

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "checked_fit"]

checked_fit = _fit_context(prefer_skip_nested_validation=True)
"""Decorator of `fit` and `partial_fit`: check the parameters, then run."""
