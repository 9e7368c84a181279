"""The module of kernels, which an install without a C++ compiler lacks; the rest works."""

from typing import Any

_kernels: Any
try:
    from lloydformer.engines.native import _kernels  # type: ignore[attr-defined, no-redef]
except ImportError:
    _kernels = None


def kernels() -> Any:
    """Return the module of kernels, or raise `ValueError`, which says how to get it."""
    if _kernels is None:
        raise ValueError(
            'engine: found "native", which was not built here (no C++ compiler at installation?); '
            'pass "chunked", or install one and run: pip install --force-reinstall --no-deps .'
        )
    return _kernels


def instruction_set() -> str | None:
    """Return "avx512", "avx2" or "portable", as the kernels use here; None without kernels."""
    return None if _kernels is None else str(_kernels.isa())
