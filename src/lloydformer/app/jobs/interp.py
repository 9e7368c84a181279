"""`lloydformer interp`: measure methods that find circuits, and write the result."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from lloydformer.app.jobs.torch_threads import torch_threads
from lloydformer.data.storage.atomic_files import atomic_write, atomic_write_text
from lloydformer.data.storage.bounded_read import read_json
from lloydformer.interp.benchmark import (
    FORMS,
    QUICK_TEMPERATURES,
    RECIPES,
    TEMPERATURES,
    list_cases,
    measure_case,
)
from lloydformer.interp.finders import METHODS
from lloydformer.paper.provenance import provenance

# Pairs of inputs of each case: those of the quick form, and of the full one.
QUICK_PAIRS, PAIRS = 4, 16


class InterpJob:
    """The cases of a run of the benchmark; raises ValueError for options that fit none."""

    def __init__(self, recipes: list[str], forms: list[str], full: bool, seed: int) -> None:
        for option, words, known in (("--recipe", recipes, RECIPES), ("--form", forms, FORMS)):
            for word in words:
                if word not in known:
                    raise ValueError(f"{option}: found {word!r}; pass one of {', '.join(known)}")
        self.full, self.seed = full, seed
        temperatures = TEMPERATURES if full else QUICK_TEMPERATURES
        # all trained layers, unless a recipe is asked for
        trained: list[str] | None = [] if recipes else None
        cases = list_cases(recipes or RECIPES, temperatures, trained)
        self.cases = [case for case in cases if not forms or case.form in forms]

    def run(self, after: Callable[[str], None] = lambda name: None) -> dict[str, Any]:
        """Measure all cases; `after` is called after each."""
        n_pairs, rows = PAIRS if self.full else QUICK_PAIRS, dict[str, dict[str, Any]]()
        with torch_threads(1):  # thousands of small runs
            for case in self.cases:
                rows[str(case)] = measure_case(case, n_pairs, self.seed)
                after(str(case))
        return {
            "question": "interp",
            "methods": [*METHODS],
            "settings": {"full": self.full, "n_pairs": n_pairs, "seed": self.seed},
            "rows": rows,
            "provenance": provenance(),
        }


def load_scores(path: Path) -> dict[str, Any]:
    """Read a result from a file of `interp -o`."""
    result = read_json(path)
    if not isinstance(result, dict) or result.get("question") != "interp":
        raise ValueError(f"{path} is not a result of interp; pass a file that interp -o wrote")
    return result


def write_scores(result: dict[str, Any], path: Path) -> None:
    """Write the result as JSON, or draw its curves, by the ending of the name."""
    if path.suffix == ".json":
        atomic_write_text(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        return
    from matplotlib.figure import Figure

    from lloydformer.plots.finding_curve import draw_finding_curves

    picture = BytesIO()
    figure = Figure((9.0, 4.2), layout="constrained")
    draw_finding_curves([*result["rows"].values()], figure)
    figure.savefig(picture, format=path.suffix[1:], dpi=150)
    # drawn in memory first: a drawing that fails leaves no file
    with atomic_write(path) as file:
        file.write(picture.getvalue())
