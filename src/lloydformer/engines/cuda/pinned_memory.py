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

from lloydformer.data.host_memory import in_file
from lloydformer.engines.cuda.backend import CUDA_CPP, backend
from lloydformer.engines.cuda.hopper import copied_bytes
from lloydformer.engines.cuda.launches import make_ready
from lloydformer.engines.cuda.nvrtc import driver

_WIDEST = 256
_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8


class _Registered:
    """Memory of the host that GPUs may read, by address and bytes: which GPUs use it.

    The lock is reentrant: while it is held, the garbage collector may free another user.
    """

    def __init__(self) -> None:
        self._lock, self._users = RLock(), dict[tuple[int, int], list[int]]()

    def take(self, memory: tuple[int, int], gpu: int) -> bool:
        """Let a GPU read it; False if it cannot, or if part of it is registered by others."""
        with self._lock:
            if memory not in self._users and not _registered(*memory):
                return False
            self._users.setdefault(memory, []).append(gpu)
            return True

    def give_back(self, memory: tuple[int, int], gpu: int) -> None:
        """Wait for the GPU; after the last user none may read the memory any more."""
        with self._lock:
            users = self._users[memory]
            users.remove(gpu)
            try:
                torch.cuda.synchronize(gpu)
            finally:
                if not users:
                    del self._users[memory]
                    driver().cuMemHostUnregister(ctypes.c_void_p(memory[0]))


_REGISTERED = _Registered()


def _registered(address: int, size: int) -> bool:
    """For reading alone, if the GPU can do that: pages of a file would count as changed."""
    kinds = [_READ_ONLY] if in_file(address) else [_READ_ONLY, 0]
    given = ctypes.c_void_p(address), ctypes.c_size_t(size)
    return any(
        driver().cuMemHostRegister_v2(*given, _PORTABLE | _MAPPED | kind) == 0 for kind in kinds
    )


class Pinned:
    """Rows in the memory of the host that a GPU reads while this is kept."""

    def __init__(self, points: Tensor, gpu: int) -> None:
        self.points, self.gpu = points, gpu  # nobody may free them before the GPU has read them
        memory = points.data_ptr(), points.nbytes
        weakref.finalize(self, _REGISTERED.give_back, memory, gpu)


def pinned(points: Tensor, device: torch.device) -> Pinned | None:
    """Let the GPU read the memory of these rows; None if it cannot."""
    if torch.version.hip is not None or not points.is_contiguous():
        return None
    gpu = torch.cuda.current_device() if device.index is None else device.index
    with torch.cuda.device(gpu):
        make_ready(device)
        taken = _REGISTERED.take((points.data_ptr(), points.nbytes), gpu)
    return Pinned(points, gpu) if taken else None


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


def _wrapped(memory: Pinned) -> Tensor | None:
    address, start = ctypes.c_void_p(), ctypes.c_void_p(memory.points.data_ptr())
    with torch.cuda.device(memory.gpu):
        status = driver().cuMemHostGetDevicePointer_v2(ctypes.byref(address), start, 0)
        if status or address.value is None:
            return None
        rows: Any = _HostRows(memory, address.value)
        return torch.as_tensor(rows, device=f"cuda:{memory.gpu}")
