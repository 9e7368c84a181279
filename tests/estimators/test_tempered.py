"""inverse_temperature="scale": results do not depend on the unit of the data, and are good."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from planted_kinds import KINDS, planted
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.circuits.activations import TopK

TEMPERED = (lf.SoftKMeans, lf.RobustKMeans)


def test_soft_finds_planted_clusters_as_k_means_does():
    worse = []
    for number, (d, k, even, wide) in enumerate(KINDS * 2):
        problem = planted(number, d, k, even=even, wide=wide, gap=(4.0, 7.0)[number % 2])
        plain, soft = (
            problem.agreement(kind(k, random_state=number).fit(problem.rows).labels_)
            for kind in (lf.KMeans, lf.SoftKMeans)
        )
        worse.append(plain - soft)
    assert max(worse) <= 0.02
    assert np.mean(worse) < 0.002


def test_robust_finds_planted_clusters_among_outliers():
    better = []
    for number, (d, k, even, wide) in enumerate(KINDS * 3):
        outliers = ("near", "box", "far")[number // len(KINDS)]
        problem = planted(number, d, k, even=even, wide=wide, outliers=outliers)
        plain, robust = (
            problem.agreement(kind(k, random_state=number).fit(problem.rows).labels_)
            for kind in (lf.KMeans, lf.RobustKMeans)
        )
        better.append(robust - plain)
    assert min(better) >= 0
    assert np.mean(better) > 0.25


SETS = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "breast cancer": load_breast_cancer().data,
    "normal": np.random.default_rng(0).normal(size=(300, 3)),
    "uniform": np.random.default_rng(1).uniform(size=(300, 5)),
    **{f"planted {s}": planted(4 * s + 3, *KINDS[9 * s][:2], even=False, wide=True,
                               outliers="near").rows for s in range(1, 4)},
    "one column": np.random.default_rng(2).exponential(size=(200, 1)),
    "far from 0": 50.0 + np.random.default_rng(3).normal(size=(300, 4)) ** 3,
}  # fmt: skip
"""Ten sets, with clusters and without."""


@pytest.mark.parametrize("kind", TEMPERED)
@pytest.mark.parametrize("name", SETS)
def test_a_factor_changes_nothing(kind, name):
    rows = SETS[name]
    spread = rows.std()
    one = kind(4, random_state=0).fit(rows)
    for factor in (1e-3, 2.0**-5, 0.1, 7.0, 1e3):
        other = kind(4, random_state=0).fit(rows * factor)
        assert other.inverse_temperature_ * factor**2 == pytest.approx(one.inverse_temperature_)
        apart = np.abs(other.cluster_centers_ / factor - one.cluster_centers_).max()
        assert apart < 1e-6 * spread
        gap = np.partition(one.transform(rows) ** 2, 1, axis=1)
        clear = gap[:, 1] - gap[:, 0] > 1e-9 * spread**2
        assert np.array_equal(other.labels_[clear], one.labels_[clear])
        if factor == 2.0**-5:
            assert np.array_equal(other.cluster_centers_, one.cluster_centers_ * factor)
            assert np.array_equal(other.labels_, one.labels_)


@pytest.mark.parametrize("kind", TEMPERED)
def test_a_shift_changes_nothing(kind):
    rows = SETS["iris"]
    one, other = (kind(3, random_state=0).fit(rows + shift) for shift in (0.0, 1000.0))
    assert other.inverse_temperature_ == pytest.approx(one.inverse_temperature_, rel=1e-6)
    assert np.abs(other.cluster_centers_ - 1000 - one.cluster_centers_).max() < 1e-6


@pytest.mark.parametrize("kind", TEMPERED)
@pytest.mark.parametrize("how", [{}, {"init": "random", "n_init": 3}, {"init": SETS["iris"][::50]}])
def test_the_number_that_was_found_gives_the_same_fit(kind, how):
    rows, weights = SETS["iris"], np.random.default_rng(0).uniform(1, 5, size=150)
    found = kind(3, random_state=0, **how).fit(rows, sample_weight=weights)
    given = kind(3, random_state=0, inverse_temperature=found.inverse_temperature_, **how)
    given.fit(rows, sample_weight=weights)
    assert np.array_equal(found.cluster_centers_, given.cluster_centers_)
    assert given.inverse_temperature_ == found.inverse_temperature_


@pytest.mark.parametrize("activation", ["sparsemax", "softmax", TopK(30)])
def test_the_unit_of_the_weights_does_not_matter(activation):
    if isinstance(activation, TopK):
        pytest.skip("m of TopK is a weight: it has the unit of the weights")
    rows, weights = SETS["iris"], np.random.default_rng(0).uniform(1, 5, size=150)
    models = [
        lf.RobustKMeans(3, activation=activation, random_state=0).fit(rows, sample_weight=w)
        for w in (weights, 8 * weights, 3e200 * weights)
    ]
    for other in models[1:]:
        assert np.allclose(other.cluster_centers_, models[0].cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("kind", TEMPERED)
def test_a_weight_of_two_counts_as_two_rows(kind):
    rows, start = SETS["iris"], SETS["iris"][::50]
    weights = np.random.default_rng(0).integers(0, 4, size=150)
    once = kind(3, init=start).fit(rows, sample_weight=weights)
    twice = kind(3, init=start).fit(np.repeat(rows, weights, axis=0))
    assert once.inverse_temperature_ == pytest.approx(twice.inverse_temperature_, rel=1e-9)
    assert np.allclose(once.cluster_centers_, twice.cluster_centers_)


@pytest.mark.parametrize("kind", TEMPERED)
def test_engines_and_kinds_of_data_find_the_same_number(kind, engine):
    rows = SETS["wine"]
    want = kind(3, random_state=0, engine="chunked").fit(rows)
    got = kind(3, random_state=0, engine=engine).fit(torch.from_numpy(rows))
    assert got.inverse_temperature_ == pytest.approx(want.inverse_temperature_, rel=1e-9)
    assert type(got.inverse_temperature_) is float
    assert np.allclose(got.cluster_centers_.numpy(), want.cluster_centers_)


def test_sparse_rows_and_float32():
    rows = np.random.default_rng(0).poisson(1.0, size=(200, 6)).astype(np.float32)
    dense = lf.SoftKMeans(3, init=rows[:3]).fit(rows)
    thin = lf.SoftKMeans(3, init=rows[:3]).fit(sparse.csr_matrix(rows))
    assert thin.inverse_temperature_ == pytest.approx(dense.inverse_temperature_, rel=1e-4)


@pytest.mark.parametrize("kind", TEMPERED)
def test_it_is_cloned_pickled_saved_and_set(kind, tmp_path):
    rows = SETS["iris"]
    model = kind(3, random_state=0).fit(rows)
    assert clone(model).inverse_temperature == "scale"
    assert not hasattr(clone(model), "inverse_temperature_")
    model.save_pretrained(tmp_path)
    for again in (pickle.loads(pickle.dumps(model)), kind.from_pretrained(tmp_path)):
        assert again.inverse_temperature_ == model.inverse_temperature_
        assert np.array_equal(again.predict(rows), model.labels_)
    model.set_params(inverse_temperature=0.5).fit(rows * 10)
    assert model.inverse_temperature_ == 0.5


def test_shares_follow_the_fitted_number():
    rows = SETS["iris"]
    model = lf.SoftKMeans(3, random_state=0).fit(rows)
    given = lf.SoftKMeans(3, random_state=0, inverse_temperature=model.inverse_temperature_)
    assert np.array_equal(model.predict_proba(rows), given.fit(rows).predict_proba(rows))


@pytest.mark.parametrize("kind", TEMPERED)
@pytest.mark.parametrize("second", ["scale", 3.0])
def test_a_fit_that_fails_leaves_the_fitted_number(kind, second):
    """It belongs to the centers, which are still those of the earlier fit."""

    def fail(progress):
        raise RuntimeError("no more")

    rows = SETS["iris"]
    model = kind(3, inverse_temperature=0.5, random_state=0).fit(rows)
    model.set_params(inverse_temperature=second, callback=fail)
    with pytest.raises(RuntimeError, match="no more"):
        model.fit(rows)
    assert model.inverse_temperature_ == 0.5


@pytest.mark.parametrize("kind", TEMPERED)
@pytest.mark.parametrize("rows", [np.zeros((5, 2)), np.eye(3), np.repeat(np.eye(3), 4, axis=0)])
def test_no_spread_at_all(kind, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(3, random_state=0).fit(rows)
    assert np.isfinite(model.inverse_temperature_)
    assert model.inertia_ == pytest.approx(0, abs=1e-12)


def test_a_warning_names_the_parameter_when_centers_coincide():
    rows = SETS["iris"]
    in_unit_box = (rows - rows.min(0)) / np.ptp(rows, axis=0)
    with pytest.warns(ConvergenceWarning, match=r'inverse_temperature=1: try "scale'):
        lf.SoftKMeans(3, inverse_temperature=1.0, random_state=0).fit(in_unit_box)
    twice = np.repeat([[0.0], [1.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"duplicate points in X.*try another number"):
        lf.SoftKMeans(3, random_state=0).fit(twice)


def test_robust_on_standardised_breast_cancer_and_times_1000():
    rows, truth = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(0)) / rows.std(0)
    model = lf.RobustKMeans(2, random_state=0).fit(1000 * rows)
    assert adjusted_rand_score(truth, model.labels_) > 0.67
    assert model.n_iter_ > 1
