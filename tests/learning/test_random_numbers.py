"""Random numbers: uniform, independent, and a function of seed, stream, step and index only."""

import pytest
import torch
from scipy import stats

from lloydformer.learning.random_numbers import (
    STREAMS,
    bernoulli_cells,
    bernoulli_count,
    integers,
    stream_keys,
    uniform,
)

STEP = torch.tensor(7)


def seeds(*values):
    return torch.tensor(values)


def reference(z):
    """The finalizer of SplitMix64 in Python integers."""
    mask = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_numbers_are_splitmix_of_key_and_counter():
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    stream = STREAMS.index("drops")
    key = reference((reference(5 * golden & mask ^ stream) + 8 * golden) & mask)
    words = [reference(key ^ (cell * golden & mask)) for cell in (1, 2)]
    bits = [word >> 41 for word in words] + [word >> 9 & 2**23 - 1 for word in words]
    found = uniform(stream_keys(seeds(5), "drops", STEP), 4)
    assert found[0].tolist() == [(b + 0.5) / 2**23 for b in bits]


@pytest.mark.parametrize("stream", STREAMS)
def test_numbers_are_uniform(stream):
    u = uniform(stream_keys(seeds(3), stream, STEP), 20_000)[0]
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u.numpy(), "uniform").pvalue > 1e-3
    assert abs(torch.corrcoef(torch.stack([u[:-1], u[1:]]))[0, 1]) < 0.03


def test_a_run_draws_the_same_alone_and_with_others():
    both = uniform(stream_keys(seeds(3, 9), "tasks", STEP), 5, 4)
    assert torch.equal(both[1:], uniform(stream_keys(seeds(9), "tasks", STEP), 5, 4))


def test_seed_stream_and_step_all_matter():
    found = {
        uniform(stream_keys(seeds(s), stream, torch.tensor(t)), 1).item()
        for s in range(10)
        for stream in STREAMS
        for t in range(10)
    }
    assert len(found) == 10 * 10 * len(STREAMS)


def test_integers_are_uniform():
    counts = integers(uniform(stream_keys(seeds(1), "tasks", STEP), 9_000)[0], 4, 6).bincount()
    assert counts[:4].tolist() == [0, 0, 0, 0]
    assert stats.chisquare(counts[4:].numpy()).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_cells_are_chosen_independently_with_the_probability(share):
    cells = 50_000
    u = uniform(stream_keys(seeds(*range(8)), "drops", STEP), bernoulli_count(cells, share))
    found = bernoulli_cells(u, cells, share)
    assert (found.diff(dim=1)[found[:, 1:] < cells] > 0).all()
    assert (found[:, -1] == cells).all()  # enough numbers to reach the end
    inside = [row[row < cells] for row in found]
    tests = [stats.binomtest(len(row), cells, share).pvalue for row in inside]
    assert min(tests) > 1e-3 / len(tests)
    halves = torch.cat(inside) < cells // 2
    assert stats.binomtest(int(halves.sum()), len(halves)).pvalue > 1e-3
