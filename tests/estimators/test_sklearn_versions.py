"""Every scikit-learn that the metadata allow works, and its private names are in one module."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from import_graph import read_sources

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
(ALLOWED,) = (r for r in map(Requirement, METADATA["dependencies"]) if r.name == "scikit-learn")
PINNED = re.search(r"^scikit-learn==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
CONTRACT = ("contract", "like_sklearn", "documented", "html", "saved", "source", "weights")
ONLY_HERE = "lloydformer.estimators.parameter_checks"


def private_imports(source: str) -> list[str]:
    """Modules and names of scikit-learn that begin with an underscore."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [n for n in found if n.startswith("sklearn.") and "._" in n]


def test_one_module_imports_private_names_of_scikit_learn():
    found = {name: private_imports(source) for name, source in read_sources().items()}
    assert [name for name, private in found.items() if private] == [ONLY_HERE]


def test_private_imports_of_every_form_are_noticed():
    source = (
        "import sklearn.utils._show\nfrom sklearn import base, _config\nfrom os import _exit\n"
        "def late():\n    from sklearn.utils._tags import Tags\n    from sklearn.base import clone"
    )
    assert private_imports(source) == [
        "sklearn.utils._show", "sklearn._config", "sklearn.utils._tags.Tags",
    ]  # fmt: skip


def test_both_bounds_are_given_and_the_pinned_version_is_between():
    assert sorted(bound.operator for bound in ALLOWED.specifier) == ["<", ">="]
    assert PINNED is not None
    assert PINNED[1] in ALLOWED.specifier


def test_the_tests_of_the_contract_exist():
    """The long test below names them; a file that was renamed is noticed here."""
    for name in CONTRACT:
        assert (ROOT / "tests" / "estimators" / f"test_{name}.py").is_file(), name


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "pip", *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def released() -> list[Version]:
    """The versions that the metadata allow, from the package registry."""
    found = pip("index", "versions", "scikit-learn")
    listed = re.search(r"Available versions: (.*)", found.stdout)
    if listed is None:
        pytest.skip("the package registry cannot be reached: no other scikit-learn was tested")
    return sorted(v for v in map(Version, listed[1].split(", ")) if v in ALLOWED.specifier)


@pytest.mark.long
@pytest.mark.parametrize("choose", [min, max], ids=["oldest", "newest"])
def test_the_estimators_work_with(choose, tmp_path):
    version = choose(released())
    requirement = f"scikit-learn=={version}"
    done = pip("install", "--target", str(tmp_path), "--no-deps", "--only-binary", ":all:",
               requirement)  # fmt: skip
    assert done.returncode == 0, done.stderr
    tests = [str(ROOT / "tests" / "estimators" / f"test_{name}.py") for name in CONTRACT]
    # scikit-learn 1.6 passes a generator to pytest's parametrize, which warns
    quiet = "ignore::pytest.PytestRemovedIn10Warning"
    paths = [str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(version), "-q", "-m", "not long", "-W", quiet, *tests],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr


RUN = """
import sys, pytest, sklearn
version, *arguments = sys.argv[1:]
assert sklearn.__version__ == version, sklearn.__file__
sys.exit(pytest.main(arguments))
"""
