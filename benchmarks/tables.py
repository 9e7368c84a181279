"""Writes the tables of docs/speed.md and docs/choosing-k.md, and charts, from results here."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from lloydformer.app.jobs.bench.result import format_seconds, load_result, write_output
from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGES = (DOCS / "speed.md", DOCS / "choosing-k.md")
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
    return _join(table)


def _join(table: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"


def table_of_ways(result: dict[str, Any]) -> str:
    """Return a row for each way to choose k, with shares of the right k and mean indices."""
    summary, version = result["summary"], result["provenance"]["versions"]["scikit-learn"]
    numbers = next(iter(summary.values()))
    table = [
        [
            *("way", f"planted ({numbers['planted, problems']:.0f}): right k", "index"),
            *("with 2 clusters or more: right k", "index"),
            f"noise ({numbers['noise, problems']:.0f}): false clusters",
            *(f"published ({numbers['published, problems']:.0f}): right k", "index"),
            *(f"real ({numbers['real, problems']:.0f}): index", "seconds"),
        ],
        ["---"] * 10,
    ]
    names = [
        *("planted, right k", "planted, mean index"),
        *("planted from 2, right k", "planted from 2, mean index", "noise, false clusters"),
        *("published, right k", "published, mean index", "real, mean index"),
    ]
    for way, own in summary.items():
        cells = [
            "-"
            if name not in own
            else f"{own[name]:.3f}"
            if name.endswith("index")
            else f"{100 * own[name]:.1f} %"
            for name in names
        ]
        name = way.replace("scikit-learn", f"scikit-learn {version}")
        table.append([name, *cells, f"{own['planted, mean seconds']:.2f}"])
    return _join(table)


def table_of_kinds(result: dict[str, Any]) -> str:
    """Return the share of planted problems with the right k, for each kind and way."""
    rows = [row for row in result["rows"].values() if row["kind"] == "planted"]
    ways = [w for w in result["summary"] if all(w in row["found"] for row in rows)]
    table = [["problems", "number", *ways], ["---"] * (len(ways) + 2)]
    for fact in rows[0]["facts"]:
        for value in dict.fromkeys(row["facts"][fact] for row in rows):
            own = [row for row in rows if row["facts"][fact] == value]
            right = (mean(row["found"][way][0] == row["k"] for row in own) for way in ways)
            cells = (f"{100 * share:.0f} %" for share in right)
            table.append([f"{fact}: {value}", str(len(own)), *cells])
    return _join(table)


# How a table is made, if it is not one of times, and the result that it is made of.
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "choose_k": ("choose_k", table_of_ways),
    "choose_k_kinds": ("choose_k", table_of_kinds),
}


def fill_tables(page: str, results: Path) -> str:
    """Return a Markdown page with the table of each result file that its comments name.

    A table is empty where the file does not exist.
    """

    def fill(mark: re.Match[str]) -> str:
        if mark[2] in TABLES:
            name, make_table = TABLES[mark[2]]
            path = results / f"{name}.json"
            table = make_table(json.loads(path.read_text("utf-8"))) if path.exists() else ""
        else:
            path = results / f"{mark[2]}.json"
            table = markdown_table(load_result(path)) if path.exists() else ""
        return mark[1] + table + mark[4]

    return _TABLE.sub(fill, page)


if __name__ == "__main__":
    for page in PAGES:
        atomic_write_text(page, fill_tables(page.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_output(result, DOCS / "pictures" / f"bench-{question}.svg")
