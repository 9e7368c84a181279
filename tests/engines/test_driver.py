"""The kernels under sanitizers, without Python: every fold on small odd sizes.

The driver also checks what it runs: bounds and threads change no label, and each label is of the
nearest center in float64.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lloydformer.engines.native.installed import kernels

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "benchmarks" / "native" / "driver.py"
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


def sanitize(isa: str, *more: str) -> str:
    command = [sys.executable, str(DRIVER), "sanitize", isa, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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


def test_an_unknown_instruction_set_is_named():
    command = [sys.executable, str(DRIVER), "sanitize", "sse9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ISA: found 'sse9'; CMakeLists.txt has portable, avx2, avx512" in done.stderr
