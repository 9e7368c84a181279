"""A range of k reads the data's extent once."""

import numpy as np
import pytest
from array_table import open_array

import lloydformer as lf
from lloydformer.app.jobs.fit.selection import fit_numbers
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.data import blocks as blocks_module

X = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def calls(monkeypatch):
    """The tensors whose extent was computed."""
    seen = []

    def counted(points, column_min_max=blocks_module.column_min_max):
        seen.append(points)
        return column_min_max(points)

    monkeypatch.setattr(blocks_module, "column_min_max", counted)
    return seen


@pytest.mark.parametrize("algorithm", ["kmeans", "trimmed", "spherical", "medoids"])
def test_the_extent_is_computed_once_for_all_k(calls, algorithm):
    settings = FitSettings(data="-", algorithm=algorithm, max_iter=3)
    result = fit_numbers(settings, *open_array(X), range(2, 21))
    assert [run.k for run in result.runs] == list(range(2, 21))
    assert len(calls) == 1


def test_other_data_have_an_extent_of_their_own(calls):
    model = lf.KMeans(2, random_state=0).fit(lf.data.open_dataset(X))
    model.partial_fit(lf.data.open_dataset(100 * X))
    assert len(calls) == 2
