"""Compile CUDA C++ kernels at run time with the NVRTC that torch brings, and load them.

Machine code is cached on disk under a hash of its source, its options and the version of NVRTC.
"""

import ctypes
import hashlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lloydformer.data.storage.atomic_files import atomic_write, cache_folder

# Macros that a kernel is compiled with: names and values.
Macros = tuple[tuple[str, object], ...]

_SOURCES = Path(__file__).parent / "kernels"
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES in cuda.h

# CUDA grants a block 48 KiB of shared memory without asking, static arrays included. 8 KiB are set
# aside for those (by hand: the largest beside dynamic memory are the 4 KiB of seeds.cu).
_GRANTED_SHARED = 40 * 1024

# Bytes of dynamic shared memory that each kernel has been granted so far.
_granted: dict[tuple[str, str, torch.device, Macros], int] = {}


class CompileError(RuntimeError):
    """NVRTC is missing, or it refused a kernel."""


@cache
def driver() -> ctypes.CDLL:
    """Return the library of the CUDA driver, which torch has initialised."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _nvrtc() -> ctypes.CDLL:
    major = str(torch.version.cuda).split(".", maxsplit=1)[0]
    windows = sys.platform == "win32"
    names = [f"nvrtc64_{major}0_0.dll"] if windows else [f"libnvrtc.so.{major}", "libnvrtc.so"]
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise CompileError(f"found no NVRTC library ({', '.join(names)})")


def check_status(status: int) -> None:
    """Raise `RuntimeError` if a call of the driver has failed."""
    if status:
        words = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(words))
        raise RuntimeError(f"CUDA: {(words.value or b'unknown error').decode()}")


@cache
def load_kernel(
    file: str, name: str, device: torch.device, macros: Macros = (), shared: int = 0
) -> ctypes.c_void_p:
    """Return a kernel of a file in kernels/, compiled and loaded for one device.

    Parameters
    ----------
    file, name : str
        The file, and the function in it.
    device : torch.device
        A CUDA device.
    macros : tuple of pairs
        Macros and their values.
    shared : int
        Bytes of dynamic shared memory that launches will ask for.

    Raises
    ------
    CompileError
        If it cannot be compiled.
    """
    function = ctypes.c_void_p()
    module = _load_module(file, device, macros)
    check_status(driver().cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    granted = _granted.setdefault((file, name, device, macros), _GRANTED_SHARED)
    # The limit belongs to the function, not to a launch, and setting it again replaces it: only
    # raise it, or an earlier launch with more shared memory would fail.
    if shared > granted:
        check_status(driver().cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared))
        _granted[file, name, device, macros] = shared
    return function


@cache
def _load_module(file: str, device: torch.device, macros: Macros) -> ctypes.c_void_p:
    major, minor = torch.cuda.get_device_capability(device)
    # "a": instructions of this architecture alone, such as wgmma.
    architecture = f"{major}{minor}a" if major >= 9 else f"{major}{minor}"
    code = compile_source(read_source(file, macros), architecture, macros)
    module = ctypes.c_void_p()
    with torch.cuda.device(device):
        torch.cuda.current_stream()  # makes torch create the context that the driver loads into
        check_status(driver().cuModuleLoadData(ctypes.byref(module), code))
    return module


def read_source(file: str, macros: Macros) -> str:
    """Return the text of a kernel file behind prelude.cuh, with its matrix instruction."""
    text = (_SOURCES / file).read_text(encoding="utf-8")
    columns = dict(macros).get("N")
    if isinstance(columns, int):
        text = text.replace("// WGMMA\n", _write_wgmma(columns))
    return (_SOURCES / "prelude.cuh").read_text(encoding="utf-8") + text


def compile_source(text: str, architecture: str, macros: Macros) -> bytes:
    """Return machine code, from the cache on disk or from NVRTC."""
    options = [f"--gpu-architecture=sm_{architecture}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in macros]
    major, minor = ctypes.c_int(), ctypes.c_int()
    _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    key = "\0".join([text, f"{major.value}.{minor.value}", *options])
    name = f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin"
    # Without a home folder (RuntimeError) or a writable cache, kernels are compiled every time.
    with suppress(OSError, RuntimeError):
        return (cache_folder("kernels") / name).read_bytes()
    code = _run_compiler(text, options)
    with suppress(OSError, RuntimeError), atomic_write(cache_folder("kernels") / name) as file:
        file.write(code)
    return code


def _run_compiler(text: str, options: list[str]) -> bytes:
    library, program = _nvrtc(), ctypes.c_void_p()

    def read(get_size: Any, get_content: Any) -> bytes:
        length = ctypes.c_size_t()
        get_size(program, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value)
        get_content(program, buffer)
        return buffer.raw

    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    try:
        packed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), packed):
            words = read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog)
            raise CompileError(words.decode(errors="replace").strip("\0\n"))
        return read(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _write_wgmma(columns: int) -> str:
    """Return C++ for Hopper's matrix instruction: c += a b, or c = a b without `on`.

    It is written here because inline assembly must list every register of c, and their number,
    columns / 2, depends on the problem: C++ has no loop over operands.
    """
    count = columns // 2
    registers = ",".join(f"%{i}" for i in range(count))
    a = ",".join(f"%{count + i}" for i in range(4))
    outputs = ",".join(f'"+f"(c[{i}])' for i in range(count))
    return (
        "__device__ __forceinline__ void wgmma(float* c, const uint4 a, u64 b, int on) {\n"
        f'  asm volatile("{{ .reg .pred p; setp.ne.b32 p,%{count + 5},0; "\n'
        f'    "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 "\n'
        f'    "{{{registers}}},{{{a}}},%{count + 4},p,1,1,0; }}"\n'
        f'    : {outputs} : "r"(a.x),"r"(a.y),"r"(a.z),"r"(a.w),"l"(b),"r"(on));\n'
        "}\n"
    )
