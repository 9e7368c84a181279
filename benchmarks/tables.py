"""Writes the tables of docs/speed.md, and its charts, from the results in this folder."""

import json
from pathlib import Path

from lloydformer.app.jobs.bench.result import fill_tables, write_output
from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
# Questions whose results are drawn as well.
CHARTS = ("iteration", "gpu")

if __name__ == "__main__":
    atomic_write_text(PAGE, fill_tables(PAGE.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_output(result, PAGE.parent / "pictures" / f"bench-{question}.svg")
