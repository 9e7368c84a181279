"""Which kernels the points of a session get when some of them fail; no GPU is needed."""

import sys
import warnings
from subprocess import CalledProcessError
from types import SimpleNamespace

import pytest
import torch

import lloydformer.engines.cuda.point_arrays as point_arrays
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.cuda.backend import CUDA_CPP, TORCH, TRITON
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.engines.state import PointState

FAILURES = [
    RuntimeError("Failed to find C compiler"),
    OSError("libcuda.so is missing"),
    ImportError("cannot import name"),
    CalledProcessError(1, "gcc"),  # no Python.h
    RuntimeError(),
]


def arrays_with(backend, failure, monkeypatch) -> tuple[CudaPointArrays, list[int]]:
    """Arrays whose kernels in Triton fail, and the numbers of centers that these were made for."""
    tried = []

    def fail(points, state):
        tried.append(state.n_clusters)
        raise failure

    portable = "lloydformer.engines.cuda.portable.lloyd"
    monkeypatch.setitem(sys.modules, portable, SimpleNamespace(PortableLloyd=fail))
    monkeypatch.setattr(point_arrays, "choose_backend", lambda device: backend)
    monkeypatch.setattr(point_arrays, "make_hopper_kernels", lambda points, state: None)
    blocks = TensorBlocks(torch.arange(20.0).reshape(10, 2))
    return CudaPointArrays(blocks, PointState(blocks.layout), lambda fold: None), tried


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
@pytest.mark.parametrize(("backend", "then"), [(TRITON, TORCH), (CUDA_CPP, CUDA_CPP)])
def test_kernels_in_triton_that_fail_are_tried_once(backend, then, failure, monkeypatch):
    arrays, tried = arrays_with(backend, failure, monkeypatch)
    with pytest.warns(RuntimeWarning, match="Triton cannot run") as caught:
        assert arrays.lloyd_kernels(3) is None
    assert str(failure) in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arrays.lloyd_kernels(3) is None
        assert arrays.lloyd_kernels(8) is None
    assert tried == [3]
    assert arrays.backend == then


def test_triton_that_is_not_installed_is_no_failure(monkeypatch):
    arrays, tried = arrays_with(CUDA_CPP, ModuleNotFoundError("No module: triton"), monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arrays.lloyd_kernels(3) is None
        assert arrays.lloyd_kernels(3) is None
    assert tried == [3]


def test_memory_that_ends_is_no_failure_of_triton(monkeypatch):
    arrays, tried = arrays_with(TRITON, torch.OutOfMemoryError(), monkeypatch)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 2**31))
    with pytest.warns(RuntimeWarning, match="does not fit into the memory"):
        assert arrays.lloyd_kernels(3) is None
    assert tried == [3, 3]
    assert arrays.backend == TRITON
