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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("far", [1e3, 1e5])
def test_an_outlier_does_not_coarsen_the_sums(far):
    x = mixture(5000, 8, 4, torch.float64)
    x[17] = far
    same(x, x[:4].clone(), max_iter=10)


def with_heavy_tails(n, d, spread, seed=0):
    """Rows of a normal distribution, each times another number."""
    drawn = torch.Generator().manual_seed(seed)
    factors = torch.exp(spread * torch.randn(n, 1, generator=drawn, dtype=torch.float64))
    return (torch.randn(n, d, generator=drawn, dtype=torch.float64) * factors).float()


@pytest.mark.parametrize("spread", [1.0, 3.0])
@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_heavy_tails_are_fitted_as_on_the_cpu(n, d, k, spread):
    x = with_heavy_tails(n, d, spread)
    same(x, x[:k].clone(), max_iter=5, tol=0)


@pytest.mark.parametrize("kernels", ["C++", "Triton"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0, 5.0])
@pytest.mark.parametrize(("n", "d", "k"), [*SIZES, (2000, 256, 1100)])
def test_labels_of_heavy_tails_are_exact(n, d, k, spread, kernels):
    """With rows between two centers, centers that are nearly equal, and one that is there twice."""
    from lloydformer.engines.cuda.hopper_lloyd import make_hopper_kernels
    from lloydformer.engines.cuda.lloyd_state import LloydState
    from lloydformer.engines.cuda.points import DevicePoints

    x = with_heavy_tails(n, d, spread).cuda()
    centers = x[:k].clone()
    half = k // 2
    centers[half:] = centers[: k - half] * (1 + 1e-6 * torch.randn_like(centers[half:]))
    centers[-1] = centers[0]
    pairs = torch.randint(k, (2, n // 4), device="cuda")
    x[-(n // 4) :] = (centers[pairs[0]] + centers[pairs[1]]) / 2
    x[-1] = 0
    points = DevicePoints(x, torch.zeros(d, device="cuda"), None, float(x.abs().max()))
    state = LloydState(points, k)
    if kernels == "C++":
        lloyd = make_hopper_kernels(points, state)
        if lloyd is None:
            pytest.skip("no kernel in CUDA C++ for this size")
    else:
        pytest.importorskip("triton")
        from lloydformer.engines.cuda.portable.lloyd import PortableLloyd

        lloyd = PortableLloyd(points, state)
    lloyd.begin(centers.double(), 0.0)
    lloyd.assign()
    labels, wrong = state.assigned.long(), 0
    for rows, own in zip(x.double().split(200), labels.split(200), strict=True):
        squares = (rows[:, None] - centers.double()).square().sum(dim=2)
        most = squares.amin(dim=1) * (1 + 4 * d * torch.finfo(torch.float64).eps)
        wrong += int((squares.gather(1, own[:, None])[:, 0] > most).sum())
    assert wrong == 0
    assert not (labels == k - 1).any()  # of equal centers the first one


@pytest.mark.parametrize("far", [3e3, 3e5, 3e7])
def test_a_far_row_costs_the_others_of_a_batch_no_digits(far):
    x = torch.cat([mixture(50, 2, 1), mixture(50, 2, 1, seed=1) + 50, torch.full((1, 2), far)])
    found = lf.fit_batch(x[None].cuda(), n_clusters=3, init=x[None, [0, 50, 100]].cuda())
    means = torch.stack([x[:50].double().mean(0), x[50:100].double().mean(0)])
    torch.testing.assert_close(found.centers[0, :2].cpu().double(), means, rtol=0, atol=1e-4)


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
