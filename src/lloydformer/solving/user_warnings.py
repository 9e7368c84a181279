"""Warnings that name the line of the user's code."""

import sys
import warnings

# Packages between the user's line and the warning: the wrappers of `fit` are ours, those of
# scikit-learn, and the `with` statements of contextlib.
_WRAPPERS = ("lloydformer", "sklearn", "contextlib")


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning for the line that called this package, possibly through scikit-learn."""
    # Counted, not a constant: decorators differ between classes and versions of scikit-learn, and
    # `fit_predict` or a pipeline add calls. Python 3.12 has skip_file_prefixes for it.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] in _WRAPPERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
