"""`lloydformer doctor`: what is installed, what is missing, and how to get it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import torch
import typer

from lloydformer import __version__
from lloydformer.cli.terminal import print_json, print_table, stdout
from lloydformer.engines import choose
from lloydformer.engines.native import instruction_set

CORE = ("torch", "numpy", "scikit-learn", "scipy", "safetensors", "jaxtyping", "typer", "rich")
EXTRAS = {"plots": ("matplotlib",), "data": ("pyarrow",)}

SLOWER = 6.0
"""How many times longer k-means takes without kernels: benchmarks/results/bench_iteration.json."""


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Versions, devices and engines; what is missing, and the command that gets it."""
    found = examine()
    if json:
        return print_json(found)
    packages = {**found["core"], **{p: v for e in found["extras"].values() for p, v in e.items()}}
    print_table(["package", "version"], [[p, v or "missing"] for p, v in packages.items()])
    stdout.print(f"\ndevices: {', '.join(found['devices'])}; {found['threads']} threads")
    stdout.print(f"engines: {'; '.join(f'{k} ({v})' for k, v in found['engines'].items())}")
    stdout.print(f'engine="auto" is {found["engine"]}', markup=False)
    for line in found["repairs"] or ["nothing is missing"]:
        stdout.print(line, markup=False)
    return None


def examine() -> dict[str, Any]:
    """What this installation has."""
    extras = {name: {p: _version(p) for p in packages} for name, packages in EXTRAS.items()}
    missing = [name for name, packages in extras.items() if None in packages.values()]
    return {
        "lloydformer": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "core": {p: _version(p) for p in CORE},
        "extras": extras,
        "devices": _devices(),
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "engine": choose("auto").name,
        "instruction_set": instruction_set(),
        "engines": {
            "circuit": "literal, O(n^2), any torch device",
            "native": _native(),
            "chunked": "folds over blocks, any torch device",
        },
        "repairs": [
            *(f'for {name}: pip install "lloydformer[{name}]"' for name in missing),
            *_rebuilding(),
        ],
    }


def _native() -> str:
    found = instruction_set()
    return "not built" if found is None else f"kernels in C++ with {found}, CPU"


def _rebuilding() -> list[str]:
    if instruction_set() is not None:
        return []
    return [
        f"for the native engine, without which k-means on a CPU takes about {SLOWER:.0f} times as "
        "long: install a C++ compiler (Debian: apt install g++), then run pip install "
        "--force-reinstall --no-deps lloydformer"
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    gpus = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]
