"""Properties of every activation."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.circuits.activations import (
    Context,
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    NormMax,
    Reach,
    Softmax,
    Sparsemax,
    TopK,
)

ACTIVATIONS = {
    "softmax": Softmax(0.7),
    "limiting": LimitingSoftmax(),
    "limiting, first": LimitingSoftmax("first"),
    "linear": Linear(),
    "sparsemax": Sparsemax(0.7),
    "top-k": TopK(2, 0.7),
    "norm-max": NormMax(0.7),
    "norm-max, keep": NormMax(keep=0.6),
    "gumbel, limit": Gumbel(),
    "gumbel": Gumbel(0.7),
}
rows_of_scores = st.lists(  # quarters: sums and shifts of them are exact
    st.integers(1, 40).map(lambda i: i / 4), min_size=1, max_size=7
)


def weights(name, scores, noise=None):
    noise = torch.zeros_like(scores) if noise is None else noise
    return ACTIVATIONS[name](scores, Context(noise=lambda like: noise))


@pytest.mark.parametrize("name", ACTIVATIONS)
@given(row=rows_of_scores)
def test_weights_are_not_negative_and_sum_to_one(name, row):
    found = weights(name, torch.tensor([row], dtype=torch.float64))
    assert (found >= 0).all()
    assert found.sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
@given(row=rows_of_scores)
def test_a_better_key_never_weighs_less(name, row):
    ordered = torch.tensor([sorted(set(row))], dtype=torch.float64)
    assert (weights(name, ordered).diff() >= -1e-12).all()


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "linear"])
@given(row=rows_of_scores, shift=st.integers(-100, 100))
def test_shifting_all_scores_changes_nothing(name, row, shift):
    scores = torch.tensor([row], dtype=torch.float64)
    torch.testing.assert_close(
        weights(name, scores + shift), weights(name, scores), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "limiting, first"])
@given(row=rows_of_scores, data=st.data())
def test_permuting_the_keys_permutes_the_weights(name, row, data):
    order = data.draw(st.permutations(range(len(row))))
    scores = torch.tensor([row], dtype=torch.float64)
    noise = torch.linspace(0, 1, len(row), dtype=torch.float64)[None] ** 3
    permuted = weights(name, scores[:, order], noise[:, order])
    torch.testing.assert_close(permuted, weights(name, scores, noise)[:, order])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_queries_of_a_batch_are_independent(name, rng):
    scores, noise = torch.tensor(rng.uniform(0.1, 5, size=(2, 3, 4, 5, 6)))
    batch = weights(name, scores, noise)
    for place in np.ndindex(3, 4):
        alone = weights(name, scores[place], noise[place])
        torch.testing.assert_close(batch[place], alone, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_not_changed_and_dtype_is_kept(name, dtype):
    scores = torch.tensor([[3.0, 1.0, 2.0]], dtype=dtype)
    assert weights(name, scores).dtype == dtype
    assert scores.tolist() == [[3.0, 1.0, 2.0]]


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n not in ("linear", "norm-max, keep")])
def test_points_lowered_by_lowering_have_no_weight(name):
    """An own point at distance `reach`; points of other clusters at the center, lowered."""
    eps = torch.finfo(torch.float64).eps
    for reach in (0.1, 1.0, 50.0):
        lowered = -ACTIVATIONS[name].lowering(Reach(reach, 10 * reach), eps) - 1e-6
        strangers = torch.full((4,), lowered, dtype=torch.float64)
        scores = torch.cat([torch.tensor([-reach], dtype=torch.float64), strangers])[None]
        assert weights(name, scores)[0, 1:].sum() <= 4 * eps**2


@pytest.mark.parametrize("part", [Linear(), Identity()], ids=str)
def test_activations_without_lowering_raise(part):
    with pytest.raises(ValueError, match=r"activation: \w+ attention"):
        part.lowering(Reach(1.0, 1.0), 1e-16)


NOT_POSITIVE = (0.0, -1.0, math.nan, math.inf)
BAD = [
    *((Softmax, {"inverse_temperature": v}, "positive finite") for v in NOT_POSITIVE),
    *((Sparsemax, {"inverse_temperature": v}, "positive finite") for v in NOT_POSITIVE),
    *((TopK, {"m": 2, "inverse_temperature": v}, "positive finite") for v in NOT_POSITIVE),
    *((NormMax, {"inverse_temperature": v}, "positive finite") for v in NOT_POSITIVE),
    *((NormMax, {"keep": v}, "a fraction above 0, at most 1") for v in (*NOT_POSITIVE, 1.01)),
    *((Gumbel, {"temperature": v}, "positive finite") for v in NOT_POSITIVE[1:]),
    (TopK, {"m": 0}, "an integer above 0"),
]


@pytest.mark.parametrize(("part", "arguments", "repair"), BAD, ids=lambda v: str(v)[-30:])
def test_bad_parameters_are_named_with_what_was_found_and_the_repair(part, arguments, repair):
    name, value = list(arguments.items())[-1]
    with pytest.raises(ValueError) as error:
        part(**arguments)
    assert str(error.value).startswith(f"{name}: found {value!r}; pass ")
    assert repair in str(error.value)


@pytest.mark.parametrize("both", [(), (2.0, 0.5)])
def test_norm_max_takes_one_of_its_two_parameters(both):
    complaint = f"inverse_temperature, keep: found {list(both)}; pass exactly one of them"
    with pytest.raises(ValueError, match=re.escape(complaint)):
        NormMax(*both)
