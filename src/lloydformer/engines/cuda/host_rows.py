"""Rows that stay in the memory of the host, from where a GPU fetches blocks or reads single rows.

Kernels for Lloyd's algorithm compare the float16 copy of the points, which is on the GPU. Of the
rows themselves they read those with close calls and those that change their cluster.
"""

import ctypes
import weakref
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP, backend
from lloydformer.engines.cuda.hopper import copied_bytes
from lloydformer.engines.cuda.launches import make_ready
from lloydformer.engines.cuda.nvrtc import driver

_WIDEST = 256
_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8


class _Registered:
    """Memory of the host that GPUs may read, and how many users it has.

    The key is address, bytes, and the number of the GPU. The lock is reentrant: while it is held,
    the garbage collector may free another user.
    """

    def __init__(self) -> None:
        self._lock, self._counts = RLock(), dict[tuple[int, int, int], int]()

    def take(self, key: tuple[int, int, int]) -> bool:
        """Let the GPU read it; False if it cannot, or if somebody else has registered it."""
        with self._lock:
            if key not in self._counts and not _registered(*key[:2]):
                return False
            self._counts[key] = self._counts.get(key, 0) + 1
            return True

    def give_back(self, key: tuple[int, int, int]) -> None:
        """Wait for the GPU; after the last user it may not read the memory any more."""
        with self._lock:
            self._counts[key] -= 1
            last = self._counts[key] == 0
            if last:
                del self._counts[key]
            try:
                torch.cuda.synchronize(key[2])
            finally:
                if last:
                    driver().cuMemHostUnregister(ctypes.c_void_p(key[0]))


_REGISTERED = _Registered()


def _registered(address: int, size: int) -> bool:
    for flags in (_PORTABLE | _MAPPED, _PORTABLE | _MAPPED | _READ_ONLY):
        given = ctypes.c_void_p(address), ctypes.c_size_t(size), flags
        if driver().cuMemHostRegister_v2(*given) == 0:
            return True
    return False


class Pinned:
    """Memory of the host that a GPU reads while this is kept."""

    def __init__(self, points: Tensor, key: tuple[int, int, int]) -> None:
        self.points, self.key = points, key  # nobody may free it before the GPU has read it
        weakref.finalize(self, _REGISTERED.give_back, key)


def pinned(points: Tensor, device: torch.device) -> Pinned | None:
    """Let the GPU read the memory of these rows; None if it cannot, or another library did so."""
    if torch.version.hip is not None or not points.is_contiguous():
        return None
    number = torch.cuda.current_device() if device.index is None else device.index
    key = points.data_ptr(), points.nbytes, number
    with torch.cuda.device(number):
        make_ready(device)
        return Pinned(points, key) if _REGISTERED.take(key) else None


class _HostRows:
    """Memory of the host as torch takes it over."""

    def __init__(self, memory: Pinned, address: int) -> None:
        kind = "<f8" if memory.points.dtype == torch.float64 else "<f4"
        self.__cuda_array_interface__ = {
            "shape": tuple(memory.points.shape), "typestr": kind, "data": (address, False),
            "version": 3,
        }  # fmt: skip
        self.memory = memory


def rows_on_host(points: Tensor, device: torch.device, n_clusters: int, free: int) -> Tensor | None:
    """The same points as a tensor of the GPU, whose numbers stay where they are.

    None if there are no kernels that it serves, if their copy of the points is larger than the
    `free` bytes, or if the GPU cannot read the memory.
    """
    n, d = points.shape
    if backend(device) != CUDA_CPP or d > _WIDEST or n * copied_bytes(d, n_clusters) > free:
        return None
    memory = pinned(points, device)
    return None if memory is None else _wrapped(memory)


def _wrapped(memory: Pinned) -> Tensor:
    start, _, number = memory.key
    address = ctypes.c_void_p()
    with torch.cuda.device(number):
        status = driver().cuMemHostGetDevicePointer_v2(
            ctypes.byref(address), ctypes.c_void_p(start), 0
        )
        if status or address.value is None:
            raise RuntimeError("CUDA: no address for memory of the host that was registered")
        rows: Any = _HostRows(memory, address.value)
        return torch.as_tensor(rows, device=f"cuda:{number}")
