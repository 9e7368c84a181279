"""Records of measurements: where they come from, and that the pages say which are stale."""

import json
import re
import runpy
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "records.py"), run_name="records")
REGISTER = SCRIPT["read_register"]()
Register, find_reasons = SCRIPT["Register"], SCRIPT["find_reasons"]

SHALLOW = subprocess.run(
    ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"],
    capture_output=True,
    text=True,
    check=False,
).stdout.strip()
needs_history = pytest.mark.skipif(SHALLOW != "false", reason="the history is not here")
HEAD = subprocess.run(
    ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
).stdout.strip()


def test_every_record_is_registered_and_every_page_is_there():
    there = {str(p.relative_to(RESULTS).with_suffix("")) for p in RESULTS.rglob("*.json")}
    assert there <= REGISTER.keys()
    assert {page for r in REGISTER.values() for page in r.pages if not (ROOT / page).exists()} == (
        set()
    )


def test_every_command_is_in_the_repository():
    for record in REGISTER.values():
        assert record.commands
        for command in record.commands:
            program, first, *rest = command.split()
            assert program in ("python", "lloydformer")
            if program == "python":
                assert (ROOT / first).exists(), command
            elif first == "bench":
                from lloydformer.app.jobs.bench.questions import QUESTIONS

                assert rest[rest.index("--question") + 1] in QUESTIONS
            elif first == "interp":
                assert rest[:2] == ["--force", "-o"]
            else:
                from lloydformer.paper.artefact import LABELS

                assert (first, rest[0] in LABELS) == ("reproduce", True)


@needs_history
@pytest.mark.parametrize("name", [n for n, r in REGISTER.items() if r.path.exists()])
def test_a_record_can_be_made_again_or_its_staleness_is_known(name):
    record = REGISTER[name]
    reasons = find_reasons(record)
    if record.gpu:  # no GPU may be at hand: such a record says its commit and machine
        for part in SCRIPT["read_parts"](record.path).values():
            assert part["commit"]
            assert part["machine"]
        return
    assert not reasons or record.stale, f"{reasons}: run python benchmarks/records.py --run {name}"


@needs_history
@pytest.mark.parametrize(
    "name", sorted({"docs/records.md", *(p for r in REGISTER.values() for p in r.pages)})
)
def test_pages_say_which_of_their_records_are_stale(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    # README has no room for a note: it names the page with the states
    mark = "docs/records.md" if name == "README.md" else "<!-- stale records -->"
    assert mark in page or name == "docs/records.md"
    again = SCRIPT["fill_notes"](page, name, REGISTER)
    assert again == page, "run: python benchmarks/records.py --page"


def record_with(tmp_path, **made):
    """A record whose numbers come from HEAD, by its command; `made` changes that."""
    whole = {"command": "python benchmarks/precision.py /a/b", "commit": HEAD, "changed": False}
    path = tmp_path / "sample.json"
    path.write_text(json.dumps({"provenance": {"part": {**whole, **made}}}))
    record = Register("sample", ("python benchmarks/precision.py {data}",), (), 1)
    return replace(record, name=str(path.with_suffix("")))  # an absolute name stays as it is


@needs_history
@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({}, None),
        ({"command": "python precision.py --output x.json"}, None),
        ({"changed": True}, "part: made with uncommitted changes"),
        ({"commit": "0" * 40}, "part: its commit is not in the history"),
        ({"commit": ""}, "part: its commit is not in the history"),
        ({"command": "python /tmp/x.py"}, "part: made by `python /tmp/x.py`"),
        (
            {"command": "python benchmarks/precision.py /a --seeds 1"},
            "part: made by `python benchmarks/precision.py /a --seeds 1`",
        ),
    ],
)
def test_a_record_is_stale_if_nobody_can_make_it_again(tmp_path, made, reason):
    assert find_reasons(record_with(tmp_path, **made)) == ([reason] if reason else [])


def test_a_record_that_does_not_say_where_it_comes_from_is_stale(tmp_path):
    record = record_with(tmp_path)
    record.path.write_text('{"rows": [1]}')
    assert find_reasons(record) == ["it does not say where it comes from"]
    record.path.unlink()
    assert find_reasons(record) == ["there is none"]


def test_a_run_that_is_stopped_continues_with_what_it_has(tmp_path, monkeypatch):
    """The stale record is set aside once; the scripts then find their own unfinished one."""
    record = record_with(tmp_path)
    record = replace(record, commands=("python one", "python two"))
    make, names = SCRIPT["make_record"], SCRIPT["make_record"].__globals__
    monkeypatch.setitem(names, "BEGUN", tmp_path / "begun")
    (tmp_path / "begun").mkdir()
    record.path.write_text("stale")
    seen = []

    def run(words, **options):
        seen.append((words[1], record.path.exists() and record.path.read_text()))
        if len(seen) == 2:
            raise KeyboardInterrupt
        record.path.write_text(f"after {words[1]}")

    monkeypatch.setattr(names["subprocess"], "run", run)
    with pytest.raises(KeyboardInterrupt):
        make(record)
    make(record)
    assert seen == [
        ("one", False),
        ("two", "after one"),
        ("one", "after one"),
        ("two", "after one"),
    ]
    assert record.path.read_text() == "after two"
    assert list((tmp_path / "begun").rglob("*.json")) == []


def test_what_a_machine_lacks_is_named(monkeypatch):
    monkeypatch.delenv("LLOYDFORMER_DATA", raising=False)
    missing = SCRIPT["what_is_missing"]
    assert missing(REGISTER["precision"]) == "LLOYDFORMER_DATA, the folder of data sets"
    assert missing(REGISTER["bench_small"]) == ""
    assert missing(replace(REGISTER["bench_small"], packages=("no_such",))) == "the package no_such"


def test_the_note_names_the_stale_records_of_a_page(tmp_path):
    stale = replace(record_with(tmp_path, changed=True), pages=("docs/a.md",))
    fresh = replace(stale, gpu=True)
    page = "a\n<!-- stale records -->\nold\n<!-- end -->\n"
    found = SCRIPT["fill_notes"](page, "docs/a.md", {"sample": stale, "other": fresh})
    assert re.search(r"\*\*Stale records\*\*: `sample`\. ", found)
    assert SCRIPT["fill_notes"](found, "docs/b.md", {"sample": stale}) == page.replace("old\n", "")
