"""Results of the benchmark: their files and charts."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

from lloydformer.data.storage.atomic_files import (
    atomic_write,
    atomic_write_text,
    refuse_to_overwrite,
)
from lloydformer.data.storage.bounded_read import read_json
from lloydformer.plots.axes import require_matplotlib

PICTURES = (".png", ".svg", ".pdf")

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def load_result(path: Path) -> dict[str, Any]:
    """Read a result from a file of `bench -o`."""
    try:
        result = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; pass a file that bench -o wrote") from None
    if not isinstance(result, dict) or "question" not in result:
        raise ValueError(f"{path} is not a result of a benchmark; pass a file that bench -o wrote")
    return result


def check_output(path: Path, force: bool) -> None:
    """Raise ValueError if the kind of file is unknown, or the file cannot be written."""
    if path.suffix not in (".json", *PICTURES):
        kinds = ", ".join((".json", *PICTURES))
        raise ValueError(f"--output: found {path}; pass a name that ends with one of {kinds}")
    # Before minutes of samples: a chart could not be drawn without matplotlib.
    if path.suffix in PICTURES:
        try:
            require_matplotlib()
        except ImportError as error:
            raise ValueError(f"--output: found {path}, but {error}") from None
    refuse_to_overwrite(path, force)


def write_output(result: dict[str, Any], path: Path) -> None:
    """Write the result as JSON, or draw its chart, by the ending of the name."""
    if path.suffix == ".json":
        atomic_write_text(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        return
    from matplotlib.figure import Figure

    from lloydformer.plots.time_chart import times

    size = (8.5, 2.2 + 0.6 * len(result["rows"]))  # inches; every row has the same height
    figure, picture = Figure(size, layout="constrained"), BytesIO()
    times(result, figure.subplots())
    figure.savefig(picture, format=path.suffix[1:], dpi=150)
    # Drawn in memory first: a drawing that fails leaves no file.
    with atomic_write(path) as file:
        file.write(picture.getvalue())


def format_seconds(value: float) -> str:
    """Return a time with three digits and a unit."""
    size, unit = next(((s, u) for s, u in _UNITS if value >= s), _UNITS[-1])
    return f"{value / size:.3g} {unit}"


def relative_excess(row: dict[str, Any], name: str) -> float:
    """Return how far an objective is above the lowest of its row, relative to that."""
    least = min(m["objective"] for m in row["contenders"].values())
    return row["contenders"][name]["objective"] / least - 1 if least > 0 else 0.0
