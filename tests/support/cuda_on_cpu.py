"""Runs kernels/batch.cu on the CPU, thread by thread, for machines without a GPU."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

import lloydformer.engines.cuda.batch as batch
from lloydformer.engines.cuda.backend import CUDA_CPP, choose_backend
from lloydformer.engines.cuda.nvrtc import Macros

COMPILER = os.environ.get("CXX") or shutil.which("c++")
KERNELS = Path(batch.__file__).parent / "kernels"
_FRAME = """
#include "cuda_block.hpp"
alignas(128) static unsigned char raw[1 << 18];  // shared memory
{kernels}
/// Runs b blocks. Returns 0 if nothing was written beyond these bytes of shared memory.
static int run_blocks(int b, int bytes, bool backwards, std::function<void()> body) {{
    int beyond = 0;
    gridDim.x = b;
    for (int i = 0; i < b; i++) {{
        std::fill(raw, raw + sizeof(raw), 0xCD);
        run_block(i, backwards, body);
        for (size_t at = bytes; at < sizeof(raw); at++) beyond += raw[at] != 0xCD;
    }}
    return beyond;
}}
extern "C" int run_solve_batch(Batch p, int b, int bytes, bool backwards) {{
    return run_blocks(b, bytes, backwards, [=] {{ solve_batch(p); }});
}}
extern "C" int run_lloyd_paths(Paths p, int b, int bytes, bool backwards) {{
    return run_blocks(b, bytes, backwards, [=] {{ lloyd_paths(p); }});
}}
"""


def need_compiler() -> None:
    """Skip the test where kernels cannot be compiled for the CPU."""
    if COMPILER is None or sys.platform != "linux":
        pytest.skip("no C++ compiler on Linux is there")


def need_gpu() -> None:
    """Skip the test where kernels in CUDA C++ cannot run."""
    if not torch.cuda.is_available() or choose_backend(torch.device("cuda:0")) != CUDA_CPP:
        pytest.skip("no GPU for kernels in CUDA C++ is there")


def _in_cpp(name: str) -> str:
    """A kernel file as C++: shared memory is static, and instructions of the GPU are functions."""
    text = (KERNELS / name).read_text(encoding="utf-8")
    text = re.sub(r"extern __shared__.*", "", text).replace("__shared__", "static")
    for kind, byte in (("unsigned", "unsigned char"), ("signed", "signed char")):
        call = rf"\1 multiply_bytes<{byte}>(c, a, b0, b1); }}"
        text = re.sub(rf"(void mma_{kind}\([^)]*\) {{)\n.*?\n}}", call, text, flags=re.DOTALL)
    return re.sub(r"\basm\(.*?\);", "", text)


@cache
def _library(folder: Path, macros: Macros) -> ctypes.CDLL:
    path = folder / "_".join(f"{name}{value}" for name, value in macros)
    kernels = _in_cpp("prelude.cuh") + _in_cpp("batch.cu")
    path.with_suffix(".cpp").write_text(_FRAME.format(kernels=kernels))
    subprocess.run(
        [
            str(COMPILER), "-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off",
            "-fno-strict-aliasing", "-shared", "-fPIC", f"-I{Path(__file__).parent}",
            "-U_FORTIFY_SOURCE",  # its checks refuse _longjmp to the stack of another fiber
            *(f"-D{name}={value}" for name, value in macros),
            str(path.with_suffix(".cpp")), "-o", str(path.with_suffix(".so")),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(path.with_suffix(".so")))


def solve_batch_on_cpu(
    folder: Path, x: Tensor, starts: Tensor, tol: float, max_iter: int,
    spans: tuple[float, float], backwards: bool = False,
) -> batch.BatchSolution | None:  # fmt: skip
    """`engines.cuda.batch.solve_batch`. backwards: threads take turns in the other order."""
    x, starts = x.contiguous(), starts.contiguous()
    solved = batch.allocate_solution(x, starts)
    given = batch.make_batch_argument(x, starts, solved, tol, max_iter, spans)
    _launch(folder, "solve_batch", x, starts, given, backwards)
    return None if batch.has_bad_values(solved.n_iter) else solved


def lloyd_paths_on_cpu(
    folder: Path, x: Tensor, starts: Tensor, drawn: Tensor, backwards: bool = False
) -> batch.LloydPaths:
    """`engines.cuda.batch.run_lloyd_paths`."""
    x, starts, drawn = x.contiguous(), starts.contiguous(), drawn.contiguous()
    found = batch.allocate_paths(starts, len(drawn))
    given = batch.make_paths_argument(x, starts, found, drawn)
    _launch(folder, "lloyd_paths", x, starts, given, backwards)
    return found


def _launch(
    folder: Path, name: str, x: Tensor, starts: Tensor, given: ctypes.Structure, backwards: bool
) -> None:
    (b, k, _), (_, n, d) = starts.shape, x.shape
    library = _library(folder, batch.list_batch_macros(x, k))
    bytes_asked = batch.count_shared_bytes(n, batch.pad_width(d), k)
    assert getattr(library, f"run_{name}")(given, b, bytes_asked, backwards) == 0


def same_bits(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
