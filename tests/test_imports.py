"""Importing does little, and modules import only from what stands before them in the walk."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import lloydformer
from lloydformer.numerics.objectives import kmeans_objective

ROOT = Path(lloydformer.__file__).parent
WALK = [
    "numerics", "storage",
    "circuits.subspaces", "circuits.projections", "circuits.tokens", "circuits.scores",
    "circuits.activations", "circuits.norms", "circuits.feedforward", "circuits.products",
    "circuits.heads", "circuits.modulation", "circuits.notation", "circuits.recipe",
    "circuits.symmetric", "circuits.stages",
    "circuits.relocating", "circuits.recipes", "circuits.serialise",
    "circuits.layer", "circuits.staged_layer", "circuits.schedule", "circuits.layer_noise",
    "circuits.trace", "circuits.circuit",
    "data", "plans", "solving.seeding", "solving.refill", "solving.best_seen", "engines",
    "solving.loop", "solving.progress",
    "estimators", "solving.batch", "learning",
    "lloydformer",
    "algorithms", "verify", "plots", "report", "jobs", "paper", "cli",
    "__main__",
]  # fmt: skip
"""Modules and packages in order; `lloydformer` is the package's own front."""
HEAVY = {
    "IPython", "dask", "distributed", "fastapi", "flask", "http.server", "huggingface_hub",
    "ipywidgets", "matplotlib", "onnx", "plotly", "rich",
    "tornado", "typer", "uvicorn", "webbrowser",
}  # fmt: skip


def test_import_lloydformer_loads_nothing_heavy_and_says_nothing():
    code = "import sys, json, lloydformer; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(found.stdout)) == set()
    assert found.stderr == ""


def test_shapes_in_annotations_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="kmeans_objective"):
        kmeans_objective(torch.zeros(5, 2), torch.zeros(3, 7))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(module: str) -> int:
    """Where it stands in the walk; `circuits`, which only holds modules, stands before it."""
    inner = module.removeprefix("lloydformer.")
    if inner in ("circuits", "solving"):
        return -1
    for number, step in enumerate(WALK):
        if f"{inner}.".startswith(f"{step}."):
            return number
    raise LookupError(f"{module} has no place in the walk: add it to WALK")


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported(source: str) -> list[str]:
    """The modules of ours that a source imports; of `from package import module`, the module."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if is_module(name) else str(node.module) for name in inner]
    return [name for name in names if name.split(".")[0] == "lloydformer"]


def steps_back(module: str, source: str) -> list[str]:
    """What a module imports although it comes later in the walk."""
    here = place(module)
    return [name for name in imported(source) if place(name) > here]


SOURCES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_imports_only_what_stands_before_it(module):
    assert steps_back(module, SOURCES[module].read_text(encoding="utf-8")) == []


def test_every_step_of_the_walk_is_there():
    assert {place(name) for name in SOURCES} >= set(range(len(WALK)))


def test_the_algorithms_share_nothing_with_the_circuits_but_the_noise():
    sources = [p.read_text() for name, p in SOURCES.items() if "algorithms" in name]
    ours = {name for source in sources for name in imported(source)}
    assert {name for name in ours if "algorithms" not in name} == {"lloydformer.numerics.noise"}


def test_a_step_back_is_noticed():
    back = "from lloydformer.circuits import recipes\nimport lloydformer.cli.app\n"
    found = steps_back("lloydformer.circuits.heads", back)
    assert found == ["lloydformer.circuits.recipes", "lloydformer.cli.app"]
    assert steps_back("lloydformer.cli.doctor", back) == []
    assert steps_back("lloydformer.numerics.noise", "from lloydformer import Circuit") == [
        "lloydformer"
    ]


@pytest.mark.parametrize("module", ["helpers", "circuits.other", "recipes_old"])
def test_a_module_without_a_place_is_noticed(module):
    with pytest.raises(LookupError, match=f"lloydformer.{module} has no place in the walk"):
        steps_back(f"lloydformer.{module}", "")
    with pytest.raises(LookupError, match=f"lloydformer.{module} has no place in the walk"):
        steps_back("lloydformer.numerics.noise", f"import lloydformer.{module}")
