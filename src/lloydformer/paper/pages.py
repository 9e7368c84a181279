"""Results as pages: the Markdown of one label, the marks in docs/paper.md, and one HTML page."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from markupsafe import Markup

from lloydformer.paper.artefact import BY_AUTHORS, Artefact, Record, TextTable, load_artefact
from lloydformer.paper.paper_numbers import numbers_table
from lloydformer.paper.text_map import text_map_table
from lloydformer.paper.verdict import Verdict
from lloydformer.paper.verdict_tables import summarise, verdict_tables
from lloydformer.plots.report import details, figure, heading, page, section, table, text

# Everything between a mark and the next end is replaced, so that a page can be filled again.
_MARK = re.compile(
    r"(<!-- (overview|map|tables|verdicts|pictures|runs) of ([\w-]+) -->\n)(.*?)(<!-- end -->)",
    re.DOTALL,
)

TITLE = "The paper, reproduced"
LEAD = (
    "Transformer Circuits Can Realize Clustering Algorithms, table by table and figure by "
    "figure: for each claim whether it holds, the paper's numbers and those measured here, and "
    "what was found beyond the paper."
)


def format_sheet(artefact: Artefact, result: Record, pictures: Iterable[str] = ()) -> str:
    """Return the file LABEL.md: description, tables, pictures (names of files) and verdicts."""
    parts = [
        f"# {artefact.title} ({', '.join(artefact.cites)})",
        artefact.about,
        *map(format_table, artefact.tables(result)),
        *(f"![{name}]({name})" for name in pictures),
        *_format_verdicts(artefact, result),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def format_table(table: TextTable) -> str:
    """Return a Markdown table, with its caption above."""
    lines = []
    for cells in (table.columns, ["---"] * len(table.columns), *table.rows):
        # a bar would begin a new cell, a line break a new row
        escaped = [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    caption = f"{table.caption}\n\n" if table.caption else ""
    return caption + "\n".join(lines)


def _format_verdicts(artefact: Artefact, result: Record) -> list[str]:
    """Return a Markdown table for each kind of verdict, with its caption in bold."""
    tables = verdict_tables(artefact.verdicts(result), loud=True)
    return [format_table(replace(table, caption=f"**{table.caption}**")) for table in tables]


def fill_marks(page: str, results: Mapping[str, Record], pictures: str = "pictures/paper") -> str:
    """Return the page with the text between its marks generated from the results, by label.

    A mark is `<!-- KIND of LABEL -->`, ended by `<!-- end -->`. pictures: their folder, relative
    to the page.
    """

    def fill(match: re.Match[str]) -> str:
        kind, label = match[2], match[3]
        if kind == "overview":
            columns = ("label", "what it shows", "verdict")
            table = TextTable("", columns, [row[:3] for row in _overview(results)])
            return f"{match[1]}{format_table(table)}\n{match[5]}"
        if kind == "map":
            return f"{match[1]}{format_table(text_map_table())}\n{match[5]}"
        if label not in results:  # a page may be made before all labels have results
            return f"{match[1]}{match[5]}"
        artefact, result = load_artefact(label), results[label]
        if kind == "tables":
            parts = list(map(format_table, artefact.tables(result)))
        elif kind == "verdicts":
            parts = _format_verdicts(artefact, result)
        elif kind == "pictures":
            shown = artefact.pictures(result)
            end = BY_AUTHORS if label.endswith(BY_AUTHORS) else ""
            parts = [f"![{p.caption}]({pictures}/{p.name}{end}.png)" for p in shown]
        else:
            source, scope = result["provenance"], result["scope"]
            protocol = "the full protocol" if scope["full"] else "the quick protocol"
            if scope.get("authors"):
                protocol = f"the authors' protocol ({'full' if scope['full'] else 'quick'})"
            trials = "" if scope["trials"] is None else f", {scope['trials']} trials"
            parts = [
                f"*{protocol}{trials}, seed {scope['seed']}, {scope['device']}, "
                f"{result['seconds']:.0f} s; {source['date'][:10]}, lloydformer "
                f"{source['versions']['lloydformer']}, torch {source['versions']['torch']}*"
            ]
        return match[1] + "\n\n".join(parts) + "\n" + match[5]

    return _MARK.sub(fill, page)


def find_marks(page: str) -> list[tuple[str, str]]:
    """Return the marks of a page: (kind, label)."""
    return [(match[2], match[3]) for match in _MARK.finditer(page)]


def _overview(results: Mapping[str, Record]) -> list[list[str]]:
    """Return a row for each label and one for all: label, title, summary, duration.

    Results by the authors' code are left out beside those by the text: they would count twice.
    """
    rows: list[list[str]] = []
    every: list[Verdict] = []
    results = {
        label: one
        for label, one in results.items()
        if label.removesuffix(BY_AUTHORS) == label or label.removesuffix(BY_AUTHORS) not in results
    }
    for label, result in results.items():
        artefact = load_artefact(label)
        verdicts = artefact.verdicts(result)
        rows.append([label, artefact.title, summarise(verdicts), f"{result['seconds']:.0f} s"])
        every += verdicts
    total = sum(result["seconds"] for result in results.values())
    return [*rows, ["all", "", summarise(every), f"{total:.0f} s"]]


def paper_page(results: Mapping[str, Record]) -> str:
    """Return one self-contained HTML page of these results, given by label."""
    overview = _overview(results)
    parts: list[Markup] = [
        heading(TITLE, level=1),
        text(LEAD, lead=True),
        # the row for all labels would only repeat that of a single one
        table(
            ("label", "what it shows", "verdict", "took"),
            overview if len(results) > 1 else overview[:-1],
        ),
    ]
    for label, result in results.items():
        artefact = load_artefact(label)
        verdicts, ours = artefact.verdicts(result), artefact.tables(result)
        theirs = numbers_table(artefact.label)
        # two tables fit side by side if they have few columns; 6 was chosen by hand
        is_narrow = all(len(one.columns) <= 6 for one in ours)
        tables = [*theirs, *ours]
        source = result["provenance"]
        made = {
            "settings": ", ".join(f"{name} {value}" for name, value in result["scope"].items()),
            **{name: source[name] for name in ("command", "commit", "date", "machine")},
            "versions": ", ".join(f"{name} {value}" for name, value in source["versions"].items()),
        }
        parts += [
            heading(f"{artefact.title} ({', '.join(artefact.cites)})"),
            text(artefact.about),
            section(*map(_html_table, tables), kind="columns" if theirs and is_narrow else ""),
            section(
                *(figure(p.figure, p.caption) for p in artefact.pictures(result)), kind="broad"
            ),
            heading(f"Verdict: {summarise(verdicts)}", level=3),
            *map(_html_table, verdict_tables(verdicts, loud=True)),
            details("How it was made", table(("", ""), list(made.items()))),
        ]
    return page(TITLE, parts)


def _html_table(found: TextTable) -> Markup:
    return table(found.columns, found.rows, found.caption)
