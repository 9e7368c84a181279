"""Writes the tables of docs/speed.md anew from the results in this folder, and its charts."""

import json
from pathlib import Path

from lloydformer.jobs.bench.files import write_file
from lloydformer.jobs.bench.page import filled
from lloydformer.storage.atomic import write_whole

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
CHARTS = ("iteration", "gpu")
"""Questions whose results are drawn as well."""

if __name__ == "__main__":
    write_whole(PAGE, filled(PAGE.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_file(result, PAGE.parent / "pictures" / f"bench-{question}.svg")
