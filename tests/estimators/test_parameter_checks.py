"""The fast check of parameters and the generators agree with scikit-learn's."""

import inspect
import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError

import lloydformer as lf
from lloydformer.estimators.parameter_checks import find_invalid_parameter, make_generator

NUMBERS = [0, 1, -1, 2.5, -2.5, np.nan, np.inf, 2**70, np.zeros((2, 2)), [[1.0]]]
OBJECTS = [None, True, False, np.random.RandomState(0), print, object(), int]
VALUES = [*NUMBERS, *OBJECTS, "auto", "random", "farthest", "lloyd"]


def accepted_by_sklearn(model) -> bool:
    try:
        super(lf.estimators.Clusterer, model)._validate_params()
    except InvalidParameterError:
        return False
    return True


@pytest.mark.parametrize(
    "kind", [lf.KMeans, lf.SoftKMeans, lf.SphericalKMeans, lf.TrimmedKMeans, lf.KMedoids]
)
def test_every_parameter_with_every_value(kind):
    rejected = 0
    for name in inspect.signature(kind).parameters:
        for value in VALUES:
            model = kind(**{name: value})
            accepted = find_invalid_parameter(model) is None
            assert accepted == accepted_by_sklearn(model), (name, value)
            rejected += not accepted
    assert rejected > 50


def test_the_words_are_those_of_sklearn():
    with pytest.raises(InvalidParameterError, match="The 'max_iter' parameter of KMeans must be"):
        lf.KMeans(2, max_iter=0).fit([[0.0], [1.0]])


def test_subclasses_have_their_own_constraints():
    class Two(lf.KMeans):
        _parameter_constraints: ClassVar = {**lf.KMeans._parameter_constraints, "n_clusters": [str]}

    assert find_invalid_parameter(Two())[:2] == ("n_clusters", 8)
    assert find_invalid_parameter(Two("two")) is None
    assert find_invalid_parameter(lf.KMeans()) is None


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_whole_numbers_give_the_same_draws(seed):
    ours, theirs = make_generator(seed), check_random_state(seed)
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
        make_generator(seed)


def test_other_values_are_left_to_scikit_learn():
    given = np.random.RandomState(0)
    assert make_generator(given) is given
    assert make_generator(None) is check_random_state(None)
    assert make_generator(np.int64(3)).randint(1000) == check_random_state(3).randint(1000)
