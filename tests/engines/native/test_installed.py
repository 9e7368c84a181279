"""With a compiler, the kernels were built: a failed build must not go unnoticed."""

import shutil
import sys
from importlib.util import find_spec, module_from_spec

import pytest

from lloydformer.engines import instruction_set, native

COMPILERS = ("c++", "g++", "clang++")


def test_kernels_were_built():
    if not any(map(shutil.which, COMPILERS)):
        pytest.skip("no C++ compiler here: the native engine is optional")
    assert instruction_set() is not None


def test_the_error_keeps_why_the_kernels_cannot_be_imported(monkeypatch):
    # A copy of the module, imported while the import of the kernels fails.
    monkeypatch.delattr(native, "_kernels", raising=False)
    monkeypatch.setitem(sys.modules, "lloydformer.engines.native._kernels", None)
    spec = find_spec("lloydformer.engines.native.installed")
    installed = module_from_spec(spec)
    spec.loader.exec_module(installed)
    assert installed.instruction_set() is None
    with pytest.raises(ValueError, match="which was not built here") as caught:
        installed.kernels()
    assert isinstance(caught.value.__cause__, ImportError)
