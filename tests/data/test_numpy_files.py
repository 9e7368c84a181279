"""NPY and NPZ files: read as NumPy does, and refused before they fill the memory."""

import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import lloydformer as lf
from lloydformer.data import mapped_files, numpy_files
from lloydformer.data.numpy_files import map_npy, read_npz

KINDS = st.sampled_from(["f8", ">f8", "f4", "i4", "u1", "?", "f2"])
ARRAYS = arrays.arrays(KINDS, arrays.array_shapes(min_dims=2, max_dims=2, max_side=9))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("npz") / "p.npz"


@given(array=ARRAYS, order=st.sampled_from("CF"), packed=st.booleans())
def test_arrays_are_read_as_numpy_reads_them(path, array, order, packed):
    save = np.savez_compressed if packed else np.savez
    save(path, other=np.arange(3), X=np.asarray(array, order=order))
    found = read_npz(path)
    with np.load(path) as archive:
        same = archive["X"]
    assert (found.dtype, found.strides) == (same.dtype, same.strides)
    np.testing.assert_array_equal(found, same)


def test_the_only_array_with_two_axes_is_taken(tmp_path):
    np.savez(tmp_path / "p.npz", y=np.arange(4), points=np.ones((4, 2)))
    assert read_npz(tmp_path / "p.npz").shape == (4, 2)
    np.savez(tmp_path / "q.npz", a=np.ones((4, 2)), b=np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"q.npz: .*holds \['a', 'b'\], and none .* called X"):
        read_npz(tmp_path / "q.npz")


def test_large_arrays_are_unpacked_to_a_scratch_file(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", 500)
    monkeypatch.setattr(numpy_files, "_CHUNK", 100)
    X = np.random.default_rng(0).normal(size=(50, 3))
    np.savez_compressed(tmp_path / "p.npz", X=X)
    found = lf.data.open_dataset(tmp_path / "p.npz")
    assert found.mapped
    np.testing.assert_array_equal(found.points, X)


def header(shape, version=(1, 0), length=None, dtype="<f8"):
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    kind = "<H" if version == (1, 0) else "<I"
    return b"\x93NUMPY" + bytes(version) + struct.pack(kind, length or len(text)) + text


def written(path, content, compression=zipfile.ZIP_DEFLATED):
    if path.suffix == ".npy":
        path.write_bytes(content)
        return path
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("X.npy", content)
    return path


WRONG = {
    "a shape beyond the memory": (header((2**40, 2)) + bytes(64), "declares the shape .1099511"),
    "a shape beyond 64 bits": (header((2**70, 2)) + bytes(64), "declares the shape .118059"),
    "texts without a letter": (header((2**40, 2), dtype="<U0") + bytes(64), "of 0 bytes"),
    "a header beyond the memory": (header((4, 2), (2, 0), 2**32 - 1) + bytes(64), "header"),
    "cut": (header((4, 2)) + bytes(63), "declares the shape .4, 2., which takes .* and holds"),
    "a negative shape": (header((4, -2)) + bytes(64), "declares the shape .4, -2"),
    "a damaged header": (header("(4, 2") + bytes(64), "its header is damaged"),
    "another version": (header((4, 2), (9, 0)) + bytes(64), "version"),
    "no array": (b"text", "magic string"),
}


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize("fault", WRONG)
def test_what_a_file_declares_is_compared_with_its_size(tmp_path, fault, ending):
    content, words = WRONG[fault]
    path = written(tmp_path / f"p.{ending}", content)
    with pytest.raises(ValueError, match=rf"p.{ending}: not a readable .{ending} file .*{words}"):
        (map_npy if ending == "npy" else read_npz)(path)


def test_objects_are_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.array([[{}]]), allow_pickle=True)
    np.savez(tmp_path / "p.npz", X=np.array([[{}]]))
    for read, name in ((map_npy, "p.npy"), (read_npz, "p.npz")):
        with pytest.raises(ValueError, match=r"it holds Python objects; points are numbers"):
            read(tmp_path / name)


def test_a_small_file_that_unpacks_to_a_large_array_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(numpy_files, "_SUSPICIOUS", 1 << 20)
    bomb = written(tmp_path / "bomb.npz", header((1 << 17, 2)) + bytes(1 << 21))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"bomb.npz: .*unpacks to 2,09.*; if .* save .* as .npy"):
        read_npz(bomb)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    noise = np.random.default_rng(0).normal(size=(1 << 17, 2))
    np.savez_compressed(tmp_path / "p.npz", X=noise)
    assert read_npz(tmp_path / "p.npz").shape == noise.shape


@pytest.mark.parametrize("rows", [4, 2500])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_wrong_check_sum_is_refused(tmp_path, monkeypatch, compression, rows):
    monkeypatch.setattr(numpy_files, "_CHUNK", 1000)
    content = header((rows, 2)) + np.linspace(0, 1, 2 * rows).tobytes()
    path = written(tmp_path / "p.npz", content, compression)
    right = struct.pack("<I", zlib.crc32(content))
    path.write_bytes(path.read_bytes().replace(right, bytes(4)))
    with pytest.raises(ValueError, match=r"p.npz: not a readable .npz file \(Bad CRC-32"):
        read_npz(path)
