"""The kernels in CUDA C++ compile for Hopper; that needs NVRTC, and no GPU."""

import ctypes
from importlib.metadata import PackageNotFoundError, files

import pytest

import lloydformer.engines.cuda.nvrtc as nvrtc

KERNELS = {
    "prepare.cu": [{"VECTOR": 1}, {"REAL": "double", "SCALED_DOUBLE": 1, "WEIGHTED": 1}],
    "loop_control.cu": [{"REAL": "double", "WEIGHTED": 1}],
    "measure.cu": [{"ROW": 4, "LANES": 1}],
    "tiny.cu": [{"DIM": 2, "K": 5}],
    "small.cu": [{"D": 32, "K": 8, "WEIGHTED": 1}],
    "assign.cu": [{"D": 64, "N": 104, "GROUPS": 4}],
    "update.cu": [
        {"D": 64, "VECTOR": 1, "TOGETHER": 16},
        {"D": 256, "REAL": "double", "WEIGHTED": 1},
    ],
    "seeds.cu": [{"D": 32, "LANES": 8, "STARTS": 10}, {"D": 4, "LANES": 1, "REAL": "double"}],
    "batch.cu": [{"D": 8, "K": 3}],
    "soft.cu": [{"D": 32, "CHUNK": 10}, {"D": 256, "CHUNK": 4, "REAL": "double", "WEIGHTED": 1}],
    "trimmed_robust.cu": [{"D": 32}, {"D": 256, "WARPS": 1, "REAL": "double", "WEIGHTED": 1}],
    "reduce.cu": [{}],
    "move_centers.cu": [{}, {"REAL": "double"}],
    "group_sums.cu": [{"D": 32, "VECTOR": 1}, {"D": 256, "REAL": "double", "WEIGHTED": 1}],
    "two_nearest.cu": [
        {"ROW": 32, "LANES": 8, "VECTOR": 1},
        {"ROW": 256, "LANES": 16, "REAL": "double", "WEIGHTED": 1},
    ],
    "oversample.cu": [{"ROW": 64, "VECTOR": 1}, {"REAL": "double", "WEIGHTED": 1}],
    "gumbel_draws.cu": [
        {"ROW": 4, "LANES": 1, "WEIGHTED": 1},
        {"ROW": 256, "LANES": 16, "REAL": "double"},
    ],
}
"""For each file, macros that stand for the others."""


@pytest.fixture(scope="module")
def library():
    """NVRTC from its wheel."""
    try:
        found = files("nvidia-cuda-nvrtc") or []
    except PackageNotFoundError:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    (path,) = (f.locate() for f in found if f.name.startswith("libnvrtc.so"))
    return ctypes.CDLL(str(path))


def test_every_kernel_file_is_compiled_here():
    names = {path.name for path in nvrtc._SOURCES.glob("*.cu")}
    assert names == set(KERNELS)


@pytest.mark.parametrize(
    ("file", "macros"), [(file, macros) for file, all_ in KERNELS.items() for macros in all_]
)
def test_it_compiles_for_hopper(file, macros, library, monkeypatch, tmp_path):
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: library)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    constants = tuple(macros.items())
    text = nvrtc.read_source(file, constants)
    code = nvrtc.compile_source(text, "90a", constants)
    assert code.startswith(b"\x7fELF")
    kept = list(tmp_path.rglob("*.cubin"))
    assert [path.read_bytes() for path in kept] == [code]
    monkeypatch.setattr(nvrtc, "_run_compiler", lambda text, options: pytest.fail("compiled again"))
    assert nvrtc.compile_source(text, "90a", constants) == code


def test_an_error_of_the_compiler_is_told(library, monkeypatch, tmp_path):
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: library)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(nvrtc.CompileError, match="nonsense"):
        nvrtc.compile_source("nonsense;", "90a", ())
    assert not list(tmp_path.rglob("*.cubin"))
