"""The kernels under sanitizers, without Python: every kernel on small odd sizes.

The driver also checks what it runs: bounds and threads change no bit, labels name the nearest
center in float64, relocations and refills find what they must, and a kernel that runs out of memory
leaves nothing wrong behind. Planted mistakes show that these checks can fail.
"""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lloydformer.engines.native.installed import kernels

ROOT = Path(__file__).parents[3]
DRIVER = ROOT / "benchmarks" / "native" / "driver.py"
_DRIVER = runpy.run_path(str(DRIVER))
MUTANTS, KERNELS = _DRIVER["MUTANTS"], _DRIVER["KERNELS"]
COMPILER = os.environ.get("CXX") or shutil.which("c++")


@pytest.fixture(autouse=True)
def _sanitizing(tmp_path):
    """Skips where there is no compiler, or none with sanitizers."""
    source = tmp_path / "nothing.cpp"
    source.write_text("int main() {}")
    if COMPILER is None:
        pytest.skip("no C++ compiler is there: the kernels were not run under sanitizers")
    command = [COMPILER, "-fsanitize=address,undefined", str(source), "-o", f"{tmp_path}/nothing"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{COMPILER} has no sanitizers: the kernels were not run under them")


def test_each_planted_mistake_has_its_place():
    """Kernels change; a mistake whose place is gone would be found missing after hours only."""
    for name, mutant in MUTANTS.items():
        text = (KERNELS / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, name


def drive(*arguments: str) -> str:
    command = [sys.executable, str(DRIVER), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sanitize(isa: str, *more: str) -> str:
    return drive("sanitize", isa, *more)


def runs_here(isa: str) -> bool:
    try:
        return kernels().isa(isa) == isa
    except ValueError:  # not built, or this machine lacks the instructions
        return isa == "portable"


@pytest.mark.long
def test_sanitizers_are_clean_on_small_problems():
    isa = "avx2" if runs_here("avx2") else "portable"
    assert sanitize(isa, "--quick").startswith("448 problems, labels ")


@pytest.mark.long
def test_sanitizers_are_clean_and_labels_the_same_for_every_instruction_set():
    there = [isa for isa in ("portable", "avx2", "avx512") if runs_here(isa)]
    found = {isa: sanitize(isa) for isa in there}
    assert found == dict.fromkeys(there, found["portable"])


@pytest.mark.long
def test_no_thread_reads_what_another_one_writes():
    isa = "avx2" if runs_here("avx2") else "portable"
    sanitize(isa, "--sanitizers", "thread")


@pytest.mark.long
def test_planted_mistakes_are_found():
    isa = "avx2" if runs_here("avx2") else "portable"
    found = dict(line.split(": ", 1) for line in drive("mutants", "--isa", isa).splitlines())
    assert list(found) == list(MUTANTS)
    for name, mutant in MUTANTS.items():
        assert found[name].endswith(mutant.found), (name, found[name])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("gcov") is None, reason="lines are counted by gcov")
def test_the_driver_runs_the_lines_of_the_kernels():
    isa = "avx2" if runs_here("avx2") else "portable"
    *files, total = drive("coverage", isa).splitlines()
    assert len(files) >= 30
    assert float(total.split()[0]) >= 95


def test_an_unknown_instruction_set_is_named():
    command = [sys.executable, str(DRIVER), "sanitize", "sse9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ISA: found 'sse9'; CMakeLists.txt has portable, avx2, avx512" in done.stderr
