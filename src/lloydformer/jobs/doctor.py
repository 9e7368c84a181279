"""`lloydformer doctor`: packages that are installed or missing. Imports none of them."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lloydformer import __version__

CORE = ("torch", "numpy", "scikit-learn", "scipy", "safetensors", "jaxtyping", "typer", "rich")
EXTRAS = {"plots": ("matplotlib",), "data": ("pyarrow", "openpyxl")}


def examine() -> dict[str, Any]:
    """Packages of this installation, and commands that add what is missing."""
    extras = {name: {p: _version(p) for p in packages} for name, packages in EXTRAS.items()}
    missing = [name for name, packages in extras.items() if None in packages.values()]
    return {
        "lloydformer": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "core": {p: _version(p) for p in CORE},
        "extras": extras,
        "repairs": [f'for {name}: pip install "lloydformer[{name}]"' for name in missing],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
