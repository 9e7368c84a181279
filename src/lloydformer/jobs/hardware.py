"""`lloydformer doctor`: devices and engines, which torch must be imported for."""

import os
from typing import Any

import torch

from lloydformer.engines import default_engine
from lloydformer.engines.native import instruction_set

SLOWER = 6.0
"""Time of k-means without the kernels over the time with them (bench_iteration.json)."""


def examine_hardware() -> dict[str, Any]:
    """Devices, threads and engines of this installation, and how to build what is missing."""
    return {
        "devices": _devices(),
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "engine": default_engine(),
        "instruction_set": instruction_set(),
        "engines": {
            "circuit": "the literal circuit, O(n^2), any torch device",
            "native": _native(),
            "cuda": _cuda(),
            "chunked": "folds over blocks, any torch device",
        },
        "repairs": _rebuilding(),
    }


def _native() -> str:
    found = instruction_set()
    return "not built" if found is None else f"C++ kernels with {found}, CPU"


def _cuda() -> str:
    if not torch.cuda.is_available():
        return "no NVIDIA GPU here"
    from lloydformer.engines.cuda.backend import described

    return described(torch.device("cuda", torch.cuda.current_device()))


def _rebuilding() -> list[str]:
    """How to build the native engine, if it is missing."""
    if instruction_set() is not None:
        return []
    return [
        "for the native engine: install a C++ compiler (Debian: apt install g++), then run pip "
        "install --force-reinstall --no-deps lloydformer; without it, k-means on a CPU takes about "
        f"{SLOWER:.0f} times as long"
    ]


def _devices() -> list[str]:
    gpus = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]
