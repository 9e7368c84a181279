"""Mapped data: never copied as a whole, and prefetched."""

import mmap

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data import mapped_files
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.mapped_files import prefetch_rows
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.state import PointState
from lloydformer.plans.assign import Moments

X = np.random.default_rng(0).normal(size=(70_000, 3)) * [1.0, 10.0, 100.0] + 5


@pytest.fixture
def tiny_memory(monkeypatch):
    """Arrays above 500 bytes go to scratch files."""
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", 500)


def is_mapped(tensor: torch.Tensor) -> bool:
    """Tell whether the tensor lies in a mapping of a file, by /proc/self/maps."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            first, last = (int(end, 16) for end in line.split()[0].split("-"))
            if first <= tensor.data_ptr() < last:
                return int(line.split()[4]) != 0  # the inode
    raise LookupError("the tensor is in no mapping")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_files_stay_mapped(tmp_path, order, dtype):
    np.save(tmp_path / "p.npy", np.asarray(X, dtype=dtype, order=order))
    blocks = lf.data.open_dataset(tmp_path / "p.npy")
    assert blocks.mapped
    assert is_mapped(blocks.points)
    model = lf.KMeans(4, max_iter=5, random_state=0).fit(blocks)
    alone = lf.KMeans(4, max_iter=5, random_state=0).fit(X.astype(dtype))
    np.testing.assert_allclose(model.cluster_centers_, alone.cluster_centers_, rtol=1e-5)


@pytest.mark.parametrize("columns", [None, ["3", "1"]])
def test_columns_and_integers_are_copied_to_a_scratch_file(tmp_path, tiny_memory, columns):
    whole = X.astype(np.int32)
    np.save(tmp_path / "p.npy", whole)
    blocks = lf.data.open_dataset(tmp_path / "p.npy", columns=columns)
    assert blocks.mapped
    assert is_mapped(blocks.points)
    expected = whole if columns is None else whole[:, [2, 0]]
    np.testing.assert_array_equal(blocks.points, expected.astype(np.float64))


def test_small_arrays_stay_in_memory(tmp_path):
    np.save(tmp_path / "p.npy", X[:10].astype(np.int32))
    assert not lf.data.open_dataset(tmp_path / "p.npy").mapped


def test_large_states_are_mapped_and_change_nothing(tiny_memory):
    state = PointState(TensorBlocks(torch.tensor(X)).layout)
    assert all(is_mapped(state.column(name)) for name in ("labels", "previous", "distances"))
    assert state.column("labels").unique().tolist() == [-1]
    mapped = lf.TrimmedKMeans(3, n_init=2, max_iter=4, random_state=0).fit(X)
    assert is_mapped(torch.from_numpy(mapped.labels_))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped_files, "_IN_MEMORY", 1 << 28)
        held = lf.TrimmedKMeans(3, n_init=2, max_iter=4, random_state=0).fit(X)
    np.testing.assert_array_equal(mapped.labels_, held.labels_)
    np.testing.assert_array_equal(mapped.cluster_centers_, held.cluster_centers_)
    np.testing.assert_array_equal(mapped.predict(X), held.predict(X))


def test_a_full_disk_is_reported_before_writing(tiny_memory, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped_files.os, "posix_fallocate", full)
    with pytest.raises(ValueError, match=r"no room for a scratch file of .* MB.*set TMPDIR"):
        PointState(TensorBlocks(torch.tensor(X)).layout).column("labels")


def test_leaves_are_prefetched_in_a_thread_each_once(tmp_path, monkeypatch):
    np.save(tmp_path / "p.npy", X)
    points = lf.data.open_dataset(tmp_path / "p.npy").points
    asked = []
    monkeypatch.setattr(TensorBlocks, "prefetch", lambda self, *rows: asked.append(rows))
    for mapped, n_threads in ((True, 1), (True, 2), (False, 2)):
        data = TensorBlocks(points, leaf=1000, mapped=mapped)
        asked.clear()
        with Chunked(n_threads).open(data) as session:
            session.fold(Moments())
        expected = [(i, min(i + 4000, 70_000)) for i in range(8000, 70_000, 4000)]
        assert asked == (expected if mapped else [])


@pytest.mark.skipif(not hasattr(mmap, "MADV_WILLNEED"), reason="needs madvise")
@pytest.mark.parametrize("order", ["C", "F"])
def test_exactly_the_given_rows_are_prefetched(tmp_path, monkeypatch, order):
    np.save(tmp_path / "p.npy", np.asarray(X, order=order))
    points, calls = lf.data.open_dataset(tmp_path / "p.npy").points, []
    monkeypatch.setattr(mapped_files, "_advise", lambda *span: calls.append(span))
    prefetch_rows(points[1000:3000])
    ends = [(points[1000, j].data_ptr(), points[2999, j].data_ptr() + 8) for j in range(3)]
    if order == "C":
        ends = [(ends[0][0], ends[-1][1])]
    assert calls == [(first, last - first) for first, last in ends]


def test_prefetch_of_memory_without_a_file_does_nothing():
    points = torch.tensor(X)
    prefetch_rows(points)
    prefetch_rows(points[:0])
    assert torch.equal(points, torch.tensor(X))
