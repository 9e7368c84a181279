"""With a compiler, the kernels were built: a failed build must not go unnoticed."""

import shutil

import pytest

from lloydformer.engines import instruction_set

COMPILERS = ("c++", "g++", "clang++")


def test_kernels_were_built():
    if not any(map(shutil.which, COMPILERS)):
        pytest.skip("no C++ compiler here: the native engine is optional")
    assert instruction_set() is not None
