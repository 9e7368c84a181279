"""reference_centers: clusters keep their numbers from fit to fit."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import lloydformer as lf

RNG = np.random.default_rng(0)
MIDDLES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]]) + 3
X = MIDDLES[np.arange(200) % 4] + RNG.normal(size=(200, 2))
# Those with reference_centers: mixtures have the parameters of scikit-learn, and each fit of
# KPrototypes has its own categories.
ESTIMATORS = [
    kind
    for name in lf.__all__
    if hasattr(kind := getattr(lf, name), "predict")
    and kind is not lf.Clusterer
    and not name.endswith(("Mixture", "KPrototypes"))
]
SHUFFLED = np.array([2, 0, 3, 1])


def fitted(kind, **how):
    start = X[:4] if kind is lf.KMedoids else MIDDLES + 0.5
    return kind(4, init=start, random_state=0, **how).fit(X)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_everything_that_is_kept_per_cluster_is_renumbered(kind):
    plain = fitted(kind)
    model = fitted(kind, reference_centers=plain.cluster_centers_[SHUFFLED] + 0.1)
    assert np.array_equal(model.cluster_centers_, plain.cluster_centers_[SHUFFLED])
    kept = plain.labels_ >= 0
    assert np.array_equal(SHUFFLED[model.labels_[kept]], plain.labels_[kept])
    assert np.array_equal(model.labels_[~kept], plain.labels_[~kept])
    assert model.labels_.dtype == plain.labels_.dtype
    assert np.array_equal(model.predict(X)[kept], model.labels_[kept])
    assert model.inertia_ == plain.inertia_
    assert np.array_equal(model.objective_history_, plain.objective_history_)
    if hasattr(plain, "medoid_indices_"):
        assert np.array_equal(model.medoid_indices_, plain.medoid_indices_[SHUFFLED])
    if hasattr(plain, "outliers_"):
        assert np.array_equal(model.outliers_, plain.outliers_)
    if hasattr(plain, "_counts"):
        assert np.array_equal(model._counts, plain._counts[SHUFFLED])


def test_refits_on_new_rows_keep_the_numbers():
    first = lf.KMeans(4, random_state=0).fit(X)
    for seed in range(1, 6):
        rows = X + np.random.default_rng(seed).normal(scale=0.3, size=X.shape)
        model = lf.KMeans(4, random_state=seed, reference_centers=first.cluster_centers_).fit(rows)
        assert np.abs(model.cluster_centers_ - first.cluster_centers_).max() < 1
        assert (model.labels_ == first.labels_).mean() > 0.97


def test_the_pairing_has_the_smallest_sum_of_squares():
    """The nearest earlier center of both is number 0; only one of them can have it."""
    rows = np.array([[0.0], [0.1], [5.0], [5.1]])
    model = lf.KMeans(2, init=[[0.0], [5.0]], reference_centers=[[4.0], [-100.0]]).fit(rows)
    assert model.cluster_centers_[:, 0] == pytest.approx([5.05, 0.05])


@pytest.mark.parametrize("keep", [slice(0, 2), slice(None)])
def test_more_or_fewer_earlier_centers_than_clusters(keep):
    plain = fitted(lf.KMeans)
    earlier = np.concatenate([plain.cluster_centers_[SHUFFLED][keep], [[500.0, 500.0]]])
    model = fitted(lf.KMeans, reference_centers=earlier)
    same = range(4)[keep]
    assert np.array_equal(model.cluster_centers_[same], plain.cluster_centers_[SHUFFLED][same])
    assert sorted(map(tuple, model.cluster_centers_)) == sorted(map(tuple, plain.cluster_centers_))


def test_partial_fit_takes_the_numbers_in_its_first_batch():
    stream = lf.KMeans(4, random_state=0, reference_centers=MIDDLES[SHUFFLED])
    for batch in np.split(X, 4):
        stream.partial_fit(batch)
    assert np.abs(stream.cluster_centers_ - MIDDLES[SHUFFLED]).max() < 1


@pytest.mark.parametrize("kind", [lf.KMeans, lf.KMedoids])
def test_views_are_taken(kind):
    points = np.random.default_rng(0).normal(size=(60, 2))
    centers = kind(3, random_state=0).fit(points).cluster_centers_
    again = kind(3, random_state=0, reference_centers=centers[::-1]).fit(points)
    np.testing.assert_array_equal(again.cluster_centers_, centers[::-1])


def test_scaled_columns_and_tensors():
    blocks = lf.data.open_dataset(X * [1.0, 1000.0], scale="standard")
    plain = lf.KMeans(4, random_state=0).fit(blocks)
    model = lf.KMeans(4, random_state=0, reference_centers=plain.cluster_centers_[SHUFFLED]).fit(
        blocks
    )
    assert np.array_equal(model.cluster_centers_, plain.cluster_centers_[SHUFFLED])
    points = torch.from_numpy(X)
    again = lf.KMeans(4, init=MIDDLES, reference_centers=points[:4][SHUFFLED]).fit(points)
    assert isinstance(again.labels_, torch.Tensor)


def test_it_is_cloned_pickled_and_saved(tmp_path):
    model = fitted(lf.KMeans, reference_centers=MIDDLES[SHUFFLED])
    assert np.array_equal(clone(model).reference_centers, MIDDLES[SHUFFLED])
    model.save_pretrained(tmp_path)
    for again in (pickle.loads(pickle.dumps(model)), lf.KMeans.from_pretrained(tmp_path)):
        assert np.array_equal(again.predict(X), model.labels_)
        assert np.array_equal(again.reference_centers, MIDDLES[SHUFFLED])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([[0.0, 0.0, 0.0]], r"reference_centers: found the shape \(1, 3\).*2 features"),
        ([0.0, 0.0], r"reference_centers: found the shape \(2,\)"),
        ([[np.nan, 0.0]], "reference_centers: found NaN"),
    ],
)
def test_wrong_centers_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        lf.KMeans(4, reference_centers=wrong, random_state=0).fit(X)
