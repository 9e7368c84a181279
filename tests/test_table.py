"""The printed table equals the paper's table tab:comp-alg in every cell."""

import copy
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lloydformer.app.cli.app import application
from lloydformer.paper.comp_alg import paper_table

COLUMNS = ["Enc-SA", "Enc-CA", "Dec-SA", "Dec-CA", "Norm", "NLT", "Algorithm", "Appendix"]
TEX = Path(__file__).parents[2] / "shared" / "paper" / "paper.tex"
SIGNS = {r"\ed": "ℓ2", r"\ip": "⟨,⟩", r"\cmark": "✓", r"${}^\star$": "*", "$k$": "k"}

Table = list[dict[str, str]]


def table(rows: list[list[str]]) -> Table:
    return [dict(zip(COLUMNS, (cell.strip() for cell in row), strict=True)) for row in rows]


def transcribed() -> Table:
    """The paper's table as it travels in the package."""
    assert paper_table()["columns"] == COLUMNS
    return table(list(paper_table()["rows"].values()))


def parsed(tex: str) -> Table:
    """Return the tabular of tab:comp-alg, with its signs replaced by ours."""
    body = tex.split(r"\label{tab:comp-alg}")[1].split(r"\end{tabular}")[0]
    head, *lines = re.findall(r"^(.+?) *\\\\$", body, flags=re.M)
    assert [cell.strip() for cell in head.split("&")] == COLUMNS
    for sign, ours in SIGNS.items():
        lines = [line.replace(sign, ours) for line in lines]
    return table([re.sub(r"\\ref\{(.*?)\}", r"\1", line).split("&") for line in lines])


def run(*arguments: str) -> str:
    found = CliRunner().invoke(application(["recipes"]), ["recipes", *arguments])
    assert found.exit_code == 0
    return found.stdout


@pytest.fixture(scope="module")
def printed() -> Table:
    rows = list(json.loads(run("--json"))["rows"].values())[:7]
    return [{column: row[column] for column in COLUMNS} for row in rows]


def differences(ours: Table, theirs: Table) -> list[str]:
    assert len(ours) == len(theirs) == 7
    return [
        f"row {i}, {column}: {mine[column]} and not {other[column]}"
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        for column in COLUMNS
        if mine[column] != other[column]
    ]


def test_the_json_is_the_papers_table(printed):
    assert differences(printed, transcribed()) == []


def test_the_text_is_the_papers_table():
    head, *lines = run().splitlines()
    assert head.split()[1:] == COLUMNS
    rows = [re.split(r" {2,}", line.strip())[1:] for line in lines[:7]]
    assert differences(table(rows), transcribed()) == []


@pytest.mark.skipif(not TEX.exists(), reason="the paper is not at hand")
def test_the_transcription_is_the_papers_table(printed):
    theirs = parsed(TEX.read_text())
    assert differences(transcribed(), theirs) == []
    assert differences(printed, theirs) == []


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", range(7))
def test_a_changed_cell_is_detected(printed, row, column):
    mutated = copy.deepcopy(printed)
    mutated[row][column] += "?"
    assert len(differences(mutated, transcribed())) == 1
    assert len(differences(transcribed(), mutated)) == 1


@pytest.mark.skipif(not TEX.exists(), reason="the paper is not at hand")
@pytest.mark.parametrize(("old", "new"), [(r"\ed-NMA", r"\ed-SMA"), (r"\ip-LinA", r"\ip-LSMA")])
def test_a_change_of_the_paper_is_detected(printed, old, new):
    tex = TEX.read_text()
    assert len(differences(printed, parsed(tex.replace(f"{old} ", f"{new} ")))) == 1
