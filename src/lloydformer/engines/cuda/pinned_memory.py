"""Rows that stay in the memory of the host, from where a GPU copies blocks or reads single rows.

Kernels for Lloyd's algorithm compare the float16 copy of the points, which is on the GPU. They read
only those rows that are close calls or change their cluster: over the bus,
an iteration on 50 million rows takes 6 to 22 ms, against 116 to 138 ms if all rows are streamed
(docs/gpu.md, "Data larger than the GPU").
"""

import ctypes
import weakref
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from lloydformer.data.host_memory import is_file_mapping
from lloydformer.engines.cuda.backend import CUDA_CPP, choose_backend
from lloydformer.engines.cuda.hopper_lloyd import bound_copy_bytes
from lloydformer.engines.cuda.launch import ensure_context
from lloydformer.engines.cuda.nvrtc import driver
from lloydformer.engines.cuda.point_arrays import MOST_FEATURES

# Flags of cuMemHostRegister in cuda.h: pinned for all contexts, mapped for kernels, read-only.
_PORTABLE, _MAPPED, _READ_ONLY = 1, 2, 8


class MemoryRegister:
    """Memory of the host that GPUs may read, by address and bytes, with the GPUs that use it.

    CUDA refuses memory that is registered already, so that users of the same memory share one
    registration. The lock is reentrant: while it is held, the garbage collector may free another
    user.
    """

    def __init__(self) -> None:
        self._lock, self._users = RLock(), dict[tuple[int, int], list[int]]()

    def take(self, memory: tuple[int, int], gpu: int) -> bool:
        """Let a GPU read the memory; return False if it cannot, or if others registered a part."""
        address, size = memory
        with self._lock:
            if memory not in self._users:
                # Read-only if the GPU supports that; a mapped file never otherwise, as the system
                # would take its pages for changed.
                kinds = [_READ_ONLY] if is_file_mapping(address) else [_READ_ONLY, 0]
                where = ctypes.c_void_p(address), ctypes.c_size_t(size)
                flags = (_PORTABLE | _MAPPED | kind for kind in kinds)
                if all(driver().cuMemHostRegister_v2(*where, flag) for flag in flags):
                    return False
            self._users.setdefault(memory, []).append(gpu)
            return True

    def give_back(self, memory: tuple[int, int], gpu: int) -> None:
        """Wait for the GPU; after the last user, end the registration."""
        with self._lock:
            users = self._users[memory]
            users.remove(gpu)
            try:
                torch.cuda.synchronize(gpu)
            finally:
                if not users:
                    del self._users[memory]
                    driver().cuMemHostUnregister(ctypes.c_void_p(memory[0]))


_REGISTER = MemoryRegister()


class PinnedRows:
    """Rows in the memory of the host that a GPU may read as long as this object lives."""

    def __init__(self, points: Tensor, gpu: int) -> None:
        self.points, self.gpu = points, gpu  # keeps the memory until the GPU has read it
        memory = points.data_ptr(), points.nbytes
        weakref.finalize(self, _REGISTER.give_back, memory, gpu)


def pin_rows(points: Tensor, device: torch.device) -> PinnedRows | None:
    """Let the GPU read the memory of these rows; None if it cannot."""
    if torch.version.hip is not None or not points.is_contiguous():
        return None
    gpu = torch.cuda.current_device() if device.index is None else device.index
    with torch.cuda.device(gpu):
        ensure_context(device)
        taken = _REGISTER.take((points.data_ptr(), points.nbytes), gpu)
    return PinnedRows(points, gpu) if taken else None


class HostArray:
    """Pinned rows by the array interface of CUDA, from which torch makes a tensor without a copy.

    torch keeps a reference to it, and it to the rows, so that they outlive the tensor.
    """

    def __init__(self, memory: PinnedRows, address: int) -> None:
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": tuple(memory.points.shape),
            "typestr": "<f8" if memory.points.dtype == torch.float64 else "<f4",
            "data": (address, False),
            "version": 3,
        }


def map_host_rows(points: Tensor, device: torch.device, k: int, free: int) -> Tensor | None:
    """Return the points as a tensor of the GPU, whose numbers stay in the memory of the host.

    None if there are no kernels that it serves, if their copy of the points for k clusters is
    larger than the `free` bytes, or if the GPU cannot read the memory.
    """
    n, d = points.shape
    if choose_backend(device) != CUDA_CPP or d > MOST_FEATURES:
        return None
    memory = pin_rows(points, device) if n * bound_copy_bytes(d, k) <= free else None
    if memory is None:
        return None
    address, start = ctypes.c_void_p(), ctypes.c_void_p(points.data_ptr())
    with torch.cuda.device(memory.gpu):
        status = driver().cuMemHostGetDevicePointer_v2(ctypes.byref(address), start, 0)
        if status or address.value is None:
            return None
        rows: Any = HostArray(memory, address.value)
        return torch.as_tensor(rows, device=f"cuda:{memory.gpu}")
