"""The GPU kernel for many problems, also run on the CPU thread by thread: rules and exact sums."""

from functools import partial

import numpy as np
import pytest
import torch
from cuda_on_cpu import need_compiler, need_gpu, same_bits, solve_batch_on_cpu

import lloydformer as lf
from lloydformer.engines.cuda.batch import (
    BatchSolution,
    count_shared_bytes,
    pad_width,
    solve_batch,
)
from lloydformer.numerics.checks import allowed_spans
from lloydformer.plans.lower import lower
from lloydformer.solving.batch.by_tensors import ByTensors
from lloydformer.solving.rules import Rules

K = 5


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def solve(request, libraries):
    """The kernel, run on the CPU and on a GPU."""
    if request.param == "cpu":
        need_compiler()
        return partial(solve_batch_on_cpu, libraries)
    need_gpu()

    def on_gpu(x, starts, *given, backwards=False):
        solved = solve_batch(x.to("cuda:0"), starts.to("cuda:0"), *given)
        return None if solved is None else BatchSolution(*(tensor.cpu() for tensor in solved))

    return on_gpu


def mixture(rng, n, d, k):
    middles, own = rng.uniform(-3, 3, size=(3, k, d)), rng.integers(k, size=(3, n))
    return middles[np.arange(3)[:, None], own] + rng.normal(size=(3, n, d))


def problems(name, rng):
    """Points (b, n, d) and starts."""
    d, k = (32, 10) if name == "32 features" else (3, K)
    x = mixture(rng, K if name == "as many points as centers" else 77, d, k)
    x = torch.from_numpy(x + (1e4 if name == "far from zero" else 0)).float()
    starts = x[:, :k].clone()
    if name == "empty clusters":
        starts[:, 1:4] = starts[:, :1] + torch.tensor([0.0, 50.0, 60.0])[:, None]
    if name == "farthest points at the same distance":
        x[:, 10:14] = 20 * torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 1, 0]])
        starts[:, :1], starts[:, 3:] = 0, 100
    return x, starts


def run(solve, x, starts, rules):
    """Solve the problems twice, with threads in another order, and compare all bits."""
    spans = allowed_spans(x.dtype, x.shape[2], x.shape[1])
    given = (rules.tol, rules.max_iter, spans)
    found, again = solve(x, starts, *given), solve(x, starts.double(), *given, backwards=True)
    assert (found is None) == (again is None)
    assert found is None or same_bits(found, again)
    return found


NAMES = [
    "mixture", "32 features", "empty clusters", "farthest points at the same distance",
    "far from zero", "as many points as centers",
]  # fmt: skip
RULES = {"once": Rules(1, 0.0), "labels": Rules(20, 0.0), "shift": Rules(300, 1e-2)}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_follows_the_rules(solve, rng, name, rules):
    x, starts = problems(name, rng)
    found = run(solve, x, starts, rules)
    ones, seeds = torch.ones(x.shape[:2]).double(), torch.zeros(len(x), dtype=torch.int64)
    by_tensors = ByTensors(
        lower(lf.recipes.lloyd()), x, ones, rules, np.random.RandomState(0), seeds
    )
    true = by_tensors.from_array(starts)
    torch.testing.assert_close(found.labels.long(), true.labels, rtol=0, atol=0)
    torch.testing.assert_close(found.n_iter, true.n_iter, rtol=0, atol=0)
    torch.testing.assert_close(found.centers, true.centers, rtol=0, atol=2e-7 * float(x.std()))
    torch.testing.assert_close(found.inertia, true.inertia, rtol=1e-7, atol=1e-12)


def whole_numbers(rng):
    """Few numbers: many points are as far from two starts."""
    x = rng.integers(-2, 3, size=(3, 300, 3))
    return x, np.array([np.unique(rows, axis=0)[7::23][:K] for rows in x])


def almost_in_the_middle(rng):
    """24 bits in each number: whether a point is nearer to one start is in the last of them."""
    starts = rng.integers(-(2**23), 2**23, size=(3, K, 3))
    pairs = starts[:, rng.permuted(np.tile(np.arange(K), (300, 1)), axis=1)[:, :2]]
    return pairs.sum(axis=2) // 2 + rng.integers(-1, 2, size=(3, 300, 3)), starts


@pytest.mark.parametrize("draw", [whole_numbers, almost_in_the_middle])
def test_labels_are_exact_and_ties_go_to_the_lowest(solve, rng, draw):
    x, starts = draw(rng)
    away = ((x[:, :, None] - starts[:, None]) ** 2).sum(axis=-1)  # integers
    own = torch.from_numpy(away.argmin(axis=-1)[..., None] == np.arange(K)).double()
    x, starts = torch.from_numpy(x).float(), torch.from_numpy(starts).float()
    found = run(solve, x, starts, Rules(1, 0.0))
    means = own.mT @ x.double() / own.sum(dim=1).unsqueeze(-1)
    torch.testing.assert_close(found.centers, means, rtol=1e-14, atol=1e-14)


def test_copies_of_fewer_points_than_centers(solve, rng):
    distinct = torch.from_numpy(rng.normal(size=(3, K - 1, 3))).float()
    distinct[:, 1], distinct[:, 2] = -distinct[:, 0], 1e-3 * distinct[:, 2]
    x = distinct.repeat_interleave(7, dim=1)
    starts = torch.cat([distinct, torch.full((3, 1, 3), 50.0)], dim=1)
    found = run(solve, x, starts, Rules(20, 0.0))
    assert found.inertia.tolist() == [0.0] * 3  # the mean of copies is the point
    assert found.n_iter.tolist() == [1] * 3  # so nothing has moved
    assert found.labels.tolist() == [[j for j in range(K - 1) for _ in range(7)]] * 3
    torch.testing.assert_close(found.centers.float(), starts)  # no point is left for the last one


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_the_kernel_declines_values(solve, rng, value):
    x, starts = problems("mixture", rng)
    spans = allowed_spans(x.dtype, 3, 77)
    for tensor in (x, starts):
        bad = tensor.clone()
        bad[1, 2, 1] = value
        given = (bad, starts) if tensor is x else (x, bad)
        assert solve(*given, 0.0, 5, spans) is None
    assert solve(x, starts, 0.0, 5, spans) is not None


@pytest.fixture
def on_gpu(solve, monkeypatch):
    """`fit_batch` as on a GPU that has the kernel."""
    monkeypatch.setattr("lloydformer.solving.batch.fit.has_gpu_kernel", lambda *given: True)
    monkeypatch.setattr("lloydformer.engines.cuda.batch.solve_batch", solve)


@pytest.mark.parametrize("how", [{}, {"init": "random"}, {"n_init": 3}], ids=str)
def test_fit_batch_gives_what_it_gives_on_the_cpu(rng, on_gpu, monkeypatch, how):
    x, _ = problems("mixture", rng)
    found = lf.fit_batch(x, K, random_state=3, **how)
    monkeypatch.undo()
    true = lf.fit_batch(x, K, random_state=3, **how)
    for name in ("centers", "labels", "inertia", "n_iter"):
        torch.testing.assert_close(getattr(found, name), getattr(true, name), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("how", ["given", "random", "k-means++"])
def test_errors_of_fit_batch_name_what_was_found(rng, on_gpu, how):
    x, starts = problems("mixture", rng)
    init = starts if how == "given" else how
    x[2, 4, 1] = np.nan
    with pytest.raises(ValueError, match=r"points: found nan at \(2, 4, 1\)"):
        lf.fit_batch(x, K, init=init)
    with pytest.raises(ValueError, match="points: found values that span"):
        lf.fit_batch(x.nan_to_num() * 1e30, K, init=init)


def test_a_start_that_is_not_finite_or_far_away(rng, on_gpu):
    x, starts = problems("mixture", rng)
    starts[1, 2, 0] = np.inf
    with pytest.raises(ValueError, match=r"init: found inf at \(1, 2, 0\)"):
        lf.fit_batch(x, K, init=starts)
    starts[1, 2, 0] = 1e30  # too far for the kernel
    found = lf.fit_batch(x, K, init=starts)
    assert found.centers.isfinite().all()


@pytest.mark.filterwarnings("ignore:tol ended the fit")  # the outliers enlarge the tolerance
@pytest.mark.parametrize("far", [1e4, 1e6, 1e9])
def test_outliers_take_no_digits_from_the_other_points(far, rng, on_gpu):
    """The grid of the sums would be too coarse for them: the kernel declines."""
    x, starts = problems("mixture", rng)
    x[:, 5], x[:, 6] = far, -far
    found = lf.fit_batch(x, K, init=starts)
    true = [
        lf.KMeans(K, init=c.double(), n_init=1).fit(p.double())
        for p, c in zip(x.cpu(), starts.cpu(), strict=True)
    ]
    for number, model in enumerate(true):
        assert found.n_iter[number] == model.n_iter_
        assert torch.equal(found.labels[number].cpu(), model.labels_.to(found.labels.dtype))


def test_sizes_that_fit():
    assert [pad_width(d) for d in (1, 8, 9, 32, 33, 64)] == [8, 8, 16, 32, 64, 64]
    assert 3 * (count_shared_bytes(512, 32, 10) + 1152) <= 228 * 1024


@pytest.mark.parametrize("far", [3e2, 3e3, 3e5, 3e7])
def test_a_far_row_costs_the_others_no_digits(solve, rng, far):
    """Two groups at 0 and 1, and a far row: right centers, or none, and then others are asked."""
    x = np.concatenate([rng.normal(size=(3, 40, 2)), rng.normal(size=(3, 40, 2)) + 50], axis=1)
    x = torch.from_numpy(np.concatenate([x / 50, np.full((3, 1, 2), far)], axis=1)).float()
    starts = x[:, [0, 40, 80]]
    found = run(solve, x, starts, Rules(20, 0.0))
    assert far > 1e3 or found is not None
    if found is not None:
        means = torch.stack([x[:, :40].double().mean(1), x[:, 40:80].double().mean(1)], dim=1)
        torch.testing.assert_close(found.centers[:, :2], means, rtol=0, atol=1e-5)
