"""scikit-learn's own checks of an estimator, with no excuse that its KMeans does not need."""

import pytest
from sklearn.cluster import KMeans
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks

import lloydformer as lf
from lloydformer.estimators import ALGORITHMS

PARAMETERS = {
    "spherical": {"zero_rows": "ignore"},  # a check feeds a row of zeros
    "medoids": {"max_iter": 30},
}
ESTIMATORS = [
    *(known.estimator(**PARAMETERS.get(name, {})) for name, known in ALGORITHMS.items()),
    lf.CircuitClusterer(),
    lf.LearnedKMeans(),
    lf.GaussianMixture(),
    lf.PoissonMixture(),
]
EXCUSED_IN_SKLEARN = PER_ESTIMATOR_XFAIL_CHECKS[KMeans]
OF_CLASSIFIERS = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    "reads the tags of a classifier from whatever has predict_proba and takes sparse matrices",
)
"""`tests/estimators/test_source.py::test_sparse_equals_dense` stands for them."""


def excused(estimator: object) -> dict[str, str]:
    """Weights move the quantiles that seeds are drawn at: another start, as in scikit-learn."""
    weighted = {name: why for name, why in EXCUSED_IN_SKLEARN.items() if "sample_weight" in name}
    shares = hasattr(estimator, "predict_proba") and estimator.__sklearn_tags__().input_tags.sparse
    return {**weighted, **OF_CLASSIFIERS} if shares else weighted


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=excused)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def test_no_more_is_excused_than_in_scikit_learn():
    known = EXCUSED_IN_SKLEARN.keys() | OF_CLASSIFIERS.keys()
    assert all(excused(e).keys() <= known for e in ESTIMATORS)
    assert [e for e in ESTIMATORS if "check_estimator_sparse_array" in excused(e)] == [
        e for e in ESTIMATORS if isinstance(e, lf.SoftKMeans | lf.PoissonMixture)
    ]


def test_every_estimator_is_checked():
    """test_scaler.py checks `Scaler`; the data of the checks are no zeros and ones, no words."""
    exported = {n for n in lf.__all__ if hasattr(getattr(lf, n), "fit")} - {"Clusterer"}
    assert {type(e).__name__ for e in ESTIMATORS} | {
        "Scaler",
        "BernoulliMixture",
        "KPrototypes",
    } == exported


def test_a_row_of_zeros_is_refused_unless_it_is_to_be_ignored():
    rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match=r"row 0.*zero_rows=\"ignore\""):
        lf.SphericalKMeans(2).fit(rows)
    model = lf.SphericalKMeans(2, zero_rows="ignore", random_state=0).fit(rows)
    assert sorted(model.cluster_centers_.tolist()) == [[0, 1], [1, 0]]
