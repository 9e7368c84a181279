"""`lloydformer reproduce` from end to end, with two quick labels."""

import json
from dataclasses import replace

import pytest

from lloydformer.app.cli import reproduce
from lloydformer.paper import pages
from lloydformer.paper.artefact import LABELS, Artefact, Picture, TextTable
from lloydformer.paper.verdict import Kind, Tolerance, Verdict, judge, number


def drawn(name: str) -> Picture:
    from matplotlib.figure import Figure

    figure = Figure((2, 2))
    figure.subplots().plot([1, 2])
    return Picture(name, figure, "A line.")


QUICK = Artefact(
    "one", ("tab:one",), "One", "A number.",
    pieces=lambda scope: {"only": lambda: {"value": 5.0 + scope.seed}},
    combine=lambda found: {"rows": {"a": [found["only"]["value"]]}},
    verdicts=lambda result: [
        Verdict(
            Kind.CLAIM,
            "it is",
            judge(result["rows"]["a"][0] == 5.0),
            "It is five.",
            "sec:one",
            note="A note.",
        ),
        number("a", "tab:one", 5.0, result["rows"]["a"][0], Tolerance(0.1, "A reason.")),
        Verdict(Kind.BEYOND, "no", None, about="And six?"),
    ],
    tables=lambda result: [TextTable("Numbers", ["name", "value"], [["a", "5"]])],
    pictures=lambda result: [drawn("one")],
)  # fmt: skip


def missing():
    raise ValueError("wine: no such set; set LLOYDFORMER_DATA")


LOST = replace(QUICK, label="two", pieces=lambda scope: {"only": missing})


@pytest.fixture
def labels(monkeypatch):
    known = {"one": QUICK, "two": LOST}
    for module in (reproduce, pages):
        monkeypatch.setattr(module, "load_artefact", known.__getitem__)
    monkeypatch.setattr(reproduce, "LABELS", tuple(known))


@pytest.mark.usefixtures("labels")
def test_a_label_writes_its_files_and_prints_its_verdict(command, tmp_path):
    folder = tmp_path / "out"
    status, out, _ = command("reproduce", "one", "-o", str(folder), "--page")
    assert status == 0
    lines = [line.strip() for line in out.splitlines()]
    assert (
        "One (tab:one): 1 of 1 claims hold; 1 of 1 numbers within 0.1; beyond the paper: 1 finding"
        in lines
    )
    first = lines.index("“It is five.” (sec:one)")
    assert lines[first + 1 : first + 4] == ["here: it is", "answer: holds", "note: A note."]
    assert "tab:one: a 5 (5)" in lines
    assert lines[lines.index("And six?") + 1] == "here: no"
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == [
        "one.json", "one.md", "one.png", "paper.html",
    ]  # fmt: skip
    assert "It is five." in (folder / "paper.html").read_text()


@pytest.mark.usefixtures("labels")
def test_json_is_one_object_with_rows_as_in_the_paper(command, tmp_path):
    status, out, _ = command("reproduce", "one", "--json", "-o", str(tmp_path), "--seed", "2")
    assert status == 0
    assert json.loads(out)["rows"] == {"a": [7.0]}
    answers = [verdict["answer"] for verdict in json.loads(out)["verdicts"]]
    assert answers == ["does not hold", "does not hold", None]
    assert json.loads(out)["summary"].startswith("0 of 1 claims hold (1 does not hold);")


@pytest.mark.usefixtures("labels")
def test_a_claim_that_does_not_hold_is_a_result_and_no_error(command, tmp_path):
    status, out, error = command("reproduce", "one", "-o", str(tmp_path), "--seed", "2")
    assert status == 0
    assert "answer: does not hold" in out
    assert error.strip() == f"written: {tmp_path}"


@pytest.mark.usefixtures("labels")
def test_missing_data_stop_their_label_only(command, tmp_path):
    status, out, error = command("reproduce", "all", "--json", "-o", str(tmp_path), "--page")
    assert status == 2
    assert list(json.loads(out)["labels"]) == ["one"]
    assert "lloydformer: two: wine: no such set; set LLOYDFORMER_DATA" in error
    assert (tmp_path / "paper.html").exists()


@pytest.mark.usefixtures("labels")
def test_several_labels_end_with_all_of_them_together(command, tmp_path, monkeypatch):
    known = {"one": QUICK, "three": replace(QUICK, label="three")}
    monkeypatch.setattr(reproduce, "load_artefact", known.__getitem__)
    monkeypatch.setattr(reproduce, "LABELS", tuple(known))
    status, out, _ = command("reproduce", "all", "-o", str(tmp_path))
    assert status == 0
    assert out.splitlines()[-1] == (
        "all: 2 of 2 claims hold; 2 of 2 numbers within 0.1; beyond the paper: 2 findings"
    )


@pytest.mark.usefixtures("labels")
def test_results_of_other_settings_are_not_replaced(command, tmp_path):
    assert command("reproduce", "one", "-o", str(tmp_path))[0] == 0
    before = (tmp_path / "one.json").read_text()
    status, _, error = command("reproduce", "one", "-o", str(tmp_path), "--seed", "1")
    assert status == 2
    assert "--force" in error
    assert (tmp_path / "one.json").read_text() == before
    assert command("reproduce", "one", "-o", str(tmp_path), "--seed", "1", "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tab:mix",), "label: found 'tab:mix'; pass one of numerical-validation"),
        (("mix-res", "--device", "abacus"), "device: found 'abacus'"),
        (("mix-res", "--trials", "0"), "--trials"),
        (("mix-res", "-o", "/proc/x"), "cannot be written to"),
    ],
    ids=["label", "device", "trials", "output"],
)
def test_bad_input_is_one_line_and_status_2(command, arguments, words):
    status, out, error = command("reproduce", *arguments)
    assert (status, out) == (2, "")
    assert words in error
    assert len(error.splitlines()) == 1


@pytest.mark.usefixtures("labels")
def test_the_authors_protocol_writes_files_of_its_own(command, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "AUTHORS", ("one",))
    known = {"one": QUICK, "one-authors": replace(QUICK, title="One, by the authors")}
    for module in (reproduce, pages):
        monkeypatch.setattr(module, "load_artefact", known.__getitem__)
    assert command("reproduce", "one", "-o", str(tmp_path))[0] == 0
    before = (tmp_path / "one.json").read_text()
    status, out, _ = command("reproduce", "one", "--authors", "-o", str(tmp_path), "--page")
    assert (status, "One, by the authors (tab:one)" in out) == (0, True)
    assert (tmp_path / "one.json").read_text() == before
    for name in ("one-authors.json", "one-authors.md", "one-authors.png"):
        assert (tmp_path / name).exists()
    assert json.loads((tmp_path / "one-authors.json").read_text())["scope"]["authors"] is True
    assert "authors" not in json.loads(before)["scope"]
    status, _, error = command("reproduce", "two", "--authors", "-o", str(tmp_path))
    assert status == 2
    assert "--authors: found the label 'two', which has no protocol of the authors'" in error


def test_help_names_every_label(command):
    status, out, _ = command("reproduce", "--help")
    assert status == 0
    text = "".join(out.split())
    assert all(label in text for label in LABELS)
