"""Fills the tables of docs/symmetric.md from results/read_symmetric.json."""

import json
import re
from pathlib import Path
from typing import Any

from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "symmetric.md"
RESULT = HERE / "results" / "read_symmetric.json"
WHERE = {"paper": "the paper's tasks", "real": "real data"}
_PLACE = re.compile(
    r"(<!-- (numbers|experiments|centers|looks) -->\n)(.*?)(<!-- end -->)", re.DOTALL
)


def fill_tables(page: str, result: dict[str, Any]) -> str:
    """The page with every table as the result has it."""
    tables = {"numbers": numbers, "experiments": experiments, "centers": centers, "looks": looks}
    return _PLACE.sub(lambda match: match[1] + tables[match[2]](result) + match[4], page)


def places(page: str) -> list[str]:
    return [match[2] for match in _PLACE.finditer(page)]


def numbers(result: dict[str, Any]) -> str:
    """The numbers in the first step, a middle one and the last."""
    rows = []
    for name, where in WHERE.items():
        steps = result["steps"][name]
        for t in (0, len(steps) // 2, len(steps) - 1):
            step = steps[t]
            rows.append(
                [
                    where,
                    f"{t + 1} of {len(steps)}",
                    _join_numbers(step["sharpness"], 1),
                    _join_numbers(step["strides"], 2),
                    f"{sum(step['strides']):.2f}",
                    f"{step['served']:.2f}",
                    _join_numbers(step["apart_sharpness"], 1),
                    _join_numbers(step["aparts"], 2),
                ]
            )
    return _table(
        [
            "on",
            "step",
            "sharpness γ",
            "strides v",
            "their sum",
            "mean of a + b",
            "γ' of repulsion",
            "its strengths w",
        ],
        rows,
    )


def centers(result: dict[str, Any]) -> str:
    """Return a step for the quarters of the centers with the least and the greatest cost."""
    rows = []
    for name, where in WHERE.items():
        steps = result["steps"][name]
        for t in (0, len(steps) - 1):
            for which, words in (("poor", "least"), ("rich", "greatest")):
                kinds = ("soft", "sharp", "served", "apart")
                found = [f"{steps[t][which][kind]:.2f}" for kind in kinds]
                rows.append([where, f"{t + 1} of {len(steps)}", words, *found])
    head = [
        "on",
        "step",
        "share of the cost",
        "strides of the two soft heads",
        "of the two sharp heads",
        "mean of a + b",
        "repulsion",
    ]
    return _table(head, rows)


def looks(result: dict[str, Any]) -> str:
    """Over how many points a head's attention is spread, and its part on a center's own."""
    rows = [
        [f"{g}", f"{head['points']:.0f}", f"{head['own_poor']:.2f}", f"{head['own_rich']:.2f}"]
        for g, head in enumerate(result["looks"])
    ]
    head = [
        "decoder head",
        "spread over points",
        "own ones, least share of the cost",
        "own ones, greatest share",
    ]
    return _table(head, rows)


def experiments(result: dict[str, Any]) -> str:
    rows = []
    for name, found in result["rows"].items():
        paper, many, real = (found[which] for which in ("paper", "many", "real"))
        rows.append(
            [
                name,
                f"{paper['log_objective']:.3f}",
                f"{paper['excess']:.2f}",
                f"{paper['solved']:.0f}",
                f"{many['excess']:.1f}",
                f"{real['excess']:.2f}",
                f"{real['polished']:.2f}",
            ]
        )
    head = [
        "",
        "paper's tasks: mean log objective",
        "above best, %",
        "solved, %",
        "d 16, k 30: above best, %",
        "real data: above best, %",
        "with polish, %",
    ]
    return _table(head, rows)


def _join_numbers(values: list[float], digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    atomic_write_text(PAGE, fill_tables(PAGE.read_text(encoding="utf-8"), result))
