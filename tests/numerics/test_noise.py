"""Counter-based noise: known answers, and draws that depend only on their arguments."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lloydformer.circuits.activations import Gumbel, Reach
from lloydformer.numerics.noise import (
    HEADS,
    _fraction,
    cluster_uniform,
    gumbel,
    philox,
    row_uniform,
    uniform,
)

KNOWN_ANSWERS = {  # Random123, kat_vectors, philox4x32 10: counter, key, four words
    "zeros": ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
}
SITE = {"seed": 5, "layer": 2, "head": "decoder_cross"}
OTHER_HEADS = [{"head": h} for h in HEADS if h != SITE["head"]]


@pytest.mark.parametrize("vector", KNOWN_ANSWERS)
def test_philox_known_answers(vector):
    counter, key, expected = KNOWN_ANSWERS[vector]
    words = philox(tuple(torch.tensor(c) for c in counter), key)
    assert " ".join(f"{w.item():08x}" for w in words) == expected
    assert " ".join(f"{w:08x}" for w in philox(counter, key)) == expected


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=5), st.integers(1, 9))
def test_a_draw_does_not_depend_on_other_rows_and_clusters(rows, n_clusters):
    together = uniform(**SITE, n_clusters=9, rows=torch.tensor(rows))
    alone = torch.cat(
        [uniform(**SITE, n_clusters=n_clusters, rows=torch.tensor([r])) for r in rows], dim=1
    )
    assert torch.equal(together[:n_clusters], alone)


@given(st.integers(-(2**40), 2**63 - 1), st.integers(0, 2**26), st.integers(1, 9))
def test_draws_of_clusters_by_integers_are_those_by_tensors(seed, layer, n_clusters):
    site = (seed, layer, "parents", n_clusters)
    assert cluster_uniform(*site) == uniform(*site, torch.zeros(1, dtype=torch.long))[:, 0].tolist()


def test_rows_beyond_32_bits_draw_different_numbers():
    rows = torch.tensor([7, 7 + 2**32, 7 + 2**33, 2**62])
    assert uniform(**SITE, n_clusters=3, rows=rows).unique().numel() == 12


@pytest.mark.parametrize(
    "change", [{"seed": 6}, {"seed": 5 + 2**32}, {"layer": 3}, *OTHER_HEADS], ids=str
)
def test_seed_layer_and_head_change_the_draws(change):
    rows = torch.arange(20)
    draws = uniform(**SITE, n_clusters=4, rows=rows)
    others = uniform(**{**SITE, **change}, n_clusters=4, rows=rows)
    assert torch.cat([draws, others]).unique().numel() == 160


def test_uniform_is_uniform_and_never_0_or_1():
    draws = uniform(**SITE, n_clusters=7, rows=torch.arange(20_000)).numpy()
    assert draws.min() > 0
    assert draws.max() < 1
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 0.01


def test_extreme_words_give_numbers_inside_0_1():
    words = torch.tensor([0, 0xFFFFFFFF])
    assert _fraction(words, words).tolist() == [2.0**-53, 1 - 2.0**-53]


def test_the_range_of_draws_is_below_the_bound_of_separations():
    words = torch.tensor([0, 0xFFFFFFFF])
    lowest, highest = -torch.log(-torch.log(_fraction(words, words)))
    assert highest - lowest < Gumbel().lowering(Reach(0.0, 0.0), eps=1e-16)


def test_gumbel_is_gumbel():
    draws = gumbel(**SITE, n_clusters=7, rows=torch.arange(20_000)).numpy()
    assert stats.kstest(draws.ravel(), stats.gumbel_r.cdf).pvalue > 0.01


def test_clusters_are_independent_of_each_other():
    draws = uniform(**SITE, n_clusters=6, rows=torch.arange(20_000)).numpy()
    correlations = np.corrcoef(draws) - np.eye(6)
    assert np.abs(correlations).max() < 4 / np.sqrt(20_000)


def philox_4x64(counter, key):
    """Ten rounds in Python integers, as printed by Salmon et al."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        one, two = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (two >> 64) ^ c1 ^ k0, two % 2**64, (one >> 64) ^ c3 ^ k1, one % 2**64
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % 2**64, (k1 + 0xBB67AE8584CAA73B) % 2**64
    return c0, c1, c2, c3


def test_row_uniform_is_philox():
    """NumPy increments the counter before the first draw."""
    drawn = row_uniform(7, 3, 0, 8).tolist()
    words = [w for block in (1, 2) for w in philox_4x64((block, 0, 3, 0), (7, 0))]
    assert drawn == [((w >> 12) + 0.5) / 2**52 for w in words]


@given(st.integers(0, 2**40), st.integers(0, 30), st.integers(1, 30))
def test_row_uniform_does_not_depend_on_the_range(start, offset, count):
    every = row_uniform(3, 1, start, start + 70)
    part = row_uniform(3, 1, start + offset, start + offset + count)
    assert torch.equal(part, every[offset : offset + count])


def test_row_uniform_is_uniform_and_changes_with_number_and_seed():
    one, two, other = (
        row_uniform(1, 0, 0, 5000),
        row_uniform(1, 1, 0, 5000),
        row_uniform(2, 0, 0, 9),
    )
    assert stats.kstest(one.numpy(), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05
    assert not torch.equal(one[:9], other)
