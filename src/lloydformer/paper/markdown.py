"""A label in Markdown: its tables, its pictures by name, and the verdicts."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from lloydformer.paper.artefact import Artefact, Found, Table
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.run import made
from lloydformer.paper.verdicts import summary, verdicts

_PLACE = re.compile(
    r"(<!-- (overview|tables|claims|pictures|runs) of ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL
)


def sheet(of: Artefact, result: Found, pictures: Iterable[str] = ()) -> str:
    """All of a label, as the file LABEL.md."""
    shown = [
        f"# {of.title} ({', '.join(of.cites)})", of.about,
        *map(grid, of.tables(result)), *(f"![{name}]({name})" for name in pictures),
        grid(verdicts(of.claims(result), loud=True)),
    ]  # fmt: skip
    return "\n\n".join(part.strip() for part in shown) + "\n"


def grid(table: Table) -> str:
    """A table; its caption stands above it."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    text = "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in lines)
    return f"{table.caption}\n\n{text}" if table.caption else text


def filled(page: str, results: Path, pictures: str = "pictures/paper") -> str:
    """A page of the documentation with what its marks ask for, from the results in a folder."""

    def part(match: re.Match[str]) -> str:
        if match[2] == "overview":
            return f"{match[1]}{_overview(results)}{match[5]}"
        result = made(results, match[3])
        text = "" if result is None else _PARTS[match[2]](artefact(match[3]), result, pictures)
        return f"{match[1]}{text}{match[5]}"

    return _PLACE.sub(part, page)


def places(page: str) -> list[tuple[str, str]]:
    """What the page has a place for: (kind, label)."""
    return [(match[2], match[3]) for match in _PLACE.finditer(page)]


def _overview(results: Path) -> str:
    """A line for each label that has a result."""
    found = [(artefact(label), made(results, label)) for label in LABELS]
    rows = [
        [of.label, of.title, summary(of.claims(result))]
        for of, result in found
        if result is not None
    ]
    return grid(Table("", ["label", "what it shows", "verdict"], rows)) + "\n"


def _tables(of: Artefact, result: Found, pictures: str) -> str:
    return "\n\n".join(map(grid, of.tables(result))) + "\n"


def _claims(of: Artefact, result: Found, pictures: str) -> str:
    return grid(verdicts(of.claims(result), loud=True)) + "\n"


def _pictures(of: Artefact, result: Found, pictures: str) -> str:
    shown = [f"![{p.caption}]({pictures}/{p.name}.png)" for p in of.pictures(result)]
    return "\n\n".join(shown) + "\n"


def _runs(of: Artefact, result: Found, pictures: str) -> str:
    """How the numbers were made."""
    source, scope = result["provenance"], result["scope"]
    protocol = "the paper's protocol" if scope["full"] else "the quick protocol"
    trials = "" if scope["trials"] is None else f", {scope['trials']} trials"
    return (
        f"*{protocol}{trials}, seed {scope['seed']}, {scope['device']}, {result['seconds']:.0f} s; "
        f"{source['date'][:10]}, lloydformer {source['versions']['lloydformer']}, torch "
        f"{source['versions']['torch']}*\n"
    )


_PARTS: dict[str, Callable[[Artefact, Found, str], str]] = {
    "tables": _tables, "claims": _claims, "pictures": _pictures, "runs": _runs,
}  # fmt: skip


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")
