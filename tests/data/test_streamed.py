"""Rows that are streamed to a GPU: which block follows which, and fits that need it."""

import gc

import numpy as np
import pytest
import torch

import lloydformer as lf
import lloydformer.data.host_memory as host_memory
import lloydformer.data.streamed as streamed
import lloydformer.estimators.devices as devices
import lloydformer.estimators.source as source
from lloydformer.data.blocks import TensorBlocks, ranges
from lloydformer.data.streamed import following
from lloydformer.engines.cuda import rows_on_host

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


@pytest.mark.parametrize(("n", "leaf", "part"), [(10, 4, 4), (11, 4, 3), (5, 8, 2), (1, 4, 4)])
def test_blocks_follow_each_other_as_they_are_read(n, leaf, part):
    layout = TensorBlocks(torch.zeros(n, 1), leaf=leaf, part=part).layout
    read = [
        (start, min(start + part, stop))
        for first, stop in ranges(layout)
        for start in range(first, stop, part)
    ]
    assert [following(rows, layout) for rows in read] == [*read[1:], read[0]]


ALGORITHMS = [
    lambda **given: lf.KMeans(5, random_state=0, **given),
    lambda **given: lf.KMeans(5, random_state=0, init="k-means||", **given),
    lambda **given: lf.SoftKMeans(5, random_state=0, **given),
    lambda **given: lf.SphericalKMeans(5, random_state=0, **given),
    lambda **given: lf.TrimmedKMeans(5, random_state=0, **given),
    lambda **given: lf.RobustKMeans(5, random_state=0, **given),
    lambda **given: lf.RelocatingKMeans(5, random_state=0, **given),
]


def test_mapped_arrays_are_known(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert devices.is_mapped(mapped)
    assert devices.is_mapped(np.asarray(mapped)[1:])
    assert not devices.is_mapped(np.zeros(3)[1:])
    assert not devices.is_mapped([1.0])


class TestMemoryThatMayBeLocked:
    def known(self, folder, monkeypatch, known, *limits):
        paths = [folder / str(number) for number in range(len(limits))]
        for path, limit in zip(paths, limits, strict=True):
            path.write_text(limit)
        (folder / "meminfo").write_text(known)
        monkeypatch.setattr(host_memory, "_KNOWN", folder / "meminfo")
        monkeypatch.setattr(host_memory, "_LIMITS", paths)
        return host_memory.lockable_memory()

    def test_half_of_what_is_left(self, tmp_path, monkeypatch):
        found = self.known(tmp_path, monkeypatch, "MemTotal: 900 kB\nMemAvailable:   600 kB\n")
        assert found == 300 * 1024

    @pytest.mark.parametrize(("limit", "half"), [("max\n", 300 * 1024), ("4096\n", 2048)])
    def test_containers_have_limits(self, limit, half, tmp_path, monkeypatch):
        assert self.known(tmp_path, monkeypatch, "MemAvailable: 600 kB", limit) == half

    def test_none_where_nothing_is_known(self, tmp_path, monkeypatch):
        assert self.known(tmp_path, monkeypatch, "") == 0
        monkeypatch.setattr(host_memory, "_KNOWN", tmp_path / "nowhere")
        assert host_memory.lockable_memory() == 0

    def test_only_files_need_it(self, monkeypatch):
        monkeypatch.setattr(devices, "lockable_memory", lambda: 31)
        points = torch.zeros(4, 2)
        assert devices.can_be_pinned(points, mapped=False)
        assert not devices.can_be_pinned(points, mapped=True)
        assert devices.can_be_pinned(points[:3], mapped=True)


class TestOnGpu:
    pytestmark = on_gpu

    @pytest.mark.parametrize("make", ALGORITHMS)
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("direct", [False, True])
    def test_fits_are_those_of_rows_that_fit(self, make, weighted, direct, monkeypatch, rng):
        X = (rng.normal(size=(5003, 6)) + 4 * rng.integers(0, 3, size=(5003, 1))).astype("float32")
        weights = rng.integers(0, 3, size=5003) if weighted else None
        whole = make(device="cuda", engine="chunked").fit(X, sample_weight=weights)
        monkeypatch.setattr(devices, "free_memory", lambda device: 0)
        monkeypatch.setattr(streamed, "_BLOCK", 700 * 6 * 4)
        if not direct:
            monkeypatch.setattr(source, "pinned", lambda points, device: None)
        model = make(device="cuda").fit(X, sample_weight=weights)
        again = make(device="cuda").fit(X, sample_weight=weights)
        assert np.array_equal(model.cluster_centers_, again.cluster_centers_)
        assert np.array_equal(model.labels_, again.labels_)
        np.testing.assert_allclose(model.inertia_, whole.inertia_, rtol=1e-6)
        np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, atol=1e-4)
        assert np.mean(model.labels_ == whole.labels_) > 0.999
        assert np.array_equal(model.predict(X), whole.predict(X))

    @pytest.mark.parametrize("make", ALGORITHMS)
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("writeable", [False, True])
    def test_rows_stay_on_the_host_if_their_copy_fits(
        self, make, weighted, writeable, monkeypatch, rng
    ):
        X = (rng.normal(size=(5003, 6)) + 4 * rng.integers(0, 3, size=(5003, 1))).astype("float32")
        X.flags.writeable = writeable
        weights = rng.integers(0, 3, size=5003) if weighted else None
        whole = make(device="cuda").fit(X, sample_weight=weights)
        monkeypatch.setattr(devices, "free_memory", lambda device: 5003 * (64 + 48))
        monkeypatch.setattr(source, "moved", lambda points, device: points)
        opened = []
        monkeypatch.setattr(
            devices,
            "rows_on_host",
            lambda *given: opened.append(rows_on_host(*given)) or opened[-1],
        )
        model = make(device="cuda").fit(X, sample_weight=weights)
        assert np.array_equal(model.cluster_centers_, whole.cluster_centers_) or not opened
        assert np.array_equal(model.labels_, whole.labels_)
        assert bool(opened) == (not isinstance(model, lf.SphericalKMeans))
        assert all(rows is not None for rows in opened)
        opened.clear()
        gc.collect()
        model = make(device="cuda").fit(X, sample_weight=weights)  # it can be registered again
        assert all(rows is not None for rows in opened)

    @pytest.mark.parametrize(
        ("copy_fits", "may_be_locked", "ways"),
        [
            (False, False, {"_Through"}),
            (True, False, {"_Through"}),
            (False, True, {"_Direct"}),
            (True, True, set()),
        ],
    )
    @pytest.mark.parametrize("opened", [lambda path: np.load(path, mmap_mode="r"), lf.data.open])
    def test_rows_of_a_file(
        self, copy_fits, may_be_locked, ways, opened, monkeypatch, tmp_path, rng
    ):
        X = rng.normal(size=(40_003, 8)).astype("float32")
        np.save(tmp_path / "x.npy", X)
        there = lf.KMeans(5, random_state=0, device="cuda").fit(X)
        found = set()

        class Spy(streamed._Stream):
            def __init__(self, points, layout, like, send):
                found.add(type(send).__name__)
                super().__init__(points, layout, like, send)

        monkeypatch.setattr(streamed, "_Stream", Spy)
        monkeypatch.setattr(source, "moved", lambda points, device: points)
        monkeypatch.setattr(devices, "free_memory", lambda device: copy_fits * len(X) * 112)
        monkeypatch.setattr(devices, "lockable_memory", lambda: may_be_locked * X.nbytes)
        model = lf.KMeans(5, random_state=0, device="cuda").fit(opened(tmp_path / "x.npy"))
        assert found == ways
        np.testing.assert_allclose(model.inertia_, there.inertia_, rtol=1e-6)
        np.testing.assert_allclose(model.cluster_centers_, there.cluster_centers_, atol=1e-4)

    def test_a_limit_on_memory_makes_rows_stream(self, rng):
        X = rng.normal(size=(6_000_000, 32)).astype("float32")  # 732 MiB
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.empty_cache()
        try:
            torch.cuda.set_per_process_memory_fraction(900 * 2**20 / total)
            model = lf.KMeans(4, init=X[:4], max_iter=3, device="cuda").fit(X)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        here = lf.KMeans(4, init=X[:4], max_iter=3).fit(X)
        np.testing.assert_allclose(model.cluster_centers_, here.cluster_centers_, atol=1e-5)

    def test_nan_is_refused_without_a_copy(self, monkeypatch):
        X = np.ones((100, 2), dtype="float32")
        X[7, 1] = np.nan
        monkeypatch.setattr(devices, "free_memory", lambda device: 0)
        with pytest.raises(ValueError, match="NaN"):
            lf.KMeans(2, device="cuda").fit(X)
