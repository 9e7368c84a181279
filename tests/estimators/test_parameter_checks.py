"""The fast check of parameters agrees with scikit-learn's."""

import inspect
from typing import ClassVar

import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError

import lloydformer as lf
from lloydformer.estimators.parameter_checks import parameters_hold

VALUES = [
    None, True, False, 0, 1, -1, 2.5, -2.5, np.nan, np.inf, "auto", "random", "farthest", "lloyd",
    np.zeros((2, 2)), [[1.0]], np.random.RandomState(0), print, object(), int, 2**70,
]  # fmt: skip


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
            assert parameters_hold(model) == accepted_by_sklearn(model), (name, value)
            rejected += not parameters_hold(model)
    assert rejected > 50


def test_the_words_are_those_of_sklearn():
    with pytest.raises(InvalidParameterError, match="The 'max_iter' parameter of KMeans must be"):
        lf.KMeans(2, max_iter=0).fit([[0.0], [1.0]])


def test_subclasses_have_their_own_constraints():
    class Two(lf.KMeans):
        _parameter_constraints: ClassVar = {**lf.KMeans._parameter_constraints, "n_clusters": [str]}

    assert not parameters_hold(Two())
    assert parameters_hold(Two("two"))
    assert parameters_hold(lf.KMeans())
