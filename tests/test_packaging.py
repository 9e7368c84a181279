"""The source distribution, a wheel built from it, and an install where there is no compiler."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNELS = "lloydformer/engines/native"
pytestmark = pytest.mark.long


def run(*command, **settings) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    code = f"from scikit_build_core.build import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code, cwd=ROOT)
    (archive,) = folder.glob("lloydformer-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def wheel(sources: Path, folder: Path, **variables: str) -> Path:
    pip = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index")
    build = f"build-dir={folder}/build"
    run(*pip, "-C", build, "-w", folder, sources, env={**os.environ, **variables})
    (path,) = folder.glob("lloydformer-*.whl")
    return path


def contents(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return file.namelist()


def files_beside_modules() -> set[str]:
    """Return the style sheets, scripts and templates of the package, by their paths in a wheel."""
    package = ROOT / "src" / "lloydformer"
    endings = (".css", ".html", ".js", ".json", ".toml")
    paths = {
        path.relative_to(package.parent) for path in package.rglob("*") if path.suffix in endings
    }
    found = {path.as_posix() for path in paths}
    wanted = (
        "app/explorer/page/index.html",
        "app/explorer/page/recipes.js",
        "app/jobs/demo.html",
        "plots/diagrams/style.css",
        "plots/report/templates/page.html",
    )
    assert {f"lloydformer/{name}" for name in wanted} <= found
    return found


def test_the_source_distribution_has_all_that_is_needed_to_build_and_test(sources):
    wanted = [f"src/{KERNELS}/kernels/kernels.cpp", f"src/{KERNELS}/kernels/simd.hpp",
              "CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "tests/test_packaging.py",
              "benchmarks/native/driver.cpp", "docs/walk.md"]  # fmt: skip
    assert [name for name in wanted if not (sources / name).is_file()] == []
    assert [name for name in (".venv", "build", ".git") if (sources / name).exists()] == []


def test_a_wheel_has_the_kernels_and_no_sources_of_them(sources, tmp_path):
    if shutil.which("c++") is None or shutil.which("cmake") is None:
        pytest.skip("no C++ compiler or no cmake is there: no wheel with kernels was built")
    found = contents(wheel(sources, tmp_path))
    assert [n for n in found if n.startswith(f"{KERNELS}/_kernels.")]
    assert [n for n in found if n.endswith((".cpp", ".hpp")) or "tests/" in n] == []


def test_without_a_compiler_everything_but_the_native_engine_is_there(sources, tmp_path):
    path = wheel(sources, tmp_path, CC="false", CXX="false")
    assert path.name.endswith("-py3-none-any.whl")
    assert [n for n in contents(path) if n.endswith((".so", ".pyd", ".cpp", ".hpp"))] == []
    assert files_beside_modules() - set(contents(path)) == set()
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path / "here")
    # -S: the installation that these tests run with has a finder of its own, which is not wanted.
    paths = [str(tmp_path / "here"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    said = run(sys.executable, "-S", "-c", BARE, cwd=tmp_path,
               env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})  # fmt: skip
    assert said.splitlines() == ["chunked", 'engine: found "native"', "[0, 0, 1, 1]"]


def test_a_wheel_runs_in_a_fresh_environment(sources, tmp_path):
    """The lines of the README that need no extra, where nothing but the wheel is installed."""
    path = wheel(sources, tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "fresh")
    python = tmp_path / "fresh" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", path)
    said = run(python, "-c", BARE, cwd=tmp_path).splitlines()
    assert said[0] in ("native", "chunked")
    assert said[-1] == "[0, 0, 1, 1]"
    assert "lloydformer" in run(tmp_path / "fresh" / "bin" / "lloydformer", "--help", cwd=tmp_path)


BARE = """
import numpy as np, lloydformer as lf
import torch
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
X = np.array([[0.0], [1.0], [8.0], [9.0]])
print(choose("auto", TensorBlocks(torch.from_numpy(X))).name)
try:
    lf.KMeans(2, engine="native").fit(X)
except ValueError as error:
    print(str(error).split(",")[0])
print(lf.KMeans(2, init=X[[0, 3]]).fit(X).labels_.tolist())
"""
