"""Results in Markdown: the file of one label, and the generated parts of docs/paper.md."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from lloydformer.paper.artefact import Artefact, Record, TextTable
from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.run import load_result
from lloydformer.paper.verdict_tables import summary, verdict_tables

_MARK = re.compile(
    r"(<!-- (overview|tables|verdicts|pictures|runs) of ([\w-]+) -->\n)(.*?)(<!-- end -->)",
    re.DOTALL,
)


def sheet(of: Artefact, result: Record, pictures: Iterable[str] = ()) -> str:
    """The file LABEL.md: description, tables, pictures (names of files) and verdicts."""
    shown = [
        f"# {of.title} ({', '.join(of.cites)})", of.about,
        *map(grid, of.tables(result)), *(f"![{name}]({name})" for name in pictures),
        *_verdict_grids(of, result),
    ]  # fmt: skip
    return "\n\n".join(part.strip() for part in shown) + "\n"


def grid(table: TextTable) -> str:
    """A Markdown table, with its caption above."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    text = "\n".join(f"| {' | '.join(map(_cell, cells))} |" for cells in lines)
    return f"{table.caption}\n\n{text}" if table.caption else text


def fill_marks(page: str, results: Path, pictures: str = "pictures/paper") -> str:
    """The page with the text between its marks generated from the results in a folder.

    A mark is `<!-- KIND of LABEL -->`, ended by `<!-- end -->`. pictures: their folder, relative
    to the page.
    """

    def part(match: re.Match[str]) -> str:
        if match[2] == "overview":
            return f"{match[1]}{_overview(results)}{match[5]}"
        result = load_result(results, match[3])
        text = "" if result is None else _PARTS[match[2]](artefact(match[3]), result, pictures)
        return f"{match[1]}{text}{match[5]}"

    return _MARK.sub(part, page)


def marks(page: str) -> list[tuple[str, str]]:
    """The marks of a page: (kind, label)."""
    return [(match[2], match[3]) for match in _MARK.finditer(page)]


def _overview(results: Path) -> str:
    """One row for each label that has a result, and one for all."""
    found = [(artefact(label), load_result(results, label)) for label in LABELS]
    judged = [(of, of.verdicts(result)) for of, result in found if result is not None]
    rows = [[of.label, of.title, summary(verdicts)] for of, verdicts in judged]
    rows.append(["all", "", summary([one for _, verdicts in judged for one in verdicts])])
    return grid(TextTable("", ["label", "what it shows", "verdict"], rows)) + "\n"


def _tables(of: Artefact, result: Record, pictures: str) -> str:
    return "\n\n".join(map(grid, of.tables(result))) + "\n"


def _verdicts(of: Artefact, result: Record, pictures: str) -> str:
    return "\n\n".join(_verdict_grids(of, result)) + "\n"


def _verdict_grids(of: Artefact, result: Record) -> list[str]:
    """A table for each kind, with its caption in bold."""
    tables = verdict_tables(of.verdicts(result), loud=True)
    return [grid(replace(table, caption=f"**{table.caption}**")) for table in tables]


def _pictures(of: Artefact, result: Record, pictures: str) -> str:
    shown = [f"![{p.caption}]({pictures}/{p.name}.png)" for p in of.pictures(result)]
    return "\n\n".join(shown) + "\n"


def _runs(of: Artefact, result: Record, pictures: str) -> str:
    """Protocol, seed, device, duration, date and versions, in one line."""
    source, scope = result["provenance"], result["scope"]
    protocol = "the paper's protocol" if scope["full"] else "the quick protocol"
    trials = "" if scope["trials"] is None else f", {scope['trials']} trials"
    return (
        f"*{protocol}{trials}, seed {scope['seed']}, {scope['device']}, {result['seconds']:.0f} s; "
        f"{source['date'][:10]}, lloydformer {source['versions']['lloydformer']}, torch "
        f"{source['versions']['torch']}*\n"
    )


_PARTS: dict[str, Callable[[Artefact, Record, str], str]] = {
    "tables": _tables, "verdicts": _verdicts, "pictures": _pictures, "runs": _runs,
}  # fmt: skip


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")
