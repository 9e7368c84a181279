"""The result of a question: measurements with their provenance, and tables made of them."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lloydformer.jobs.bench.contenders import limited, missing
from lloydformer.jobs.bench.measure import measure
from lloydformer.jobs.bench.problem import BenchCase, Contender
from lloydformer.jobs.bench.provenance import provenance
from lloydformer.jobs.bench.questions import Question
from lloydformer.storage.bounded_read import read_json

Result = dict[str, Any]

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def ask(
    name: str,
    question: Question,
    cases: Sequence[BenchCase],
    contenders: Sequence[Contender],
    settings: dict[str, Any],
    done: Callable[[str], None] = lambda what: None,
) -> Result:
    """Measure every case with every contender.

    `settings` has threads, repeats and seed; `done` is called after each sample.
    """
    with limited(settings["threads"]):
        rows = {
            c.name: measure(c, contenders, question.per, settings["repeats"], done) for c in cases
        }
    packages = {c.package for c in contenders} - {"lloydformer"}
    return {
        "question": name,
        "asks": question.asks,
        "per": question.per,
        "settings": {**settings, "dtype": "float32"},
        "provenance": provenance(*sorted(packages)),
        "missing": missing(),
        "notes": list(question.notes),
        "rows": rows,
        "ahead": mean_ahead(rows),
    }


def mean_ahead(rows: dict[str, Any]) -> float | None:
    """How many times longer the best peer takes; geometric mean over the rows."""
    ahead = [row["ahead"] for row in rows.values() if row["ahead"] is not None]
    return math.exp(sum(map(math.log, ahead)) / len(ahead)) if ahead else None


def load(path: Path) -> Result:
    """Read a result from a file of `bench -o`."""
    try:
        result = read_json(path)
    except ValueError as error:
        raise ValueError(f"{error}; pass a file that bench -o wrote") from None
    if not isinstance(result, dict) or "question" not in result:
        raise ValueError(f"{path} is not a result of a benchmark; pass a file that bench -o wrote")
    return result


def seconds(value: float) -> str:
    """A time with three digits and a unit."""
    size, unit = next(((s, u) for s, u in UNITS if value >= s), UNITS[-1])
    return f"{value / size:.3g} {unit}"


def excess(row: dict[str, Any], name: str) -> float:
    """How far an objective is above the lowest of its row, relative to that."""
    least = min(m["objective"] for m in row["contenders"].values())
    return row["contenders"][name]["objective"] / least - 1 if least > 0 else 0.0


def markdown(result: Result) -> str:
    """A Markdown table: a row for each case, the median of each contender."""
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows.values() for name in row["contenders"]))
    versions = result["provenance"]["versions"]
    heads = [f"{n} {versions[n]}" if n != "lloydformer" and n in versions else n for n in names]
    table = [["data", *heads, "ahead"], ["---"] * (len(names) + 2)]
    for case, row in rows.items():
        ahead = "" if row["ahead"] is None else f"{row['ahead']:.2f}"
        found = row["contenders"]
        cells = [seconds(found[n]["median"]) if n in found else "" for n in names]
        table.append([case, *cells, ahead])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"
