"""What class docstrings say of parameters and attributes is what the code has."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import ClassDoc

import lloydformer as lf
from lloydformer.engines import ENGINES
from lloydformer.estimators.parameter_checks import StrOptions

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
ESTIMATORS = [
    kind
    for name in lf.__all__
    if hasattr(kind := getattr(lf, name), "predict") and kind is not lf.Clusterer
]


def documented(kind: type[Any], section: str) -> dict[str, str]:
    """The names of a section and their types, as they are written."""
    return {entry.name: entry.type for entry in ClassDoc(kind)[section]}


PARAMETERS = [
    pytest.param(kind, name, parameter.default, id=f"{kind.__name__}-{name}")
    for kind in ESTIMATORS
    for name, parameter in inspect.signature(kind).parameters.items()
]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)  # from 0 to 1, which all mixtures accept
    return pd.DataFrame(rng.uniform(size=(40, 3)), columns=["a", "b", "c"])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_fitted_attribute_is_documented(kind, frame):
    model = kind(2, random_state=0).fit(frame)
    if hasattr(model, "partial_fit"):
        model.partial_fit(frame)
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert fitted == set(documented(kind, "Attributes"))


@pytest.mark.parametrize(("kind", "name", "default"), PARAMETERS)
def test_the_documented_default_is_that_of_the_constructor(kind, name, default):
    _, _, written = documented(kind, "Parameters")[name].rpartition(", default=")
    assert ast.literal_eval(written) == default


OWN_ENGINES = set(ENGINES) - {"remote"}  # which belongs to the tests


def test_an_unknown_engine_is_refused_with_the_names_of_the_others():
    with pytest.raises(ValueError, match=r"engine: found 'quick'.*native, chunked"):
        lf.KMeans(2, engine="quick").fit([[0.0], [1.0], [2.0]])


@pytest.mark.parametrize(("kind", "name", "default"), PARAMETERS)
def test_the_documented_options_are_those_that_fit_accepts(kind, name, default):
    kinds, _, _ = documented(kind, "Parameters")[name].rpartition(", default=")
    constraints = kind._parameter_constraints[name]
    accepted = [c.options for c in constraints if isinstance(c, StrOptions)]
    if name == "engine":  # checked by `choose`, so that engines can be added
        accepted = [{"auto", *OWN_ENGINES}]
    assert set(re.findall(r'"(.*?)"', kinds)) == set().union(*accepted)


def test_the_page_says_which_shared_parameters_are_lacking():
    text = PAGE.read_text(encoding="utf-8").split("<!-- lacking")[1].split("<!-- end -->")[0]
    written = {
        name: set(re.findall(r"`(\w+)`", lacks))
        for names, lacks in re.findall(r"^\| (`.+?`) \| (`.+?`) \|", text, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    shared = inspect.signature(lf.CircuitClusterer).parameters.keys() - {"recipe"}
    found = {k.__name__: shared - inspect.signature(k).parameters.keys() for k in ESTIMATORS}
    assert written == {name: lacks for name, lacks in found.items() if lacks}
    assert len(shared) == 14


def test_all_estimators_are_checked():
    assert len(ESTIMATORS) >= 9
    assert len(PARAMETERS) >= 120
