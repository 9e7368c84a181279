"""Compiles CUDA C++ at run time by the NVRTC that comes with torch, and loads it.

Compiled code is kept on disk by a hash of its source, its options and the version of NVRTC.
"""

import ctypes
import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch

from lloydformer.storage.atomic import replacing
from lloydformer.storage.cache_folder import cache_folder

_SOURCES = Path(__file__).parent / "kernels"
_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_FREE_SHARED = 40 * 1024
"""Bytes of shared memory that a block may have without asking: 48 KiB less what is static."""

Constants = tuple[tuple[str, object], ...]

_allowed: dict[tuple[str, str, torch.device, Constants], int] = {}
"""Bytes of shared memory that the driver allows each kernel."""


class CompileError(RuntimeError):
    """NVRTC is missing, or it refused a kernel."""


@cache
def driver() -> ctypes.CDLL:
    """The CUDA driver, which torch has initialised."""
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


def checked(status: int) -> None:
    """Raise `RuntimeError` if a call of the driver has failed."""
    if status:
        words = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(words))
        raise RuntimeError(f"CUDA: {(words.value or b'unknown error').decode()}")


@cache
def kernel(
    file: str, name: str, device: torch.device, constants: Constants = (), shared: int = 0
) -> ctypes.c_void_p:
    """A kernel of a file in kernels/, for one device.

    Parameters
    ----------
    file, name : str
        The file, and the function in it.
    device : torch.device
        A CUDA device.
    constants : tuple of pairs
        Macros and their values.
    shared : int
        Bytes of dynamic shared memory that launches will ask for.

    Raises
    ------
    CompileError
        If it cannot be compiled.
    """
    function = ctypes.c_void_p()
    module = _module(file, device, constants)
    checked(driver().cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    allowed = _allowed.setdefault((file, name, device, constants), _FREE_SHARED)
    if shared > allowed:  # a limit that is set again replaces the one before
        checked(driver().cuFuncSetAttribute(function, _SHARED_LIMIT, shared))
        _allowed[file, name, device, constants] = shared
    return function


@cache
def _module(file: str, device: torch.device, constants: Constants) -> ctypes.c_void_p:
    major, minor = torch.cuda.get_device_capability(device)
    architecture = f"{major}{minor}a" if major >= 9 else f"{major}{minor}"
    code = compiled(source(file, constants), architecture, constants)
    module = ctypes.c_void_p()
    with torch.cuda.device(device):
        torch.cuda.current_stream()  # a context for the driver
        checked(driver().cuModuleLoadData(ctypes.byref(module), code))
    return module


def source(file: str, constants: Constants) -> str:
    """The text of a kernel file, with what all of them share before it."""
    text = (_SOURCES / file).read_text(encoding="utf-8")
    columns = dict(constants).get("N")
    if isinstance(columns, int):
        text = text.replace("// WGMMA\n", _wgmma(columns))
    return (_SOURCES / "common.cuh").read_text(encoding="utf-8") + text


def compiled(text: str, architecture: str, constants: Constants) -> bytes:
    """Machine code, from the cache or from NVRTC."""
    options = [f"--gpu-architecture=sm_{architecture}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in constants]
    key = hashlib.sha256("\0".join([text, _version(), *options]).encode()).hexdigest()[:32]
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
        return _path(key).read_bytes()
    code = _compile(text, options)
    with suppress(OSError, RuntimeError), replacing(_path(key)) as file:
        file.write(code)
    return code


def _path(key: str) -> Path:
    return cache_folder("kernels") / f"{key}.cubin"


def _version() -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def _compile(text: str, options: Sequence[str]) -> bytes:
    library, program = _nvrtc(), ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    try:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), given):
            words = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise CompileError(words.decode(errors="replace").strip("\0\n"))
        return _read(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size: Any, content: Any, program: ctypes.c_void_p) -> bytes:
    length = ctypes.c_size_t()
    size(program, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    content(program, buffer)
    return buffer.raw


def _wgmma(columns: int) -> str:
    """The matrix instruction of Hopper for so many columns: c += a b, or c = a b without `on`."""
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
