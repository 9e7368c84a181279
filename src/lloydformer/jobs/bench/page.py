"""Fill the tables of docs/speed.md from result files; marks in the page name the files."""

import re
from pathlib import Path

from lloydformer.jobs.bench.result import load, markdown

_PLACE = re.compile(r"(<!-- table of (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(page: str, results: Path) -> str:
    """The page with the table of each result file; empty where the file does not exist."""

    def table(match: re.Match[str]) -> str:
        path = results / f"{match[2]}.json"
        return match[1] + (markdown(load(path)) if path.exists() else "") + match[4]

    return _PLACE.sub(table, page)


def places(page: str) -> list[str]:
    """The names of the result files that the page has marks for."""
    return [match[2] for match in _PLACE.finditer(page)]
