"""Importing does little, and modules import only from what stands before them in the order."""

import json
import subprocess
import sys

import pytest
import torch
from jaxtyping import TypeCheckError

from import_graph import (
    COMPILED,
    FRONT,
    PACKAGE,
    import_graph,
    imports,
    listed,
    place,
    read_order,
    read_sources,
    wrong_imports,
)
from lloydformer.numerics.objectives import kmeans_objective

SOURCES = read_sources()
GRAPH = import_graph(SOURCES)
ORDER = read_order()
HEAVY = {
    "IPython", "dask", "distributed", "fastapi", "flask", "http.server", "huggingface_hub",
    "importlib.metadata", "ipywidgets", "matplotlib", "numpy", "onnx", "plotly", "rich", "scipy",
    "sklearn", "torch", "tornado", "typer", "uvicorn", "webbrowser",
}  # fmt: skip


def children() -> dict[str, set[str]]:
    """The modules and packages inside each package."""
    found: dict[str, set[str]] = {}
    for name in [*SOURCES, *COMPILED]:
        package, _, child = name.rpartition(".")
        found.setdefault(package, set()).add(child)
    del found[""]
    return found


CHILDREN = children()


def test_import_lloydformer_loads_nothing_heavy_and_says_nothing():
    code = "import sys, json, lloydformer; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(found.stdout)) == set()
    assert found.stderr == ""


def test_shapes_in_annotations_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="kmeans_objective"):
        kmeans_objective(torch.zeros(5, 2), torch.zeros(3, 7))


@pytest.mark.parametrize("package", CHILDREN)
def test_the_order_lists_every_module_of_a_package(package):
    names = set(listed(ORDER, package)) - {FRONT}
    if package.startswith("lloydformer.paper."):  # all labels share one list
        assert CHILDREN[package] <= names
    else:
        assert CHILDREN[package] == names


def test_the_order_lists_nothing_else():
    assert set(ORDER) == set(CHILDREN)
    assert all(len(set(names)) == len(names) for names in ORDER.values())
    labels = [package for package in ORDER if package.startswith("lloydformer.paper.")]
    used = set().union(*(CHILDREN[label] for label in labels))
    assert used == set(ORDER[labels[0]])


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_imports_only_what_stands_before_it(module):
    assert wrong_imports(ORDER, module, GRAPH[module]) == []


def test_the_graph_is_not_empty():
    assert len(GRAPH) > 250
    assert sum(map(len, GRAPH.values())) > 900
    assert all((PACKAGE.parent / name.replace(".", "/")).exists() for name in CHILDREN)


def test_the_algorithms_share_nothing_with_the_circuits_but_the_noise():
    ours = set().union(*(names for name, names in GRAPH.items() if "algorithms" in name))
    assert {name for name in ours if "algorithms" not in name} == {"lloydformer.numerics.noise"}


def found_wrong(module: str, source: str) -> list[str]:
    return wrong_imports(ORDER, module, imports(source, SOURCES))


def test_an_import_of_a_later_room_is_noticed():
    back = "from lloydformer.circuits import recipes\nimport lloydformer.cli.app\n"
    found = found_wrong("lloydformer.circuits.heads", back)
    assert found == ["lloydformer.circuits.recipes", "lloydformer.cli.app"]
    assert found_wrong("lloydformer.cli.doctor", back) == []
    front = "from lloydformer import Circuit"
    assert found_wrong("lloydformer.numerics.noise", front) == ["lloydformer"]


@pytest.mark.parametrize(
    ("module", "later"),
    [
        ("numerics.tree", "numerics.objectives"),
        ("plans.session", "plans.means"),
        ("plans.assign", "plans.lower"),
        ("engines.chunked", "engines.native.engine"),
        ("engines.native.folds", "engines.native.engine"),
        ("solving.rules", "solving.loop"),
        ("solving.loop", "solving.batch.fit"),
        ("solving.batch.steps", "solving.batch.by_tensors"),
        ("estimators.base", "estimators.kmeans"),
        ("learning.symmetric.layer", "learning.symmetric.model"),
        ("jobs.fit.settings", "jobs.fit.job"),
        ("paper.run", "paper.trf_train.experiment"),
        ("paper.trf_train.settings", "paper.trf_train.verdicts"),
        ("cli.terminal", "cli.app"),
    ],
)
def test_an_import_of_a_later_module_of_the_same_room_is_noticed(module, later):
    module, later = f"lloydformer.{module}", f"lloydformer.{later}"
    assert found_wrong(module, f"import {later}") == [later]
    assert found_wrong(later, f"import {module}") == []


def test_a_module_that_imports_its_own_package_is_noticed():
    source = "from lloydformer.estimators import KMeans\n"
    assert found_wrong("lloydformer.estimators.base", source) == ["lloydformer.estimators"]
    own = "import lloydformer.numerics.tree"
    assert found_wrong("lloydformer.numerics.tree", own) == ["lloydformer.numerics.tree"]


def test_imports_under_type_checking_and_inside_functions_count():
    source = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from lloydformer.solving.loop import Loop\n"
        "def run():\n    from lloydformer.engines import choose\n"
    )
    assert found_wrong("lloydformer.plans.means", source) == [
        "lloydformer.solving.loop",
        "lloydformer.engines",
    ]


def test_relative_imports_are_refused():
    with pytest.raises(ValueError, match="line 1: relative import"):
        imports("from . import rules", SOURCES)


@pytest.mark.parametrize("module", ["helpers", "circuits.other", "recipes_old", "paper.other"])
def test_a_module_without_a_place_is_noticed(module):
    message = f"lloydformer.{module} has no place in the order"
    with pytest.raises(LookupError, match=message):
        found_wrong(f"lloydformer.{module}", "")
    with pytest.raises(LookupError, match=message):
        found_wrong("lloydformer.numerics.noise", f"import lloydformer.{module}")


def test_a_package_stands_after_its_modules():
    assert place(ORDER, "lloydformer.plans.lower") < place(ORDER, "lloydformer.plans")
    assert place(ORDER, "lloydformer.plans") < place(ORDER, "lloydformer.engines.contract")
    assert place(ORDER, "lloydformer.learning") < place(ORDER, "lloydformer")
    assert place(ORDER, "lloydformer") < place(ORDER, "lloydformer.plots.axes")
