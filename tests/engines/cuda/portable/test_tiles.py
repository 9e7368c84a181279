"""The portable kernels compile for every generation of GPUs, within their shared memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lloydformer

pytest.importorskip("triton", reason="needs Triton: pip install lloydformer[gpu-test]")

SCRIPT = Path(__file__).parents[3] / "support" / "compile_kernels.py"
LIMITS = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227}
"""Shared memory of a block by compute capability, in KB."""
Compiled = tuple[str, str, str, int]
"""Kernel, sizes, type of the rows, bytes of shared memory."""
KERNELS = {
    "prepare", "copy_centers", "assign", "decide_few", "decide_many", "collect", "move",
    "move_small", "move_centers", "finish", "measure", "add_parts",
}  # fmt: skip


def compiled(target: int, which: str, cache: Path) -> list[Compiled]:
    """Compile in another process: in this one Triton may be set to interpret kernels."""
    environment = {name: v for name, v in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(Path(lloydformer.__file__).parents[1])
    environment["TRITON_CACHE_DIR"] = str(cache)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(target), which],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [tuple(row) for row in json.loads(ran.stdout)]


def too_large(found: list[tuple[str, str, str, int]], target: int) -> list[Compiled]:
    return [row for row in found if row[-1] > LIMITS[target] * 1024]


@pytest.mark.long
def test_each_kernel_compiles(tmp_path):
    found = compiled(86, "each", tmp_path)
    assert {name for name, *_ in found} == KERNELS
    assert too_large(found, 86) == []


@pytest.mark.long
@pytest.mark.parametrize("target", [90, 100])
def test_tensor_cores_of_later_generations_compile(target, tmp_path):
    found = compiled(target, "assign", tmp_path)
    assert [name for name, *_ in found] == ["assign"]
    assert too_large(found, target) == []


@pytest.mark.long
@pytest.mark.parametrize("target", LIMITS)
def test_all_tiles_fit_into_shared_memory(target, tmp_path):
    found = compiled(target, "all", tmp_path)
    assert len(found) > 80
    assert too_large(found, target) == []
    # One table serves all: it must fit the smallest.
    assert max(row[-1] for row in found) > 32 * 1024
