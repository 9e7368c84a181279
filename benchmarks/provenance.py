"""Where a number comes from: commit, machine, versions, command."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def provenance(*packages: str) -> dict[str, Any]:
    """What one needs to know to make a result again."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--", "src")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{_cpu()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("lloydformer", "torch", "numpy", *packages)},
    }


def save(name: str, result: dict[str, Any]) -> Path:
    """One JSON file in benchmarks/results."""
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], capture_output=True, text=True, check=False
    ).stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
