"""Models show themselves: `plot`, `describe`, and a table in notebooks."""

import inspect
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import lloydformer as lf
from lloydformer.estimators.presentation import SHOWN_BY, Presented

X = np.array([[0.0, 1.0], [1.0, 0.0], [8.0, 9.0], [9.0, 8.0], [8.5, 8.5]])


def cells(html):
    body = html.split("<tbody>")[-1]
    rows = re.findall("<tr>(.*?)</tr>", body)
    return [re.findall("<td[^>]*>(.*?)</td>", row) for row in rows]


@pytest.mark.parametrize("method", ["plot", "describe"])
def test_a_method_has_the_arguments_of_the_function_that_does_its_work(method):
    module, _, name = SHOWN_BY[method].partition(":")
    function = inspect.unwrap(getattr(import_module(module), name))
    own = inspect.signature(inspect.unwrap(getattr(Presented, method))).parameters
    wanted = inspect.signature(function).parameters
    assert [*own][1:] == [*wanted][1:]
    assert all(own[n].default == p.default for n, p in wanted.items() if n != "model")


def test_every_method_has_its_function():
    assert set(SHOWN_BY) == {"plot", "describe"}


def test_a_fitted_model_shows_sizes_and_centers_in_a_notebook():
    frame = pd.DataFrame(X, columns=["<b>", "wide"])
    model = lf.KMeans(2, init=X[[0, 3]]).fit(frame)
    html = model._repr_html_()
    assert html.startswith(estimator_html_repr(model)[:100])
    assert cells(html) == [["0", "2", "0.5", "0.5"], ["1", "3", "8.5", "8.5"]]
    assert "&lt;b&gt;</th>" in html
    assert model._repr_mimebundle_()["text/html"].endswith(html[-200:])


def test_an_unfitted_model_shows_its_parameters_alone():
    model = lf.KMeans(2)
    assert "<table style" not in model._repr_html_().split("</style>")[-1]


def test_display_as_text_is_respected():
    model = lf.KMeans(2, random_state=0).fit(X)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert [*model._repr_mimebundle_()] == ["text/plain"]


def test_rows_left_out_and_long_tables_are_told():
    far = np.vstack([X, [[99.0, 99.0]]])
    model = lf.TrimmedKMeans(2, keep=0.75, init=X[[0, 3]]).fit(far)
    assert f"{len(model.outliers_)} rows were left out" in model._repr_html_()
    rows = np.random.default_rng(0).normal(size=(60, 12))
    html = lf.KMeans(25, random_state=0).fit(rows)._repr_html_()
    assert "the first 20 of 25 clusters, the first 8 of 12 columns" in html
    assert len(cells(html)) == 20


def test_tensors_and_models_without_labels():
    model = lf.KMeans(2, random_state=0).fit(torch.from_numpy(X))
    assert sorted(row[1] for row in cells(model._repr_html_())) == ["2", "3"]
    del model.labels_
    assert len(cells(model._repr_html_())[0]) == 3


def test_nothing_is_computed_from_rows(monkeypatch):
    model = lf.KMeans(2, random_state=0).fit(X)
    for name in ("predict", "transform", "distances_to_centers", "_read"):
        monkeypatch.setattr(lf.KMeans, name, None)
    assert cells(model._repr_html_())


def test_a_pipeline_shows_its_own_diagram():
    pipeline = make_pipeline(StandardScaler(), lf.KMeans(2, random_state=0)).fit(X)
    assert "Sizes and centers" not in pipeline._repr_html_()
