"""Rows that are streamed to a GPU: which block follows which, and fits that need it."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch

import lloydformer as lf
import lloydformer.data.streamed_blocks as streamed
import lloydformer.estimators.devices as devices
import lloydformer.estimators.source as source
from lloydformer.data.blocks import TensorBlocks, leaf_ranges
from lloydformer.data.streamed_blocks import next_range
from lloydformer.engines.cuda import map_host_rows

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


@pytest.mark.parametrize(("n", "leaf", "part"), [(10, 4, 4), (11, 4, 3), (5, 8, 2), (1, 4, 4)])
def test_blocks_follow_each_other_as_they_are_read(n, leaf, part):
    layout = TensorBlocks(torch.zeros(n, 1), leaf=leaf, part=part).layout
    read = [
        (start, min(start + part, stop))
        for first, stop in leaf_ranges(layout)
        for start in range(first, stop, part)
    ]
    assert [next_range(rows, layout) for rows in read] == [*read[1:], read[0]]


ALGORITHMS = [
    lambda **given: lf.KMeans(5, random_state=0, **given),
    lambda **given: lf.KMeans(5, random_state=0, init="k-means||", **given),
    lambda **given: lf.SoftKMeans(5, random_state=0, **given),
    lambda **given: lf.SphericalKMeans(5, random_state=0, **given),
    lambda **given: lf.TrimmedKMeans(5, random_state=0, **given),
    lambda **given: lf.RobustKMeans(5, random_state=0, **given),
    lambda **given: lf.RelocatingKMeans(5, random_state=0, **given),
]


def spied(monkeypatch):
    """The classes that send rows from now on."""
    found = set()

    class Spy(streamed._Stream):
        def __init__(self, points, layout, like, send):
            found.add(type(send).__name__)
            super().__init__(points, layout, like, send)

    monkeypatch.setattr(streamed, "_Stream", Spy)
    return found


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
            monkeypatch.setattr(source, "pin_rows", lambda points, device: None)
        ways = spied(monkeypatch)
        model = make(device="cuda").fit(X, sample_weight=weights)
        again = make(device="cuda").fit(X, sample_weight=weights)
        assert np.array_equal(model.cluster_centers_, again.cluster_centers_)
        assert np.array_equal(model.labels_, again.labels_)
        np.testing.assert_allclose(model.inertia_, whole.inertia_, rtol=1e-6)
        np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, atol=1e-4)
        assert np.mean(model.labels_ == whole.labels_) > 0.999
        assert ways == {"_PinnedCopier" if direct else "_StagedCopier"}
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
        monkeypatch.setattr(source, "move_to_device", lambda points, device: points)
        opened = []
        monkeypatch.setattr(
            devices,
            "map_host_rows",
            lambda *given: opened.append(map_host_rows(*given)) or opened[-1],
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
            (False, False, {"_StagedCopier"}),
            (True, False, {"_StagedCopier"}),
            (False, True, {"_PinnedCopier"}),
            (True, True, set()),
        ],
    )
    @pytest.mark.parametrize(
        "opened", [lambda path: np.load(path, mmap_mode="r"), lf.data.open_dataset]
    )
    def test_rows_of_a_file(
        self, copy_fits, may_be_locked, ways, opened, monkeypatch, tmp_path, rng
    ):
        X = rng.normal(size=(40_003, 8)).astype("float32")
        np.save(tmp_path / "x.npy", X)
        there = lf.KMeans(5, random_state=0, device="cuda").fit(X)
        found = spied(monkeypatch)
        monkeypatch.setattr(source, "move_to_device", lambda points, device: points)
        monkeypatch.setattr(devices, "free_memory", lambda device: copy_fits * len(X) * 112)
        monkeypatch.setattr(devices, "pinnable_memory", lambda: may_be_locked * X.nbytes)
        model = lf.KMeans(5, random_state=0, device="cuda").fit(opened(tmp_path / "x.npy"))
        assert found == ways
        np.testing.assert_allclose(model.inertia_, there.inertia_, rtol=1e-6)
        np.testing.assert_allclose(model.cluster_centers_, there.cluster_centers_, atol=1e-4)

    @pytest.mark.parametrize("mode", ["r+", "c"])
    def test_a_file_is_not_changed(self, mode, monkeypatch, tmp_path, rng):
        path = tmp_path / "x.npy"
        np.save(path, rng.normal(size=(40_003, 8)).astype("float32"))
        os.utime(path, (1, 1))
        mapped = np.load(path, mmap_mode=mode)
        monkeypatch.setattr(devices, "free_memory", lambda device: 0)
        ways = spied(monkeypatch)
        lf.KMeans(5, random_state=0, device="cuda").fit(mapped)
        mapped.flush()
        assert ways == {"_PinnedCopier"}
        assert path.stat().st_mtime == 1

    def test_two_fits_share_the_memory_of_their_rows(self, monkeypatch, rng):
        X = rng.normal(size=(200_003, 8)).astype("float32")
        monkeypatch.setattr(devices, "free_memory", lambda device: 0)
        make = partial(lf.KMeans, 5, random_state=0, device="cuda")
        want = make().fit(X)
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: make().fit(X), range(9)))
        assert all(np.array_equal(want.cluster_centers_, f.cluster_centers_) for f in found)

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
