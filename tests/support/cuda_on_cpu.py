"""Runs kernels/batch.cu on the CPU, thread by thread, for machines without a GPU."""

import ctypes
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

import lloydformer.engines.cuda.batch as batch
from lloydformer.engines.cuda.nvrtc import Constants

COMPILER = os.environ.get("CXX") or shutil.which("c++")
KERNELS = Path(batch.__file__).parent / "kernels"
_FRAME = """
#include "cuda_block.hpp"
alignas(128) static unsigned char raw[1 << 18];  // shared memory
{kernels}
/// Solves b problems. Returns 0 if nothing was written beyond these bytes of shared memory.
extern "C" int run(Batch problems, int b, int bytes, bool backwards) {{
    int beyond = 0;
    for (int i = 0; i < b; i++) {{
        std::fill(raw, raw + sizeof(raw), 0xCD);
        run_block(i, backwards, [=] {{ solve_batch(problems); }});
        for (size_t at = bytes; at < sizeof(raw); at++) beyond += raw[at] != 0xCD;
    }}
    return beyond;
}}
"""


def _in_cpp(name: str) -> str:
    """A kernel file as C++: shared memory is static, and instructions of the GPU are functions."""
    text = (KERNELS / name).read_text(encoding="utf-8")
    text = re.sub(r"extern __shared__.*", "", text).replace("__shared__", "static")
    for kind, byte in (("unsigned", "unsigned char"), ("signed", "signed char")):
        call = rf"\1 multiply_bytes<{byte}>(c, a, b0, b1); }}"
        text = re.sub(rf"(void mma_{kind}\([^)]*\) {{)\n.*?\n}}", call, text, flags=re.DOTALL)
    return re.sub(r"\basm\(.*?\);", "", text)


@cache
def _library(folder: Path, macros: Constants) -> ctypes.CDLL:
    path = folder / "_".join(f"{name}{value}" for name, value in macros)
    kernels = _in_cpp("common.cuh") + _in_cpp("batch.cu")
    path.with_suffix(".cpp").write_text(_FRAME.format(kernels=kernels))
    subprocess.run(
        [
            str(COMPILER), "-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off",
            "-fno-strict-aliasing", "-shared", "-fPIC", f"-I{Path(__file__).parent}",
            *(f"-D{name}={value}" for name, value in macros),
            str(path.with_suffix(".cpp")), "-o", str(path.with_suffix(".so")),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(path.with_suffix(".so")))


def solve_batch_on_cpu(
    folder: Path, x: Tensor, starts: Tensor, tol: float, max_iter: int,
    spans: tuple[float, float], backwards: bool = False,
) -> batch.Solved | None:  # fmt: skip
    """`engines.cuda.batch.solve_batch`. backwards: threads take turns in the other order."""
    (b, n, d), k = x.shape, starts.shape[1]
    x, starts = x.contiguous(), starts.contiguous()
    solved = batch.empty_results(b, n, k, d, x.device)
    library = _library(folder, batch.macros_for(x, k))
    given = batch.argument(x, starts, solved, tol, max_iter, spans)
    bytes_asked = batch.shared_bytes(n, batch.width_for(d), k)
    assert library.run(given, b, bytes_asked, backwards) == 0
    return None if int(solved.n_iter.min()) < 0 else solved


def same_bits(one: batch.Solved, other: batch.Solved) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
