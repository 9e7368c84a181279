"""The GPU kernel for paths of many problems, also run on the CPU thread by thread."""

from functools import partial

import numpy as np
import pytest
import torch
from cuda_on_cpu import lloyd_paths_on_cpu, need_compiler, need_gpu, same_bits
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.engines.cuda.batch import LloydPaths, has_bad_values, run_lloyd_paths
from lloydformer.learning.lloyd import draw_rows, lloyd_path

STEPS = 6


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def kernel(request, libraries):
    """The kernel, run on the CPU and on a GPU."""
    if request.param == "cpu":
        need_compiler()
        return partial(lloyd_paths_on_cpu, libraries)
    need_gpu()

    def on_gpu(x, starts, drawn, backwards=False):
        found = run_lloyd_paths(x.cuda(), starts.cuda(), drawn.cuda())
        return LloydPaths(*(tensor.cpu() for tensor in found))

    return on_gpu


def problems(seed, n, d, k, n_empty=0, n_problems=3):
    """Groups of points (b, n, d), and starts; the last ones are far from all points."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-3, 3, size=(n_problems, k, d))
    own = rng.integers(k, size=(n_problems, n))
    x = middles[np.arange(n_problems)[:, None], own] + rng.normal(size=(n_problems, n, d))
    starts = x[:, rng.integers(n, size=k)]  # some of them twice
    starts[:, k - n_empty :] += 1000 * np.arange(1, n_empty + 1)[:, None]
    return torch.from_numpy(x).float(), torch.from_numpy(starts).float()


def run(kernel, x, starts, drawn):
    """The path, also with threads in another order and starts in float64: the same bits."""
    found = kernel(x, starts, drawn)
    assert same_bits(found, kernel(x, starts.double(), drawn, backwards=True))
    assert found.n_iter.tolist() == [len(drawn)] * len(starts)
    return found.centers


def drawing(kernel, x, starts, n_steps, seed=0):
    """The path of the kernel and that of `lloyd_step` in float64: empty clusters take points."""
    seeds = torch.tensor([seed])
    drawn = draw_rows(seeds, torch.arange(n_steps), (1, *starts.shape), x.shape[1])[:, 0]
    _, *true = lloyd_path(x.double()[None], starts.double()[None], seeds, n_steps)
    return run(kernel, x, starts, drawn), torch.stack(true)[:, 0]


def first_points(starts, n_steps):
    """Empty clusters take the first point."""
    return torch.zeros(n_steps, *starts.shape[:2], dtype=torch.int64)


def assert_same(found, true):
    error = 2e-7 * float(true.abs().max())  # float32, and points less their origin
    torch.testing.assert_close(found.double(), true, rtol=0, atol=error)


SIZES = [
    (3, 5), (12, 16), (32, 10),
    *(pytest.param(*size, marks=pytest.mark.long) for size in ((1, 2), (8, 3), (9, 4))),
]  # fmt: skip


@pytest.mark.parametrize("n_empty", [0, 1])
@pytest.mark.parametrize(("d", "k"), SIZES)
def test_each_step_is_a_step_of_lloyd(kernel, d, k, n_empty):
    x, starts = problems(d, 77, d, k, n_empty)
    assert_same(*drawing(kernel, x, starts, STEPS))


@given(seed=st.integers(0, 2**31 - 1), n=st.integers(1, 70), n_empty=st.integers(0, 4))
def test_any_number_of_points_and_empty_clusters(kernel, seed, n, n_empty):
    x, starts = problems(seed, n, 3, 5, n_empty, n_problems=2)
    assert_same(*drawing(kernel, x, starts, 3))


def test_empty_clusters_take_the_given_rows_in_each_step(kernel):
    """Copies of two points: the last three clusters are empty in every step."""
    x = torch.ones(2, 40, 3)
    x[:, 20:] = -1
    starts = torch.tensor([1.0, -1, 60, 70, 80])[:, None].expand(2, 5, 3)
    drawn = torch.arange(4 * 2 * 5).view(4, 2, 5)  # point i is 1 if i < 20
    found = run(kernel, x, starts, drawn)[..., 0]
    assert found[..., :2].tolist() == [[[1, -1]] * 2] * 4
    assert torch.equal(found[..., 2:], torch.where(drawn < 20, 1.0, -1.0)[..., 2:])


def test_ties_go_to_the_lowest(kernel):
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.integers(-2, 3, size=(3, 300, 3))).float()
    starts = torch.stack([rows.unique(dim=0)[7::23][:5] for rows in x])
    assert_same(*drawing(kernel, x, starts, 1))


def test_a_path_that_has_settled_stays(kernel):
    x, starts = problems(5, 60, 3, 5)
    found = run(kernel, x, starts, first_points(starts, 40))
    moves = (found[1:] != found[:-1]).flatten(1).any(dim=1).tolist()
    last = max(i for i, moved in enumerate(moves) if moved)
    assert all(moves[:last])
    assert last < 30


def test_problems_may_share_their_points(kernel):
    x, starts = problems(7, 50, 3, 5)
    many = torch.cat([starts, starts + 0.5, starts.flip(1)])
    drawn = first_points(many, STEPS)
    assert torch.equal(run(kernel, x, many, drawn), run(kernel, x.repeat(3, 1, 1), many, drawn))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_values_that_cannot_be_used_are_told(kernel, value):
    x, starts = problems(9, 50, 3, 5)
    drawn = first_points(starts, STEPS)
    good = run(kernel, x, starts, drawn)
    for tensor in (x, starts):
        bad = tensor.clone()
        bad[1, 2, 1] = value
        found = kernel(*((bad, starts) if tensor is x else (x, bad)), drawn)
        assert has_bad_values(found.n_iter)
        assert found.n_iter.tolist() == [STEPS, -1, STEPS]
        assert found.centers[:, 1].isnan().all()
        assert torch.equal(found.centers[:, ::2], good[:, ::2])
