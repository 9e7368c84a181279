"""The compiled module of C++ kernels; an installation without a C++ compiler does not have it.

Without it the native engine is not available, and everything else works.
"""

from typing import Any

_kernels: Any
_import_error: ImportError | None = None
try:
    from lloydformer.engines.native import _kernels  # type: ignore[attr-defined, no-redef]
except ImportError as error:
    # Kept as the cause of the error below: the module may exist and be broken.
    _kernels, _import_error = None, error


def kernels() -> Any:
    """Return the compiled module.

    Raises `ValueError` if it cannot be imported: the message says how to install it, and the
    `ImportError` is its cause.
    """
    if _kernels is None:
        raise ValueError(
            'engine: found "native", which was not built here (no C++ compiler at installation?); '
            'pass "chunked", or install one and run: pip install --force-reinstall --no-deps .'
        ) from _import_error
    return _kernels


def instruction_set() -> str | None:
    """Return the instruction set in use, "avx512", "avx2" or "portable"; None without kernels."""
    return None if _kernels is None else str(_kernels.isa())
