"""Results of the scripts in this folder: JSON files with where their numbers come from."""

import json
from pathlib import Path
from typing import Any

from lloydformer.paper.provenance import provenance

__all__ = ["provenance", "save"]

RESULTS = Path(__file__).parent / "results"


def save(name: str, result: dict[str, Any]) -> Path:
    """One JSON file in benchmarks/results."""
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path
