"""The number of clusters by four criteria, on planted clusters and on none."""

import numpy as np
import pytest
import sklearn.metrics
import torch
from array_table import open_array

from lloydformer.app.jobs.fit.selection import calinski_harabasz, fit_numbers
from lloydformer.app.jobs.fit.settings import CRITERIA, FitSettings

RNG = np.random.default_rng(0)
MIDDLES = np.array([[0, 0], [9, 0], [0, 9], [9, 9.0]])
X = MIDDLES[np.arange(240) % 4] + RNG.normal(size=(240, 2))


ANGLES = (np.arange(240) % 4)[:, None] * np.pi / 2 + 0.05 * RNG.normal(size=(240, 1))
CASES = [
    *(("kmeans" if name != "bic" else "mixture", name) for name in CRITERIA),
    ("trimmed", "calinski-harabasz"),
    ("spherical", "silhouette"),
    ("spherical", "stability"),
    ("learned", "silhouette"),
]


@pytest.mark.parametrize(("algorithm", "criterion"), CASES)
def test_planted_clusters_are_counted(algorithm, criterion):
    points = X if algorithm != "spherical" else np.hstack([np.cos(ANGLES), np.sin(ANGLES)])
    settings = FitSettings(data="-", algorithm=algorithm, n_init=3, select=criterion)
    result = fit_numbers(settings, *open_array(points), range(2, 7))
    assert result.n_clusters == 4
    assert [run.k for run in result.runs] == [2, 3, 4, 5, 6]
    assert all(run.criterion == criterion and run.value is not None for run in result.runs)
    assert (criterion in result.runs[0].as_dict()) or criterion == "silhouette"


def test_the_gap_finds_no_clusters_in_noise():
    noise = open_array(RNG.random(size=(300, 3)))
    assert fit_numbers(FitSettings(data="-", select="gap"), *noise, range(1, 6)).n_clusters == 1


def test_calinski_harabasz_equals_that_of_scikit_learn():
    labels = RNG.integers(5, size=240)
    ours = calinski_harabasz(torch.from_numpy(X), torch.from_numpy(labels))
    assert ours == pytest.approx(sklearn.metrics.calinski_harabasz_score(X, labels), rel=1e-12)
    assert calinski_harabasz(torch.from_numpy(X), torch.zeros(240)) is None


@pytest.mark.parametrize("criterion", CRITERIA)
def test_more_clusters_than_distinct_points(criterion):
    same = open_array(np.repeat(MIDDLES, 3, axis=0))
    algorithm = "kmeans" if criterion != "bic" else "mixture"
    settings = FitSettings(data="-", select=criterion, algorithm=algorithm)
    assert fit_numbers(settings, *same, range(1, 13)).n_clusters >= 1
