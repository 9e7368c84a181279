"""`lf.describe`: data frames and sentences agree with pandas and with each other."""

import builtins

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    np.array([[0, 0], [9, 0], [0, 9]])[np.arange(90) % 3] + RNG.normal(size=(90, 2)),
    columns=["a", "b"],
)
MODEL = lf.KMeans(3, random_state=0).fit(FRAME)


def test_the_frame_of_clusters():
    found = MODEL.describe(FRAME, names={1: "big"})
    frame = found.clusters
    assert frame["size"].tolist() == np.bincount(MODEL.labels_).tolist()
    assert frame["name"].tolist() == ["0", "big", "2"]
    assert frame["description"].tolist() == list(found.sentences)
    assert frame["share"].sum() == pytest.approx(1)
    distances = MODEL.transform(FRAME)
    assert frame["typical_row"].tolist() == distances.argmin(axis=0).tolist()
    means = [distances[MODEL.labels_ == j, j].mean() for j in range(3)]
    np.testing.assert_allclose(frame["mean_distance"], means)
    from sklearn.metrics import silhouette_samples

    values = silhouette_samples(FRAME, MODEL.labels_)
    expected = [values[MODEL.labels_ == j].mean() for j in range(3)]
    np.testing.assert_allclose(frame["silhouette"], expected)


def test_the_frame_of_columns():
    extra = {"kind": np.where(MODEL.labels_ == 0, "x", "y")}
    frame = MODEL.describe(FRAME, extra=extra).columns
    assert len(frame) == 3 * 3
    for j in range(3):
        own = FRAME[MODEL.labels_ == j]
        for name in ("a", "b"):
            row = frame.loc[(j, name)]
            assert row["median"] == pytest.approx(own[name].median())
            assert row["lower"] == pytest.approx(own[name].quantile(0.25))
            assert row["mean_of_all"] == pytest.approx(FRAME[name].mean())
            assert row["clustered"]
    assert not frame.loc[(0, "kind = x"), "clustered"]
    assert frame.loc[(0, "kind = x"), "mean"] == 1


def test_the_frame_of_importance_is_sorted():
    frame = MODEL.describe(FRAME).importance
    assert frame["importance"].is_monotonic_decreasing
    assert set(frame.index) == {"a", "b"}


def test_printed_and_in_a_notebook():
    found = MODEL.describe(FRAME, names={1: "<b>"})
    lines = str(found).splitlines()
    assert lines[0] == found.summary
    assert lines[2] == f"1 <b>: {found.sentences[1]}"
    html = found._repr_html_()
    assert "1 &lt;b&gt;" in html
    assert type(html) is str


def test_without_pandas_the_sentences_are_there_and_frames_say_what_is_missing(monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments, **more):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *arguments, **more)

    rows = FRAME.to_numpy()
    model = lf.KMeans(3, random_state=0).fit(rows)
    monkeypatch.setattr(builtins, "__import__", missing)
    found = lf.describe(model, rows)
    assert "3 groups" in found.summary
    with pytest.raises(ImportError, match="pandas is missing; get it with: pip install pandas"):
        found.clusters  # noqa: B018


def test_new_rows_of_a_long_frame_are_quick():
    """Silhouettes, maps and quartiles take samples: no n x n distances."""
    rows = RNG.normal(size=(100_000, 3))
    model = lf.KMeans(4, random_state=0, n_init=1, max_iter=5).fit(rows[:1000])
    assert model.describe(rows).clusters["size"].sum() == 100_000
