"""Columns that are scaled by logarithms and ranks: fits, predictions, folders and descriptions."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.data import mapped_files

RNG = np.random.default_rng(0)
LABELS = np.arange(900) % 3
MIDDLES = np.array([[3.0, 1.0], [8.0, 1.0], [3.0, 6.0]])
LOGS = MIDDLES[LABELS] + 0.4 * RNG.normal(size=(900, 2))
X = np.column_stack(
    [np.exp(LOGS), RNG.standard_cauchy(900), 30 * LABELS + 3 * RNG.normal(size=900) + 40]
)
TYPES = (np.float64, np.float32)


@pytest.fixture(scope="module", params=TYPES, ids=["float64", "float32"])
def blocks(request):
    return lf.data.open_dataset(X.astype(request.param), scale="auto")


def fit(blocks, **options):
    return lf.KMeans(3, n_init=5, random_state=0, **options).fit(blocks)


def test_the_methods(blocks):
    methods = [choice.method for choice in blocks.scaling.choices]
    assert methods == ["log", "log", "rank", "standard"]


def test_centers_are_means_of_scaled_rows_in_the_units_of_the_data(blocks):
    model = fit(blocks)
    assert adjusted_rand_score(LABELS, model.labels_) > 0.99
    # The scaler has the same scales; it is the truth for both directions.
    scaler = lf.Scaler().fit(blocks.points.numpy())
    rows = scaler.transform(X)
    means = np.stack([rows[model.labels_ == j].mean(axis=0) for j in range(3)])
    np.testing.assert_allclose(model.cluster_centers_, scaler.inverse_transform(means), rtol=2e-4)
    inertia = np.square(rows - means[model.labels_]).sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-4)


@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_rows_in_the_units_of_the_data_get_the_labels_of_the_fit(blocks, engine, tmp_path):
    model = fit(blocks, engine=engine)
    rows = blocks.points.numpy()
    model.save_pretrained(tmp_path / "model")
    again = lf.KMeans.from_pretrained(tmp_path / "model")
    for one in (model, again):
        for given in (
            blocks,
            rows,
            rows.tolist(),
            torch.from_numpy(rows),
            lf.data.open_dataset(rows),
        ):
            assert np.array_equal(one.predict(given), model.labels_)
        assert one.score(rows) == pytest.approx(-model.inertia_, rel=1e-6)
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    distances = model.transform(rows).min(axis=1)
    np.testing.assert_allclose(
        model.distances_to_centers(rows, model.labels_), distances, rtol=1e-4
    )


def test_medoids_are_rows_to_the_last_bit(blocks):
    model = lf.KMedoids(3, random_state=0).fit(blocks)
    rows = blocks.points.numpy()
    np.testing.assert_array_equal(model.cluster_centers_, rows[model.medoid_indices_])
    assert np.array_equal(model.predict(rows), model.labels_)


@pytest.mark.parametrize("name", ["RelocatingKMeans", "TrimmedKMeans", "SoftKMeans",
                                  "RobustKMeans"])  # fmt: skip
def test_other_estimators(blocks, name):
    model = getattr(lf, name)(3, random_state=0).fit(blocks)
    kept = model.labels_ >= 0
    assert adjusted_rand_score(LABELS[kept], model.labels_[kept]) > 0.97
    assert np.array_equal(model.predict(blocks.points.numpy())[kept], model.labels_[kept])


def test_a_fit_with_a_checkpoint_is_the_same(blocks, tmp_path):
    path = str(tmp_path / "state")
    assert np.array_equal(fit(blocks, checkpoint=path).labels_, fit(blocks).labels_)


def test_given_centers_are_in_the_units_of_the_data(blocks):
    start = fit(blocks).cluster_centers_
    again = lf.KMeans(3, init=start).fit(blocks)
    assert again.n_iter_ == 1
    np.testing.assert_allclose(again.cluster_centers_, start, rtol=1e-5)


def test_later_batches_have_the_scales_of_the_first(blocks):
    stream = lf.KMeans(3, init=fit(blocks).cluster_centers_).partial_fit(blocks)
    before = stream.cluster_centers_
    stream.partial_fit(blocks.points.numpy())
    np.testing.assert_allclose(stream.cluster_centers_, before, rtol=1e-3)


def test_missing_and_infinite_values_are_refused(blocks):
    model = fit(blocks)
    for value in (np.nan, np.inf):
        for column in range(4):
            rows = blocks.points.numpy()[:3].copy()
            rows[1, column] = value
            for given in (rows, torch.from_numpy(rows)):
                with pytest.raises(ValueError, match=r"NaN|infinity"):
                    model.predict(given)


def test_new_rows_beyond_the_fit(blocks):
    rows = np.array([[0.0, -3.0, 1e9, 40.0]], dtype=blocks.points.numpy().dtype)
    assert np.isfinite(fit(blocks).transform(rows)).all()


def test_a_description_is_in_the_units_of_the_data(blocks):
    model = fit(blocks)
    rows = blocks.points.numpy()
    for given in (rows, blocks):
        found = lf.describe(model, given).columns
        for j in range(3):
            median = np.median(rows[model.labels_ == j, 0])
            assert found.loc[(j, "x1"), "median"] == pytest.approx(median, rel=1e-5)


def test_rows_larger_than_memory(monkeypatch):
    expected = fit(lf.data.open_dataset(X, scale="auto"))
    monkeypatch.setattr(mapped_files, "_IN_MEMORY", 1000)
    blocks = lf.data.open_dataset(X, scale="auto")
    found = fit(blocks)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert np.array_equal(found.predict(X), expected.labels_)


def test_dask_collections(blocks):
    array = pytest.importorskip("dask.array")
    model = fit(blocks)
    rows = array.from_array(blocks.points.numpy(), chunks=(300, 4))
    assert np.array_equal(model.predict(rows).compute(), model.labels_)
    with pytest.raises(ValueError, match="add up the scores of parts in memory"):
        model.score(rows)


def test_one_of_two_words_is_one_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 5.0, 9.0], "smoker": ["yes", "no", "yes"]})
    opened = lf.data.open_dataset(frame, one_hot=["smoker"])
    assert opened.names == ("a", "smoker=yes")
    assert opened.points[:, 1].tolist() == [1.0, 0.0, 1.0]
