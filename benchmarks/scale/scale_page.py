"""Writes the tables and charts of docs/scale.md and its notes from results/scale*.json."""

import json
import re
from pathlib import Path
from typing import Any

from fitted import load
from scale_charts import CHARTS
from scale_tables import TABLES

from lloydformer.data.storage.atomic_files import atomic_write_text

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "scale.md", ROOT / "docs" / "notes" / "cluster-costs.md")
SIMULATED = ROOT / "benchmarks" / "results" / "scale_simulated.json"
_PLACE = re.compile(r"(<!-- scale: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]


def fill_page(page: str, measured: Result, simulated: Result, *, draw: bool = False) -> str:
    """The page with its tables; charts are drawn only if asked for."""

    def part(match: re.Match[str]) -> str:
        name = match[2]
        if name in CHARTS:
            made = CHARTS[name](simulated) if draw else match[3].strip() + "\n"
        else:
            made = TABLES[name](measured, simulated)
        return f"{match[1]}\n{made}\n{match[4]}"

    return _PLACE.sub(part, page)


def main() -> None:
    simulated = json.loads(SIMULATED.read_text(encoding="utf-8"))
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        atomic_write_text(path, fill_page(page, load(), simulated, draw=True))


if __name__ == "__main__":
    main()
