"""Writes the tables of docs/speed.md, and its charts, from the results in this folder."""

import json
import re
from pathlib import Path
from typing import Any

from lloydformer.app.jobs.bench.result import format_seconds, load_result, write_output
from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
# Questions whose results are drawn as well.
CHARTS = ("iteration", "gpu")

# A comment in a Markdown page that names a result file, the table below it, and its end.
_TABLE = re.compile(r"(<!-- table of (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def markdown_table(result: dict[str, Any]) -> str:
    """Return a Markdown table: a row for each case, the median of each contender."""
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows.values() for name in row["contenders"]))
    versions = result["provenance"]["versions"]
    # A time of a peer means nothing without its version; ours is that of the page.
    heads = [f"{n} {versions[n]}" if n != "lloydformer" and n in versions else n for n in names]
    table = [["data", *heads, "ahead"], ["---"] * (len(names) + 2)]
    for case, row in rows.items():
        times = {name: format_seconds(m["median"]) for name, m in row["contenders"].items()}
        ahead = "" if row["ahead"] is None else f"{row['ahead']:.2f}"
        table.append([case, *(times.get(name, "") for name in names), ahead])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"


def fill_tables(page: str, results: Path) -> str:
    """Return a Markdown page with the table of each result file that its comments name.

    A table is empty where the file does not exist.
    """

    def fill(mark: re.Match[str]) -> str:
        path = results / f"{mark[2]}.json"
        return mark[1] + (markdown_table(load_result(path)) if path.exists() else "") + mark[4]

    return _TABLE.sub(fill, page)


if __name__ == "__main__":
    atomic_write_text(PAGE, fill_tables(PAGE.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_output(result, PAGE.parent / "pictures" / f"bench-{question}.svg")
