"""Fits by the kernels of a GPU beside those of the chunked engine on the CPU."""

import numpy as np
import pytest
import torch

import lloydformer as lf

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]

SIZES = [(3000, 2, 5), (2001, 32, 10), (2500, 64, 16), (4003, 64, 100), (3000, 128, 600)]
"""One for each family of kernels; the last one has two parts of centers."""


def mixture(n, d, k, dtype=torch.float32, seed=0):
    drawn = torch.Generator().manual_seed(seed)
    means = 6 * torch.rand(k, d, generator=drawn, dtype=torch.float64) - 3
    own = torch.randint(k, (n,), generator=drawn)
    noise = torch.randn(n, d, generator=drawn, dtype=torch.float64)
    return (means[own] + noise).to(dtype)


def fitted(x, start, device, **given):
    weights = given.pop("sample_weight", None)
    model = lf.KMeans(len(start), init=start.to(device), n_init=1, **given)
    return model.fit(x.to(device), sample_weight=weights)


def same(x, start, **given):
    """Fit on both; centers, labels, history and number of iterations agree."""
    here, there = (fitted(x, start, device, **given) for device in ("cpu", "cuda"))
    spread = x.double().std().item()
    found = there.cluster_centers_.cpu().double()
    assert (found - here.cluster_centers_.double()).abs().max() < 1e-6 * spread
    assert torch.equal(there.labels_.cpu(), here.labels_)
    assert there.n_iter_ == here.n_iter_
    lost = 1e-12 * here.objective_history_.max()  # digits of the sum that it is computed from
    np.testing.assert_allclose(
        there.objective_history_, here.objective_history_, rtol=1e-6, atol=lost
    )
    np.testing.assert_allclose(there.inertia_, here.inertia_, rtol=1e-6)
    return there


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("empty", [0, 1, 3, 40])
@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_empty_clusters_are_filled_as_on_the_cpu(n, d, k, empty, dtype):
    x = mixture(n, d, k, dtype)
    start = x[:k].clone()
    empty = min(empty, k - 2)
    start[k - empty :] = start[0]  # of equal centers the first one gets the points
    same(x, start, max_iter=4, tol=0)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_empty_clusters_with_weights(n, d, k):
    x = mixture(n, d, k)
    start = x[:k].clone()
    start[-1] = start[1]
    weights = np.random.RandomState(0).randint(0, 4, n).astype(np.float64)
    weights[:k] = 1
    same(x, start, max_iter=4, tol=0, sample_weight=weights)


@pytest.mark.parametrize("max_iter", [1, 2, 19, 20, 21, 64, 300])
@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_it_ends_as_on_the_cpu(n, d, k, max_iter):
    x = mixture(n, d, k)
    model = same(x, x[:k].clone(), max_iter=max_iter)
    assert torch.equal(model.predict(x.cuda()), model.labels_)
    assert -model.score(x.cuda()) == pytest.approx(model.inertia_, rel=1e-12)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_later_starts_leave_the_labels_of_the_best_one_alone(n, d, k):
    x = mixture(n, d, k).cuda()
    model = lf.KMeans(k, init="random", n_init=5, random_state=0, max_iter=5).fit(x)
    assert torch.equal(model.predict(x), model.labels_)
    again = lf.KMeans(k, init="random", n_init=5, random_state=0, max_iter=5).fit(x)
    assert torch.equal(again.labels_, model.labels_)
    assert torch.equal(again.cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize("n", [1, 2, 5, 31, 40, 300, 5000])
@pytest.mark.parametrize("d", [1, 3, 32, 257])
def test_a_survey_finds_what_numpy_finds(n, d):
    from lloydformer.engines.cuda.survey import survey_rows

    x = mixture(n, d, 4) + 100
    found, rows = survey_rows(x.cuda()), x.double().numpy()
    np.testing.assert_array_equal(found.ends, [x.numpy().min(axis=0), x.numpy().max(axis=0)])
    np.testing.assert_allclose(found.sums, (rows - rows[0]).sum(axis=0), rtol=1e-9, atol=1e-9)
    sample = np.abs(rows[:: max(1, n // 256)][:256] - (rows.min(axis=0) + rows.max(axis=0)) / 2)
    groups = [part.mean() for part in np.split(sample, range(32, len(sample), 32))]
    assert found.typical == pytest.approx(np.sort(groups)[len(groups) // 2], rel=1e-9)


@pytest.mark.parametrize("far", [1e3, 1e5])
def test_an_outlier_does_not_coarsen_the_sums(far):
    x = mixture(5000, 8, 4, torch.float64)
    x[17] = far
    same(x, x[:4].clone(), max_iter=10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(5000, 2, 5), (7001, 32, 10), (3000, 100, 40), (50, 3, 40)]
)
def test_seeds_of_several_starts(n, d, k, weighted):
    """The draws of the chunked engine, and what each start finds alone."""
    from lloydformer.data.blocks import TensorBlocks
    from lloydformer.engines.chunked import Chunked
    from lloydformer.engines.cuda.engine import Cuda
    from lloydformer.solving.seeding import seeds_of_starts

    x = mixture(n, d, 5, torch.float64)
    weights = torch.from_numpy(np.random.RandomState(1).randint(0, 3, n).astype(float))
    if n == 50:
        x = x.round()  # fewer different points than seeds
    found = []
    for engine, device in ((Chunked(), "cpu"), (Cuda(), "cuda")):
        blocks = TensorBlocks(x.to(device), weights.to(device) if weighted else None)
        with engine.open(blocks) as session:
            rows = list(seeds_of_starts(session, k, np.random.RandomState(0), 7))
            found.append([x[seeds.cpu()] for seeds in rows])
    for here, there in zip(*found, strict=True):
        assert torch.equal(here, there)


def test_what_does_not_compile_runs_in_triton(monkeypatch):
    from lloydformer.engines.cuda import nvrtc

    pytest.importorskip("triton")
    compiled = nvrtc.compile_source

    def refuses(text, architecture, constants):
        if "recheck" in text:
            raise nvrtc.CompileError("no")
        return compiled(text, architecture, constants)

    def forget():
        nvrtc._load_module.cache_clear()
        nvrtc.load_kernel.cache_clear()
        nvrtc._granted.clear()

    monkeypatch.setattr(nvrtc, "compile_source", refuses)
    forget()
    x = mixture(3000, 150, 40)
    with pytest.warns(RuntimeWarning, match="cannot be compiled"):
        same(x, x[:40].clone(), max_iter=5, tol=0)
    forget()
