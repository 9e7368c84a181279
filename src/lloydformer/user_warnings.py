"""Warnings that name the line of the user's code."""

import sys
import warnings

# Packages between the user's line and the warning: the wrappers of `fit` are ours, those of
# scikit-learn, and the `with` statements of contextlib. Circuits are called by torch.
_WRAPPERS = ("lloydformer", "sklearn", "contextlib", "torch")
# `from lloydformer.data import open` asks for the name here. Python leaves these calls out when it
# counts levels.
_IMPORTS = ("importlib", "_frozen_importlib")


def warn_user(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Issue a warning for the line that called this package, possibly through scikit-learn."""
    # Counted, not a constant: decorators differ between classes and versions of scikit-learn, and
    # `fit_predict` or a pipeline add calls. Python 3.12 has skip_file_prefixes for it.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        package = frame.f_globals["__name__"].split(".")[0]
        if package not in (*_WRAPPERS, *_IMPORTS):
            break
        level, frame = level + (package not in _IMPORTS), frame.f_back
    warnings.warn(message, category, stacklevel=level)
