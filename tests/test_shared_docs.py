"""Docstring texts that several estimators share are copies of one file."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "shared_docs.py"
_spec = importlib.util.spec_from_file_location("shared_docs", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
shared_docs = sys.modules["shared_docs"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shared_docs)

TEXTS = shared_docs.read_texts()
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in shared_docs.SOURCES}
ENTRIES = [entry for source in SOURCES.values() for entry in shared_docs.entries(source)]


def test_the_command_finds_every_copy_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("kmeans", "If not 0, print one line for each iteration"),
        ("trimmed", "default=1e-4"),
        ("medoids", "Number of features seen"),
        ("base", "Ignored; present for"),
        ("streaming", "None: every row has weight 1."),
    ],
)
def test_a_copy_that_was_changed_is_found_and_repaired(file, text):
    changed = SOURCES[file].replace(text, "another text", 1)
    assert changed != SOURCES[file]
    assert shared_docs.update(changed, TEXTS) == SOURCES[file]


def test_the_command_reports_and_repairs_a_changed_text(tmp_path, monkeypatch, capsys):
    copy = tmp_path / "trimmed.py"
    copy.write_text(SOURCES["trimmed"].replace("Number of starts.", "Number of runs."))
    monkeypatch.setattr(shared_docs, "SOURCES", [copy])
    monkeypatch.setattr(shared_docs, "ROOT", tmp_path)

    def run(option: str) -> int:
        monkeypatch.setattr(sys, "argv", ["shared_docs.py", option])
        return shared_docs.main()

    assert run("--check") == 1
    assert capsys.readouterr().out == "trimmed.py: differs\n"
    assert run("--write") == 0
    assert run("--check") == 0
    assert copy.read_text() == SOURCES["trimmed"]


def test_nothing_but_shared_entries_is_changed():
    source = SOURCES["trimmed"]
    for text in ("Fraction of the weight", "-1 for outliers", "self.keep = keep", "See Also"):
        changed = source.replace(text, "other", 1)
        assert shared_docs.update(changed, TEXTS) == changed


def test_every_text_is_shared():
    for table, texts in TEXTS.items():
        for name, shared in texts.items():
            owners = {e.owner for e in ENTRIES if (e.table, e.name) == (table, name)}
            own = set(shared.get("own", ()))
            assert own <= owners, f"{table}.{name}: own names {own - owners}, which lack it"
            assert len(owners - own) >= 2, f"{table}.{name} is not shared"


def test_the_shared_names_of_all_estimators_are_found():
    names = {(e.owner, e.name) for e in ENTRIES}
    assert len(names) > 150
    assert {("KMeans", "n_clusters"), ("LearnedKMeans", "labels_"), ("Clusterer.fit", "X")} <= names
