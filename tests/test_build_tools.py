"""build-constraints.txt pins every tool that a build needs, and a wheel is built with these."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
FILE = ROOT / "build-constraints.txt"
NEEDED = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
ENTRY = re.compile(r"([\w-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")
BACKEND = "from scikit_build_core.build import get_requires_for_build_wheel as f; print(*f())"


def pinned() -> dict[str, str]:
    """Versions by name; every line has a version and a hash."""
    joined = FILE.read_text().replace(" \\\n   ", "")
    lines = [line for line in joined.splitlines() if not line.startswith("#")]
    found = [ENTRY.fullmatch(line) for line in lines]
    assert all(found), lines
    return {entry[1]: entry[2] for entry in found if entry is not None}


def needed(names: list[str]) -> dict[str, SpecifierSet]:
    """These requirements and all that they need in turn, with the versions that they accept."""
    found: dict[str, SpecifierSet] = {}
    waiting = [*map(Requirement, names)]
    while waiting:
        one = waiting.pop()
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            if one.name not in found:
                waiting += map(Requirement, requires(one.name) or [])
            found[one.name] = found.get(one.name, SpecifierSet()) & one.specifier
    return found


def asked_by_the_backend() -> dict[str, SpecifierSet]:
    """What it asks for where cmake and ninja are not installed."""
    said = run(sys.executable, "-c", BACKEND, cwd=ROOT, env={**os.environ, "PATH": ""}).split()
    return {one.name: one.specifier for one in map(Requirement, said)}


def run(*command, **settings) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_tool_of_a_build_is_pinned_and_nothing_else():
    wanted = needed(NEEDED) | asked_by_the_backend()
    assert {"scikit-build-core", "nanobind", "cmake", "ninja", "packaging"} <= wanted.keys()
    assert pinned().keys() == wanted.keys()
    assert [name for name, version in pinned().items() if version not in wanted[name]] == []


def test_wheels_are_built_for_every_python_that_is_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = [name.removesuffix("-*") for name in project["tool"]["cibuildwheel"]["build"]]
    oldest = SpecifierSet(project["project"]["requires-python"])
    assert [f"cp3{minor}" for minor in range(8, 13) if f"3.{minor}" in oldest] == built
    assert built[-1] == project["tool"]["scikit-build"]["wheel"]["py-api"]  # and all later ones
    workflow = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    assert "pypa/cibuildwheel@" in workflow


def test_citations_have_the_version_and_the_paper():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page, file = ((ROOT / name).read_text() for name in ("docs/index.md", "CITATION.cff"))
    assert f"version: {project['version']}\n" in file
    assert f"version = {{{project['version']}}}" in page
    titles = re.findall(r"(?<!^)title: (.+)", file)
    assert f"title = {{{titles[1]}}}" in page
    names = re.findall(r"family-names: (\w+)", file)[:5]
    assert all(name in page for name in names)
    assert len(set(names)) == 5


def test_the_versions_are_those_of_a_test_run():
    tested = re.findall(r"^([\w-]+)==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    both = [(name, version) for name, version in tested if name in pinned()]
    assert len(both) >= 2
    assert [(name, version) for name, version in both if pinned()[name] != version] == []


COMPILER = """\
#!{python}
import pathlib, sys
words = sys.argv[1:]
if "kernels.cpp" in " ".join(words):  # one takes half a minute
    with open({log!r}, "a") as log:
        log.write(words[words.index("-o") + 1] + "\\n")
    for option in ("-o", "-MF"):
        pathlib.Path(words[words.index(option) + 1]).write_text("")
else:
    import subprocess
    sys.exit(subprocess.call(words))
"""


def build_kernels(folder: Path, launcher: Path) -> None:
    """Configure and compile the kernels as an installation does, in a build directory."""
    import nanobind
    from scikit_build_core.cmake import CMake, CMaker

    maker = CMaker(CMake.default_search(), ROOT, folder, "Release")
    maker.configure(
        defines={
            "CMAKE_CXX_COMPILER_LAUNCHER": str(launcher),
            "nanobind_DIR": nanobind.cmake_dir(),
            "Python_EXECUTABLE": sys.executable,
        }
    )
    maker.build(["--target", "kernels/all"])


@pytest.mark.skipif(
    not all(map(shutil.which, ("c++", "cmake", "ninja"))), reason="no tools to compile with"
)
def test_another_installation_does_not_compile_the_kernels_again(tmp_path, monkeypatch):
    """pip makes new isolated environments, and scikit-build-core clears its directory for them."""
    monkeypatch.setenv("CMAKE_GENERATOR", "Ninja")
    log, launcher = tmp_path / "compiled", tmp_path / "launcher"
    launcher.write_text(COMPILER.format(python=sys.executable, log=str(log)))
    launcher.chmod(0o755)
    folder = tmp_path / "build"
    build_kernels(folder, launcher)
    compiled = log.read_text().splitlines()
    assert compiled
    info = folder / ".skbuild-info.json"
    known = json.loads(info.read_text())
    info.write_text(json.dumps(known | {"skbuild_path": "/an/earlier/environment"}))
    (folder / "CMakeFiles" / "here").touch()
    build_kernels(folder, launcher)
    assert not (folder / "CMakeFiles" / "here").exists()  # it was cleared
    assert log.read_text().splitlines() == compiled


@pytest.mark.long
def test_a_wheel_is_built_with_the_pinned_tools_and_nothing_else(tmp_path):
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler is there: no wheel with kernels was built")
    run(sys.executable, "-m", "venv", tmp_path / "tools")
    python = tmp_path / "tools" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    tools = subprocess.run(
        [*pip, "install", "--require-hashes", "--requirement", FILE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tools.returncode and "hashes" not in tools.stderr.lower():
        pytest.skip("the package registry cannot be reached: no wheel was built")
    assert tools.returncode == 0, tools.stderr
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index",
        "-C", f"build-dir={tmp_path}/build", "--wheel-dir", tmp_path, ROOT)  # fmt: skip
    installed = {line.split("==")[0] for line in run(*pip, "freeze").splitlines()}
    assert {name.replace("_", "-") for name in installed} == pinned().keys()
    (wheel,) = tmp_path.glob("lloydformer-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [n for n in names if n.startswith("lloydformer/engines/native/_kernels.")]
