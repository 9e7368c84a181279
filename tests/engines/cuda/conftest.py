"""Kernels in Triton run in its interpreter, unless there is a GPU."""

from importlib.util import find_spec

if find_spec("triton") is not None:
    import triton_interpreter

    if triton_interpreter.DEVICE == "cpu":
        triton_interpreter.repair()
