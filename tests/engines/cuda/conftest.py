"""Kernels in Triton run in its interpreter, unless there is a GPU."""

from importlib.util import find_spec

import pytest

if find_spec("triton") is not None:
    import triton_interpreter

    if triton_interpreter.DEVICE == "cpu":
        triton_interpreter.repair()


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """A folder for kernels that are compiled for the CPU: once for all tests."""
    return tmp_path_factory.mktemp("kernels")
