"""`lloydformer doctor`: what is installed, what is missing, and how to get it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lloydformer import __version__

# As in pyproject.toml; a test compares them. Metadata of an installation could list them too, but
# parsing requirements needs a package of its own.
CORE = (
    *("torch", "filelock", "numpy", "scikit-learn", "scipy", "safetensors", "jaxtyping", "typer"),
    *("rich", "jinja2", "markupsafe"),
)
EXTRAS = {
    "plots": ("matplotlib",),
    "data": ("pyarrow", "openpyxl"),
    "dask": ("dask", "distributed"),
    "gpu": ("triton",),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "interp": ("transformer-lens", "nnsight"),
}
# Extras for work of a special kind, and the words for those that are not installed.
SPECIAL = {
    "gpu": "not installed; for NVIDIA GPUs only",
    "onnx": "not installed; for ONNX files only",
    "interp": "not installed; for TransformerLens only",
}
# Time of k-means without the C++ kernels over the time with them: the geometric mean over
# bench_iteration.json, which tests/app/jobs/bench/test_page.py compares.
SLOWER = 11.0


def examine_packages() -> dict[str, Any]:
    """Return the versions of this installation, and commands that add what is missing.

    Imports none of the packages: the first half of the report is printed before torch is loaded.
    """
    extras = {name: {p: _version(p) for p in packages} for name, packages in EXTRAS.items()}
    missing = [name for name, packages in extras.items() if None in packages.values()]
    return {
        "lloydformer": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "core": {p: _version(p) for p in CORE},
        "extras": extras,
        # Triton is of no use without a GPU: `examine_hardware` says whether it is missing.
        "repairs": [_install(name) for name in missing if name not in SPECIAL],
    }


def examine_hardware() -> dict[str, Any]:
    """Return devices, threads and engines, and how to get the kernels that are missing."""
    import torch

    from lloydformer.engines import default_engine
    from lloydformer.engines.native import instruction_set

    built, repairs, gpu = instruction_set(), [], "no NVIDIA GPU here"
    if built is None:
        repairs.append(
            "for the native engine: install a C++ compiler (Debian: apt install g++), then run pip "
            "install --force-reinstall --no-deps lloydformer; without it, k-means on a CPU takes "
            f"about {SLOWER:.0f} times as long"
        )
    if torch.cuda.is_available():
        from lloydformer.engines.cuda.backend import describe_backend

        gpu = describe_backend(torch.device("cuda", torch.cuda.current_device()))
        if _version("triton") is None:
            repairs.append(_install("gpu"))
    cuda = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return {
        "devices": ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])],
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "engine": default_engine(),
        "instruction_set": built,
        "engines": {
            "circuit": "the literal circuit, O(n^2), any torch device",
            "native": "not built" if built is None else f"C++ kernels with {built}, CPU",
            "cuda": gpu,
            "chunked": "folds over blocks, any torch device",
        },
        "repairs": repairs,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _install(extra: str) -> str:
    return f'for {extra}: pip install "lloydformer[{extra}]"'
