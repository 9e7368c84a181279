"""Folders of labels look alike, import shared modules only, and are all found."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lloydformer.paper
from lloydformer.paper.labels import LABELS, artefact

ROOT = Path(lloydformer.paper.__file__).parent
PREFIX = "lloydformer.paper."
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
REQUIRED = {"__init__", "experiment", "verdicts", "tables"}


def module_name(path: Path) -> str:
    """Dotted name below `lloydformer.paper`; a package is named by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


SOURCES = {module_name(path): path for path in ROOT.rglob("*.py") if path.parent != ROOT}
SOURCES |= {path.stem: path for path in ROOT.glob("*.py") if path.stem != "__init__"}


def imports(source: str) -> set[str]:
    """The modules of this room that a source imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(PREFIX):
            package = f"{node.module}.".removeprefix(PREFIX)
            names = [f"{package}{alias.name}" for alias in node.names]
            found |= {name if name in SOURCES else package[:-1] for name in names}
    return found


IMPORTS = {name: imports(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}


def test_every_folder_is_a_label_in_the_order_of_the_paper():
    assert sorted(label.replace("-", "_") for label in LABELS) == FOLDERS
    assert [artefact(label).label for label in LABELS] == list(LABELS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_has_the_same_files_as_the_others(folder):
    files = {path.stem for path in (ROOT / folder).glob("*.py")}
    found = artefact(folder.replace("_", "-"))
    draws = any(cite.startswith("fig:") for cite in found.cites)
    assert files >= REQUIRED
    assert ("pictures" in files) == draws


@pytest.mark.parametrize("module", SOURCES)
def test_folders_import_shared_modules_and_never_each_other(module):
    own = module.split(".")[0]
    others = {name for name in IMPORTS[module] if name.split(".")[0] in FOLDERS}
    assert {name for name in others if name.split(".")[0] != own} == set()


def test_no_module_imports_itself_through_others():
    list(TopologicalSorter(IMPORTS).static_order())


def test_imports_are_seen():
    assert "artefact" in IMPORTS["mix_res.verdicts"]
    assert imports("from lloydformer.paper.mix_res import verdicts, ARTEFACT") == {
        "mix_res.verdicts", "mix_res",
    }  # fmt: skip
    assert imports("from lloydformer.paper.mix_res.verdicts import verdicts") == {
        "mix_res.verdicts"
    }
