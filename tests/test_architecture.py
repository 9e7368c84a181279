"""docs/architecture.md: the picture is up to date, and every path on the page exists."""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import architecture
from import_graph import PACKAGE, ROOT, import_graph, read_sources, reduced, room_graph

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FOLDERS = ("tests/", "docs/", "tools/", "benchmarks/", "examples/", "src/")
QUOTED = re.compile(r"`([\w./<>-]+/[\w./<>-]*?|\w+\.py(?=::))(?:::(\w+))?`")
SOURCES = read_sources()


def mentioned(page: str) -> list[tuple[str, str]]:
    """Paths in backticks, each with the name after `::` or an empty one."""
    return [match for match in QUOTED.findall(page) if match[0] != "paper/<label>/"]


def located(path: str) -> Path:
    return (ROOT if path.startswith(FOLDERS) else PACKAGE) / path


def defined(source: str) -> set[str]:
    """Names that a module defines or assigns."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        names |= {getattr(t, "id", getattr(t, "name", "")) for t in targets}
    return names


@pytest.mark.parametrize(("path", "name"), sorted(set(mentioned(PAGE))))
def test_every_path_on_the_page_exists(path, name):
    place = located(path)
    assert place.is_dir() if path.endswith("/") else place.is_file()
    if name:
        assert name in defined(place.read_text(encoding="utf-8"))


def test_the_page_mentions_files_of_every_room():
    found = mentioned(PAGE)
    assert len(found) > 60
    assert sum(bool(name) for _, name in found) > 15
    rooms = set(room_graph(import_graph(SOURCES))) - {"__main__", "lloydformer"}
    assert {path.split("/")[0].removesuffix(".py") for path, _ in found} >= rooms


def test_links_of_the_page_exist():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) >= 3
    assert all((ROOT / "docs" / link).exists() for link in links)


def test_a_path_that_is_gone_would_be_noticed():
    page = "see `solving/empty.py`, `solving/rules.py::refill` and `tests/solving/`"
    (gone, _), (rules, name), (folder, _) = mentioned(page)
    assert not located(gone).exists()
    assert name not in defined(located(rules).read_text(encoding="utf-8"))
    assert located(folder).is_dir()


def test_the_picture_is_up_to_date():
    script = ROOT / "tools" / "architecture.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("lloydformer.plots.axes", "from lloydformer.storage.atomic import write"),
        ("lloydformer.algorithms.lloyd", "from lloydformer.storage.atomic import write"),
        ("lloydformer.storage.atomic", "import lloydformer.numerics.checks"),
    ],
)
def test_an_added_import_between_rooms_changes_the_picture(module, line):
    changed = SOURCES | {module: f"{SOURCES[module]}\n{line}\n"}
    before, after = (room_graph(import_graph(sources)) for sources in (SOURCES, changed))
    assert before != after
    implied = reduced(before) == reduced(after)
    assert (architecture.drawn(before) == architecture.drawn(after)) == implied
    assert implied == (module == "lloydformer.plots.axes")  # plots reach storage by learning


@pytest.mark.long
def test_an_old_picture_is_reported_and_drawn_again(tmp_path, monkeypatch, capsys):
    copy = tmp_path / "architecture.svg"
    copy.write_text(architecture.current().replace("cli imports paper", "cli imports jobs"))
    monkeypatch.setattr(architecture, "PICTURE", copy)

    def run(option: str) -> int:
        monkeypatch.setattr(sys, "argv", ["architecture.py", option])
        return architecture.main()

    assert run("--check") == 1
    assert "out of date" in capsys.readouterr().err
    assert run("--write") == 0
    assert run("--check") == 0


def test_a_room_without_a_place_is_reported():
    rooms = room_graph(import_graph(SOURCES)) | {"cellar": {"circuits"}}
    with pytest.raises(LookupError, match="cellar: in ROOMS or in the package, not in both"):
        architecture.drawn(rooms)


def test_a_step_whose_file_is_gone_is_reported(monkeypatch):
    step = architecture.Step("fast", "over", architecture.Box(0, 0, 10), "engines/over.py")
    monkeypatch.setitem(architecture.STEPS, "over", step)
    with pytest.raises(LookupError, match=r"engines/over\.py"):
        architecture.current()


def test_the_picture_shows_all_rooms_and_both_walks():
    root = ElementTree.fromstring(architecture.PICTURE.read_text(encoding="utf-8"))
    texts = {node.text for node in root.iter() if node.text}
    assert set(architecture.ROOMS) <= texts
    assert {"tokens", "heads", "layer", "circuit", "Trace"} <= texts
    assert {"blocks", "open", "session", "recipe", "plan", "solve"} <= texts
    kinds = [node.get("class") for node in root.iter() if node.get("marker-end")]
    assert kinds.count("literal") == 5 + 1  # one in the legend
    assert kinds.count("fast") == 8 + 1
    rooms = reduced(room_graph(import_graph(SOURCES)))
    assert kinds.count("imports") == sum(map(len, rooms.values())) + 1


def test_the_transitive_reduction():
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set(), "d": set()}
    assert reduced(graph) == {"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()}
