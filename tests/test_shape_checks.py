"""Types and shapes are checked while tests run: see conftest.py in the root of the repository."""

import jaxtyping
import pytest
import torch

from lloydformer.numerics.clusters import squared_distances
from lloydformer.numerics.scaling import middle


def test_a_wrong_type_is_found():
    with pytest.raises(jaxtyping.TypeCheckError, match="points"):
        middle([[1.0, 2.0]])


def test_sizes_of_one_name_that_differ_are_found():
    with pytest.raises(jaxtyping.TypeCheckError, match="the size of dimension d"):
        squared_distances(torch.zeros(3, 1), torch.zeros(2, 2))  # torch would repeat the column


def test_some_of_many_calls_are_checked():
    for _ in range(100):
        middle(torch.zeros(3, 2))
    found = 0
    for _ in range(100):
        try:
            middle(torch.zeros(3, 2, dtype=torch.int64))
        except jaxtyping.TypeCheckError:
            found += 1
    assert found >= 6
