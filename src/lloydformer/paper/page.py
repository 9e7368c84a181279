"""One self-contained HTML page: for every label the paper's numbers, ours and the verdicts."""

from collections.abc import Mapping, Sequence

from lloydformer.paper.artefact import Artefact, Picture, Record, TextTable
from lloydformer.paper.labels import artefact
from lloydformer.paper.paper_numbers import printed
from lloydformer.paper.verdict_tables import summary, verdict_tables
from lloydformer.report import Part, details, figure, heading, page, section, table, text

LEAD = (
    "Transformer Circuits Can Realize Clustering Algorithms, table by table and figure by "
    "figure: for each claim whether it holds, the paper's numbers and those measured here, and "
    "what was found beyond the paper."
)


def paper_page(results: Mapping[str, Record]) -> str:
    """The HTML page of these results, given by label."""
    parts = [heading("The paper, made again", level=1), text(LEAD, lead=True), _overview(results)]
    for label, result in results.items():
        parts += _label(artefact(label), result)
    return page("The paper, made again", parts)


def _overview(results: Mapping[str, Record]) -> Part:
    judged = {label: artefact(label).verdicts(result) for label, result in results.items()}
    rows = [
        [label, artefact(label).title, summary(found), f"{results[label]['seconds']:.0f} s"]
        for label, found in judged.items()
    ]
    if len(rows) > 1:
        took = sum(result["seconds"] for result in results.values())
        every = [verdict for found in judged.values() for verdict in found]
        rows.append(["all", "", summary(every), f"{took:.0f} s"])
    return table(("label", "what it shows", "verdict", "took"), rows)


def _label(of: Artefact, result: Record) -> list[Part]:
    found = of.verdicts(result)
    theirs = [_table(TextTable("The paper", *rows))] if (rows := printed(of.label)) else []
    ours = [_table(one) for one in of.tables(result)]
    return [
        heading(f"{of.title} ({', '.join(of.cites)})"),
        text(of.about),
        section(*theirs, *ours, kind="columns" if theirs and _narrow(of, result) else ""),
        section(*(_picture(one) for one in of.pictures(result)), kind="broad"),
        heading(f"Verdict: {summary(found)}", level=3),
        *(_table(one) for one in verdict_tables(found, loud=True)),
        details("How it was made", table(("", ""), _made(result))),
    ]


def _narrow(of: Artefact, result: Record) -> bool:
    """Whether the paper's table and ours fit side by side."""
    return all(len(found.columns) <= 6 for found in of.tables(result))


def _table(found: TextTable) -> Part:
    return table(found.columns, found.rows, found.caption)


def _picture(found: Picture) -> Part:
    return figure(found.figure, found.caption)


def _made(result: Record) -> Sequence[Sequence[str]]:
    source = result["provenance"]
    settings = ", ".join(f"{name} {value}" for name, value in result["scope"].items())
    versions = ", ".join(f"{name} {number}" for name, number in source["versions"].items())
    known = [[name, source[name]] for name in ("command", "commit", "date", "machine")]
    return [["settings", settings], *known, ["versions", versions]]
