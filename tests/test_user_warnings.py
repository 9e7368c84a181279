"""Warnings of a fit name the user's line, whatever wraps the fit."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import lloydformer as lf

X = np.array([[0.0], [0.0], [8.0]])
GIVEN = np.array([[0.0], [4.0], [8.0]])


def given(kind, **others):
    return kind(3, init=GIVEN, n_init=5, **others)


CASES = {
    "initial centers": lambda: given(lf.SoftKMeans).fit(X),
    "clusters": lambda: lf.KMeans(3, init=GIVEN, n_init=1).fit(X),
    "clusters of a search": lambda: lf.RelocatingKMeans(3, random_state=0).fit(X),
    "elkan": lambda: lf.KMeans(1, algorithm="elkan").fit(X),
    "fit_predict": lambda: lf.KMeans(1, algorithm="elkan").fit_predict(X),
    "a fit of its own": lambda: given(lf.CircuitClusterer).fit(X),
    "medoids": lambda: lf.KMedoids(2, init=X[1:], n_init=5).fit(X),
    "pipeline": lambda: make_pipeline(FunctionTransformer(), given(lf.KMeans)).fit(X),
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_names_the_line_of_the_user(case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[case]()
    assert caught
    lines = {(warning.filename, warning.lineno) for warning in caught}
    assert lines == {(__file__, CASES[case].__code__.co_firstlineno)}
