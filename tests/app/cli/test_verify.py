"""`lloydformer verify`: one screen by default, words for someone new, one thread."""

import json

import pytest
import torch

from lloydformer.app.cli import terminal
from lloydformer.app.cli import verify as page
from lloydformer.app.jobs import verify as job
from lloydformer.paper.verify.finding import Finding, PrintedAndRepaired, judge_erratum


def findings():
    """One for each statement, without measuring it."""
    found = [
        Finding(f"thm:{i}", "the circuit is the algorithm " * 4, 60, 1e-13, 0, holds=True)
        for i in range(job.N_STATEMENTS - len(job.ERRATA))
    ]
    wrong = PrintedAndRepaired([0.5] * 58 + [0.0] * 2, [0.0])
    return found + [
        judge_erratum(i, "error", "a sign is wrong " * 6, wrong) for i in range(len(job.ERRATA))
    ]


@pytest.fixture
def screen(monkeypatch):
    """Terminals of 80 columns, of which standard output is kept."""
    small = terminal.Terminal(width=80, force_terminal=True, highlight=False, record=True)
    for module in (terminal, page):
        monkeypatch.setattr(module, "stdout", small)
    return small


def test_the_default_fits_a_screen(command, monkeypatch, screen):
    monkeypatch.setattr(job, "measure_statements", lambda seed, after: findings())
    assert command("verify")[0] == 0
    lines = screen.export_text().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    words = " ".join(" ".join(lines).split())
    assert "the paper's text fails 58 of 60, by up to 0.5 of the spread; our repair holds" in words
    assert f"{job.N_STATEMENTS} of {job.N_STATEMENTS} hold" in words


def test_details_name_every_statement(command, monkeypatch, screen):
    monkeypatch.setattr(job, "measure_statements", lambda seed, after: findings())
    command("verify", "--details")
    found = screen.export_text()
    assert all(finding.label in found for finding in findings())


def test_what_does_not_hold_is_named(command, monkeypatch, screen):
    bad = Finding("thm:bad", "soft() is soft k-means", 60, 0.3, 7, holds=False)
    monkeypatch.setattr(job, "measure_statements", lambda seed, after: [bad, *findings()[1:]])
    assert command("verify")[0] == 1
    words = " ".join(screen.export_text().split())
    assert "BAD thm:bad: soft() is soft k-means" in words
    assert "60 problems, centers differ by at most 3.0e-01, 7 labels differ" in words


def test_groups_hold_every_statement_once():
    groups = job.group_findings(findings())
    assert sum(map(len, groups.values())) == job.N_STATEMENTS
    assert tuple(s for group in job.GROUPS.values() for s in group) == job.statements.STATEMENTS


def test_it_runs_on_one_thread(monkeypatch):
    def statement(rng):
        return Finding("thm:x", "", torch.get_num_threads(), 0.0, 0, holds=True)

    monkeypatch.setattr(job.statements, "STATEMENTS", (statement,))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert job.measure_statements(0)[0].problems == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_json_has_every_statement(command, monkeypatch):
    monkeypatch.setattr(job, "measure_statements", lambda seed, after: findings())
    status, out, _ = command("verify", "--json")
    assert status == 0
    assert len(json.loads(out)["rows"]) == job.N_STATEMENTS
