"""LearnedKMeans with the paper's layers, each for one d and k."""

import resource

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf
from lloydformer.learning import pretrained as reading


def learned(k=6, **given):
    """Only the layer of the data's d and k: no polish, no comparison with Lloyd's algorithm."""
    wanted = {"pretrained": "auto", "max_iter": 0, "compare_to_lloyd": False} | given
    return lf.LearnedKMeans(k, **wanted)


@pytest.fixture(name="X")
def points_of_six_groups(rng):
    middles = rng.uniform(size=(6, 4))
    points = middles[rng.integers(6, size=300)] + 0.1 * rng.normal(size=(300, 4))
    return points * [1, 10, 100, 0.1] + [5, -3, 1000, 0]


@pytest.fixture
def fitted(X):
    return learned(6, random_state=0).fit(X)


def nearest(X, centers):
    squares = ((X[:, None] - centers) ** 2).sum(axis=-1)
    return squares.argmin(axis=1), squares.min(axis=1).sum()


def test_attributes_are_consistent(X, fitted):
    labels, inertia = nearest(X, fitted.cluster_centers_)
    np.testing.assert_array_equal(fitted.labels_, labels)
    assert fitted.inertia_ == pytest.approx(inertia)
    assert fitted.cluster_centers_.shape == (6, 4)
    assert fitted.n_iter_ == 10
    assert len(fitted.objective_history_) == 11
    assert fitted.objective_history_[-1] == pytest.approx(inertia)


def test_centers_are_those_of_the_circuit_on_scaled_data(X):
    """Scale the data, run the literal circuit, scale back."""
    start = X[:6]
    model = learned(6, pretrained="d4-k6", init=start, n_init=1, n_steps=5).fit(X)
    low, span = X.min(axis=0), X.max(axis=0) - X.min(axis=0)
    circuit = lf.learning.load_pretrained("d4-k6").circuit()
    trace = circuit(torch.tensor((X - low) / span), torch.tensor((start - low) / span), 5)
    scaled = (model.cluster_centers_ - low) / span
    np.testing.assert_allclose(scaled, trace.centers[-1].detach().numpy(), atol=1e-6)


def test_predict_transform_and_score(X, fitted):
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    distances = fitted.transform(X)
    assert distances.shape == (300, 6)
    np.testing.assert_array_equal(distances.argmin(axis=1), fitted.labels_)
    assert fitted.score(X) == pytest.approx(-fitted.inertia_)


def test_centers_follow_shift_and_scale_of_columns(X, fitted):
    other = learned(6, init=(X[:6] * 3 + 7), n_init=1).fit(X * 3 + 7)
    same = learned(6, init=X[:6], n_init=1).fit(X)
    np.testing.assert_allclose(other.cluster_centers_, same.cluster_centers_ * 3 + 7, rtol=1e-5)


def test_the_seed_gives_the_result(X):
    one, two = (learned(6, random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


def test_polish_is_lloyds_algorithm_from_the_last_centers(X, fitted):
    polished = learned(6, random_state=0, max_iter=50).fit(X)
    lloyd = lf.KMeans(6, init=fitted.cluster_centers_, n_init=1, max_iter=50).fit(X)
    np.testing.assert_allclose(polished.cluster_centers_, lloyd.cluster_centers_)
    assert polished.inertia_ <= fitted.inertia_
    assert len(polished.objective_history_) == 10 + len(lloyd.objective_history_)


def test_the_callback_is_called_for_each_step(X):
    heard = []
    model = learned(6, random_state=0, n_steps=4, callback=heard.append).fit(X)
    assert [p.iteration for p in heard] == [0, 1, 2, 3]
    assert [p.objective for p in heard] == pytest.approx(model.objective_history_[:-1])


def test_untrained_recipes_are_refused(X):
    with pytest.raises(ValueError, match=r"learned leaves its weights free.*use LearnedKMeans"):
        lf.CircuitClusterer(6, recipe=lf.recipes.learned()).fit(X)


def test_without_steps_the_centers_are_the_start(X):
    model = learned(6, init=X[:6], n_init=1, n_steps=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, X[:6])


def test_several_starts_keep_the_best(X):
    one = learned(6, init="random", n_init=1, random_state=1).fit(X)
    many = learned(6, init="random", n_init=8, random_state=1).fit(X)
    assert many.inertia_ <= one.inertia_


def test_a_constant_column(X):
    X[:, 2] = 4.0
    model = learned(6, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()


def test_tensors_and_frames(X):
    tensor = learned(6, random_state=0).fit(torch.tensor(X))
    assert isinstance(tensor.cluster_centers_, torch.Tensor)
    frame = learned(6, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")))
    assert frame.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(frame.cluster_centers_, tensor.cluster_centers_.numpy())


def test_clone_pipeline_and_saving(X, fitted, tmp_path):
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert len(make_pipeline(StandardScaler(), again).fit_predict(X)) == 300
    fitted.save_pretrained(tmp_path / "model")
    loaded = lf.LearnedKMeans.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.labels_)


@pytest.mark.parametrize(
    ("k", "pretrained", "words"),
    [
        (5, "auto", "no weights for 4 features and 5 clusters; the package has d4-k6, d8-k6"),
        (5, "d4-k6", r"d4-k6 is for 4 features and 6 clusters, and found 4 and 5"),
        (10, "d32-k10", r"train the missing one with 'lloydformer train -d 4 -k 10"),
        (6, "d5-k5", "found 'd5-k5'; there are d4-k6"),
    ],
)
def test_other_sizes_are_refused_with_the_repair(X, k, pretrained, words):
    with pytest.raises(ValueError, match=words):
        learned(k, pretrained=pretrained).fit(X)


@pytest.mark.parametrize("pretrained", ["symmetric", "d4-k6", "auto"])
def test_the_card_is_read_once_per_fit(X, pretrained, monkeypatch):
    paths, read_json = [], reading.read_json
    monkeypatch.setattr(reading, "read_json", lambda path: (paths.append(path), read_json(path))[1])
    learned(6, pretrained=pretrained, n_init=2).fit(X)
    assert len(paths) == 1


def test_sample_weights_are_refused(X):
    with pytest.raises(ValueError, match="sample_weight: a trained layer for one d and k has none"):
        learned(6).fit(X, sample_weight=np.ones(300))


def test_bad_data_are_refused(X):
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=6"):
        learned(6).fit(X[:3])
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learned(6).fit(X)


@pytest.mark.long
def test_memory_is_bounded_for_many_points(rng):
    """All scores of 20,000 points would take 1.6 GB in float32, and twice that with softmax."""
    X = rng.uniform(size=(20_000, 4)).astype(np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    learned(6, n_steps=1, random_state=0).fit(X)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1 << 20  # KiB: 1 GiB
