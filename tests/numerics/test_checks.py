"""Errors about arguments name the argument, what was found and the repair."""

import numpy as np
import pytest
import torch

from lloydformer.numerics.checks import (
    as_points,
    as_problem,
    check_count,
    check_unit,
    check_zero_sum,
    require_fraction,
    require_positive,
)

X = torch.zeros(4, 2)


@pytest.mark.parametrize("value", [np.zeros((3, 2)), [[0.0, 1.0]], X, torch.zeros(2, 4, 2)])
def test_rows_may_be_an_array_a_list_a_tensor_or_a_batch(value):
    assert as_points("points", value).shape == np.shape(value)


def test_a_tensor_is_returned_and_an_array_is_copied():
    array = np.zeros((3, 2))
    as_points("points", array)[0, 0] = 1.0
    assert as_points("points", X) is X
    assert not array.any()


BAD_ROWS = {
    "dtype": (torch.zeros(3, 2, dtype=torch.int64), "torch.int64", "float32 or float64"),
    "half": (torch.zeros(3, 2, dtype=torch.float16), "torch.float16", "float32 or float64"),
    "one axis": (torch.zeros(3), "(3,)", "(m, d)"),
    "four axes": (torch.zeros(1, 1, 1, 1), "(1, 1, 1, 1)", "(b, m, d)"),
    "no rows": (torch.zeros(0, 2), "(0, 2)", "none of them empty"),
    "no columns": (torch.zeros(3, 0), "(3, 0)", "none of them empty"),
    "nan": (torch.tensor([[0.0, 1.0], [2.0, torch.nan]]), "nan at (1, 1)", "remove or fill in"),
    "infinity": (torch.tensor([[-torch.inf, 1.0]]), "-inf at (0, 0)", "remove or fill in"),
    "words": (["a", "b"], "list", "pass a tensor or an array"),
    "nothing": (None, "NoneType", "pass a tensor or an array"),
    "ragged": ([[0.0], [1.0, 2.0]], "list", "pass a tensor or an array"),
}


@pytest.mark.parametrize("fault", BAD_ROWS)
def test_bad_rows_are_refused(fault):
    value, found, repair = BAD_ROWS[fault]
    with pytest.raises(ValueError) as error:
        as_points("points", value)
    assert str(error.value).startswith("points: found")
    assert found in str(error.value)
    assert repair in str(error.value)


BAD_PROBLEMS = {
    "dtype": (X[:2].double(), "torch.float64 with points of torch.float32", "convert one"),
    "device": (torch.zeros(2, 2, device="meta"), "meta with points on cpu", 'to("cpu")'),
    "features": (torch.zeros(2, 3), "(2, 3) with points of shape (4, 2)", "must agree"),
    "batch": (torch.zeros(5, 2, 2), "(5, 2, 2) with points of shape (4, 2)", "must agree"),
    "too many": (torch.zeros(5, 2), "5 for 4 points", "at most one per point"),
}


@pytest.mark.parametrize("fault", BAD_PROBLEMS)
def test_centers_that_do_not_fit_the_points_are_refused(fault):
    centers, found, repair = BAD_PROBLEMS[fault]
    with pytest.raises(ValueError) as error:
        as_problem(X, centers)
    assert str(error.value).startswith("centers: found")
    assert found in str(error.value)
    assert repair in str(error.value)


def test_unit_rows():
    check_unit("points", torch.tensor([[0.6, 0.8]]))
    with pytest.raises(ValueError, match=r"points: .* norm differs from 1 by 0.4; normalise"):
        check_unit("points", torch.tensor([[0.6, 0.8], [0.0, 1.4]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [2, 40, 500])
def test_normalised_rows_pass(rng, d, dtype):
    rows = torch.tensor(rng.normal(size=(200, d)), dtype=dtype)
    check_unit("points", rows / rows.norm(dim=-1, keepdim=True))


def test_zero_sum_rows():
    check_zero_sum("centers", torch.tensor([[0.5, -0.75, 0.25]]))
    with pytest.raises(ValueError, match=r"centers: .* sum to 1; .*zero_sum\(centers\)"):
        check_zero_sum("centers", torch.tensor([[0.5, 0.5]]))


@pytest.mark.parametrize("value", [3, np.int64(3)])
def test_counts(value):
    assert check_count("n_layers", value) == 3


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True])
def test_bad_counts_are_refused(value):
    with pytest.raises(ValueError, match=f"n_layers: found {value!r}; pass an integer, 1 or more"):
        check_count("n_layers", value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_a_positive_number_is_finite(value):
    with pytest.raises(ValueError, match=f"power: found {value!r}; pass a positive finite number"):
        require_positive("power", value)


@pytest.mark.parametrize("value", [-0.1, 1.0, np.nan])
def test_a_fraction_is_below_one(value):
    with pytest.raises(ValueError, match=f"margin: found {value!r}; pass a fraction from 0"):
        require_fraction("margin", value)


def test_good_numbers_pass():
    require_positive("power", 1e-300)
    require_fraction("margin", 0.0)
