"""Tables of results on a page of the documentation, between marks that name their files."""

import re
from pathlib import Path

from lloydformer.jobs.bench.result import load, markdown

_PLACE = re.compile(r"(<!-- table of (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def filled(page: str, results: Path) -> str:
    """The page with the table of each result that is there; the other places are left empty."""

    def table(match: re.Match[str]) -> str:
        path = results / f"{match[2]}.json"
        return match[1] + (markdown(load(path)) if path.exists() else "") + match[4]

    return _PLACE.sub(table, page)


def places(page: str) -> list[str]:
    """The names of the results that the page has a place for."""
    return [match[2] for match in _PLACE.finditer(page)]
