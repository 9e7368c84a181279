"""Are the kernels there? An install without a compiler has none, and everything else works."""

from typing import Any

_kernels: Any
try:
    from lloydformer.engines.native import _kernels  # type: ignore[attr-defined, no-redef]
except ImportError:
    _kernels = None


def kernels() -> Any:
    """The module of kernels, or an error that says how to get it."""
    if _kernels is None:
        raise ValueError(
            'engine: found "native", which was not built here (no C++ compiler at installation?); '
            'pass "chunked", or install one and run: pip install --force-reinstall --no-deps .'
        )
    return _kernels


def instruction_set() -> str | None:
    """What the kernels use on this machine: "avx512", "avx2" or "portable"; None without them."""
    return None if _kernels is None else str(_kernels.isa())
