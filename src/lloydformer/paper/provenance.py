"""Provenance of a result: commit, machine, versions and command."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from lloydformer import __version__
from lloydformer.engines.native import instruction_set

_PACKAGE = Path(__file__).parents[2]


def provenance(*packages: str) -> dict[str, Any]:
    """What is needed to produce a result again; `packages` are listed with their versions."""
    return {
        "command": _command(),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", str(_PACKAGE))),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{_cpu()}, {os.cpu_count()} cores",
        "instruction_set": instruction_set(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "versions": {
            "lloydformer": __version__,
            **{p: version(p) for p in ("torch", "numpy", *packages)},
        },
    }


def _command() -> str:
    program = Path(sys.argv[0])
    words = ["python", sys.argv[0]] if program.suffix == ".py" else [program.name]
    return " ".join([*words, *sys.argv[1:]])


def _git(*words: str) -> str:
    """Output of a git command in the package's repository; empty without a repository."""
    command = ["git", "-C", str(_PACKAGE), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
