"""Provenance of a result: command, commit, machine and versions; benchmarks use it as well."""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from lloydformer import __version__
from lloydformer.engines.native import instruction_set

_PACKAGE = Path(__file__).parents[1]


def provenance(*packages: str) -> dict[str, Any]:
    """Return what is needed to produce a result again; `packages` are listed with versions."""
    program = Path(sys.argv[0])
    script = ["python", sys.argv[0]] if program.suffix == ".py" else [program.name]
    # a script that is not committed is a change as well; git refuses paths that are elsewhere
    places = [str(_PACKAGE)]
    if program.suffix == ".py" and program.resolve().is_relative_to(_PACKAGE.parents[1]):
        places.insert(0, str(program.resolve()))
    # Linux: platform.processor() is empty or only names the architecture there
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name.*?: *(.*)", info.read_text(), re.M) if info.exists() else []
    return {
        "command": " ".join([*script, *sys.argv[1:]]),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", *places)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores",
        "instruction_set": instruction_set(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "versions": {
            "lloydformer": __version__,
            **{name: version(name) for name in ("torch", "numpy", *packages)},
        },
    }


def _git(*words: str) -> str:
    """Return the output of a git command in the package's repository; empty without one."""
    command = ["git", "-C", str(_PACKAGE), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
