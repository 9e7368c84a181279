"""Generators from `random_state` draw the numbers of scikit-learn's."""

import pickle

import numpy as np
import pytest
from sklearn.utils import check_random_state

from lloydformer.estimators.random_state import generator_of


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_whole_numbers_give_the_same_draws(seed):
    ours, theirs = generator_of(seed), check_random_state(seed)
    copied = pickle.loads(pickle.dumps(ours))
    for draw in (
        lambda g: g.randint(2**31 - 1),
        lambda g: g.uniform(size=700),
        lambda g: g.normal(size=3),
    ):
        expected = draw(theirs)
        np.testing.assert_array_equal(draw(ours), expected)
        np.testing.assert_array_equal(draw(copied), expected)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_out_of_range_raise(seed):
    with pytest.raises(ValueError, match=r"between 0 and 2\*\*32 - 1"):
        generator_of(seed)


def test_other_values_are_left_to_scikit_learn():
    given = np.random.RandomState(0)
    assert generator_of(given) is given
    assert generator_of(None) is check_random_state(None)
    assert generator_of(np.int64(3)).randint(1000) == check_random_state(3).randint(1000)
