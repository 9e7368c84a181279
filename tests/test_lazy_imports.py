"""Public names are imported when they are used, and a process loads what it needs."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lloydformer as lf
from lloydformer.app.jobs.bench import QUESTION_NAMES
from lloydformer.app.jobs.bench.questions import QUESTIONS
from lloydformer.estimators.registry import ALGORITHMS, BUILT_IN
from lloydformer.lazy_imports import lazy_names
from lloydformer.learning.families import FAMILIES
from lloydformer.learning.tasks import QUANTILES

LAZY = [
    "lloydformer",
    "lloydformer.data",
    "lloydformer.estimators",
    "lloydformer.export",
    "lloydformer.interp",
    "lloydformer.learning",
    "lloydformer.plots",
]
ROOT = Path(__file__).parent.parent


def names_for_type_checkers(package) -> dict[str, str]:
    """What the package imports under `TYPE_CHECKING`: names, and the modules they come from."""
    tree = ast.parse(inspect.getsource(package))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    found = [(alias, node.module) for node in block.body for alias in node.names]
    assert all(alias.asname == alias.name for alias, _ in found)  # re-exported, also for mypy
    return {alias.name: module for alias, module in found}


@pytest.mark.parametrize("name", LAZY)
def test_type_checkers_see_the_names_that_are_there(name):
    package = importlib.import_module(name)
    listed = names_for_type_checkers(package)
    assert listed.keys() == {*package.__all__} - {"__version__"}
    assert {n: m for n, m in listed.items() if m != name} == package._HOMES


@pytest.mark.parametrize("name", LAZY)
def test_a_name_is_the_object_of_its_module_and_is_listed(name):
    package = importlib.import_module(name)
    for exported, module in package._HOMES.items():
        assert getattr(package, exported) is getattr(importlib.import_module(module), exported)
    assert {*package.__all__} <= {*dir(package)}


def test_modules_are_found_by_name():
    assert lf.circuits.norms is importlib.import_module("lloydformer.circuits.norms")
    with pytest.raises(AttributeError, match="'lloydformer' has no attribute 'Kmeans'"):
        lf.Kmeans  # noqa: B018
    assert not hasattr(lf, "__wrapped__")


def test_a_module_that_needs_a_missing_package_says_so(tmp_path, monkeypatch):
    (tmp_path / "lazily").mkdir()
    (tmp_path / "lazily" / "__init__.py").touch()
    (tmp_path / "lazily" / "inner.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("lazily")
    get, _ = lazy_names("lazily")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        get("inner")


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == lf.__version__


def test_the_register_has_every_estimator_with_a_recipe_of_its_own():
    kinds = [getattr(lf.estimators, name) for name in lf.estimators.__all__]
    found = {k for k in kinds if isinstance(k, type) and issubclass(k, lf.estimators.Clusterer)}
    known = {ALGORITHMS[name].estimator for name in BUILT_IN}
    assert known == found - {lf.estimators.Clusterer, lf.CircuitClusterer, lf.KPrototypes}
    assert [known.name for known in ALGORITHMS.values()][: len(BUILT_IN)] == [*BUILT_IN]


LOADED = """
import json, sys
from lloydformer.estimators import ALGORITHMS, Clusterer
kinds = [type(Clusterer.from_pretrained(folder)).__name__ for folder in sys.argv[1:]]
print(json.dumps({"kinds": kinds, "algorithms": [known.name for known in ALGORITHMS.values()]}))
"""


def fresh(code: str, *arguments: object) -> object:
    """What a new process prints as JSON."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    return json.loads(found.stdout)


@pytest.mark.long
def test_models_are_loaded_and_algorithms_found_whatever_was_imported_before(tmp_path):
    models = {"TrimmedKMeans": lf.TrimmedKMeans(3), "LearnedKMeans": lf.LearnedKMeans(3)}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
    found = fresh(LOADED, *(tmp_path / name for name in models))
    assert found == {"kinds": [*models], "algorithms": [*BUILT_IN]}


HELP = """
import json, sys
from lloydformer.app.cli import app
def answer(*words):
    sys.argv = ["lloydformer", *words]
    try:
        app.main()
    except SystemExit as end:
        return end.code
status = [answer("--help"), answer("--version")]
status += [answer(name, "--help") for name in app.COMMANDS]
wrong = [answer(*words.split()) for words in sys.argv[1:]]
heavy = [name for name in ("torch", "sklearn", "scipy", "numpy", "pandas") if name in sys.modules]
print(json.dumps({"status": status, "wrong": wrong, "heavy": heavy}))
"""
WRONG = [
    "nothing",
    "fit --nothing",
    "fit nothing.csv -k 3",
    "fit nothing -k 3",
    "fit . --algorithm x",
    "fit . -k x",
    "fit . -k 3 --start-from nothing",
    "predict nothing .",
    "bench --question x",
    "reproduce x",
    "train --like symmetric --seed 3",
    "demo -o .",
    "recipes --max x",
]
"""Words that end a command with status 2 before it begins."""


def test_help_and_errors_in_arguments_import_nothing_heavy():
    code = HELP.replace("sys.argv[1:]", repr(WRONG))
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    *shown, last = found.stdout.splitlines()
    answers = json.loads(last)
    assert answers["heavy"] == []
    assert {*answers["status"]} <= {0, None}
    assert answers["wrong"] == [2] * len(WRONG)
    assert len(found.stderr.splitlines()) == len(WRONG)
    assert lf.__version__ in shown


FIRST_FIT = """
import json, sys
import numpy as np
import lloydformer
early = [name for name in ("torch", "sklearn", "scipy") if name in sys.modules]
lloydformer.KMeans(8).fit(np.random.default_rng(0).normal(size=(500, 10)))
print(json.dumps({"early": early, "loaded": sorted(sys.modules)}))
"""
NOT_FOR_A_FIT = (
    "lloydformer.circuits.circuit",
    "lloydformer.circuits.layer",
    "lloydformer.app.cli",
    "lloydformer.data.sources",
    "lloydformer.data.sources",
    "lloydformer.estimators.trimmed",
    "lloydformer.app.jobs",
    "lloydformer.learning",
    "lloydformer.paper",
    "lloydformer.plots",
    "lloydformer.plots.report",
    "lloydformer.paper.verify",
    "matplotlib",
    "safetensors",
    "sklearn.cluster",
    "sklearn.metrics",
    "sympy",
    "torch._dynamo",
    "torch._inductor",
    "triton",
    "typer",
)


def test_the_first_fit_imports_what_it_needs():
    found = fresh(FIRST_FIT)
    assert found["early"] == []
    assert {*NOT_FOR_A_FIT} & {*found["loaded"]} == set()
    assert {"torch", "lloydformer.plans.means"} <= {*found["loaded"]}


COMMANDS = """
import json, sys
from lloydformer.app.cli import app
def run(*words):
    sys.argv = ["lloydformer", *words]
    try:
        app.main()
    except SystemExit as end:
        assert not end.code, words
run("fit", "points.csv", "-k", "2", "-o", "out", "--force", "--json")
run("predict", "out", "points.csv", "-o", "labels.csv", "--force", "--json")
print(json.dumps(sorted(sys.modules)))
"""
NOT_FOR_COMMANDS = (
    *("jinja2", "matplotlib", "sklearn.cluster", "sympy", "torch._dynamo", "torch._inductor"),
    *("triton", "lloydformer.circuits.circuit", "lloydformer.circuits.layer"),
    *("lloydformer.estimators.medoids", "lloydformer.learning", "lloydformer.paper"),
    *("lloydformer.plots.diagrams", "lloydformer.plots.report"),
)


def test_fit_and_predict_import_what_they_need(tmp_path):
    (tmp_path / "points.csv").write_text("a,b\n0,0\n1,0\n9,9\n9,8\n", encoding="utf-8")
    command = [sys.executable, "-c", COMMANDS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert {*NOT_FOR_COMMANDS} & {*loaded} == set()


COLLECTED = """
import gc, json
counts = {}
def count(phase, about):
    counts[about["generation"]] = counts.get(about["generation"], 0) + (phase == "stop")
gc.callbacks.append(count)
import lloydformer
lloydformer.KMeans
whole, young, frozen = counts.get(2, 0), len(gc.get_objects(generation=0)), gc.get_freeze_count()
print(json.dumps([gc.isenabled(), whole, young < 100_000, frozen]))
"""


def test_the_collector_rests_while_a_name_is_imported():
    """It would visit the objects of torch and scikit-learn several times, a fifth of the import."""
    assert fresh(COLLECTED) == [True, 0, True, 0]
    assert fresh(f"import gc; gc.disable(){COLLECTED}") == [False, 0, False, 0]
    frozen = fresh(f"import gc; gc.freeze(){COLLECTED}")
    assert frozen[0] is True
    assert frozen[3] > 0  # what the program has frozen stays so


def test_names_for_the_help_are_those_of_the_things_themselves():
    assert tuple(QUESTIONS) == QUESTION_NAMES
    assert tuple(QUANTILES) == FAMILIES
