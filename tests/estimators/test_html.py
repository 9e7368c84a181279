"""The HTML representation in a notebook shows the documentation of parameters and attributes."""

import html
import re
from typing import Any

import numpy as np
import pytest
import sklearn
from numpydoc.docscrape import ClassDoc
from packaging.version import Version
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf

ESTIMATORS = [
    kind
    for name in lf.__all__
    if hasattr(kind := getattr(lf, name), "predict") and kind is not lf.Clusterer
]
INSTALLED = Version(sklearn.__version__)
shows_parameters = pytest.mark.skipif(
    Version("1.8") > INSTALLED, reason="scikit-learn 1.8 shows them"
)
shows_attributes = pytest.mark.skipif(
    Version("1.9") > INSTALLED, reason="scikit-learn 1.9 shows them"
)
SHOWN = re.compile(r'<span class="param-doc-description".*?>\s*(\w+): (.*?)</span>', re.DOTALL)


def shown(model: Any) -> dict[str, str]:
    """The descriptions in the page, by name, as plain text."""
    return {name: plain(text) for name, text in SHOWN.findall(model._repr_html_())}


def plain(text: str) -> str:
    return " ".join(html.unescape(text.replace("<br>", " ")).split())


def described(kind: type[Any], section: str) -> dict[str, str]:
    """The descriptions in the docstring of the class, by name."""
    return {e.name: plain(f"{e.type} {' '.join(e.desc)}") for e in ClassDoc(kind)[section]}


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 3))


@shows_parameters
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_is_described(kind):
    model = kind()
    assert model.get_params().keys() == shown(model).keys()
    assert shown(model) == described(kind, "Parameters")


@shows_attributes
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_fitted_one_describes_its_attributes_as_well(kind, points):
    # from 0 to 1, which all mixtures accept
    unit = (points - points.min()) / np.ptp(points)
    model = kind(2, random_state=0).fit(unit)
    found, attributes = shown(model), described(kind, "Attributes")
    assert found == described(kind, "Parameters") | {
        n: attributes[n] for n in found if n[-1] == "_"
    }
    own = {"means_"} if hasattr(model, "means_") else {"cluster_centers_", "inertia_"}
    assert {"labels_", "n_iter_", *own} <= found.keys()


@shows_parameters
def test_in_a_pipeline_too(points):
    model = make_pipeline(StandardScaler(), lf.KMeans(2, random_state=0)).fit(points)
    assert shown(model).items() >= described(lf.KMeans, "Parameters").items()


def test_the_link_leads_to_the_source_with_the_docstring():
    link = lf.TrimmedKMeans()._get_doc_link()
    assert link.startswith("file://")
    assert link.endswith("/lloydformer/estimators/trimmed.py")


def test_a_class_of_the_user_has_no_link():
    class Mine(lf.KMeans):
        pass

    assert Mine()._get_doc_link() == ""
    assert "Mine" in Mine()._repr_html_()
