"""The radius that holds a mass, against sorting."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lloydformer.plans.trimmed import find_radii

DTYPES = {np.float32: torch.float32, np.float64: torch.float64}


def found(small, distances, labels, weights, targets, dtype):
    """Radii of clusters whose points have these squared distances."""
    few = small(np.zeros((len(labels), 1), dtype), weights, leaf=3)
    few.session.state.column("labels").copy_(torch.tensor(labels))
    few.session.state.column("distances").copy_(torch.tensor(np.asarray(distances, dtype)))
    return find_radii(
        few.session, torch.tensor(targets, dtype=torch.float64), DTYPES[dtype]
    ).tolist()


def by_sorting(distances, labels, weights, targets):
    """The first distance, upwards, at which the mass of the cluster reaches its target."""
    expected = []
    for cluster, target in enumerate(targets):
        own = np.flatnonzero(labels == cluster)
        own = own[np.argsort(distances[own], kind="stable")]
        reached = np.cumsum(weights[own]) >= target
        expected.append(float(distances[own][reached.argmax()]))
    return expected


@st.composite
def clusters(draw):
    """Two clusters of squared distances with ties and zeros, weights in quarters, targets."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    n = draw(st.integers(2, 12))
    spread = st.floats(0, 1e6, width=32) | st.sampled_from([0.0, 1.0, 1e-30])
    distances = draw(arrays.arrays(dtype, n, elements=spread))
    labels = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    weights = np.array(draw(st.lists(st.integers(1, 8), min_size=n, max_size=n))) / 4
    masses = np.bincount(labels, weights)
    targets = [np.ceil(draw(st.floats(0.01, 1)) * 4 * m) / 4 for m in masses]
    return distances, labels, weights, targets, dtype


@given(clusters())
def test_radii_are_those_found_by_sorting(small, problem):
    distances, labels, weights, targets, dtype = problem
    expected = by_sorting(distances, labels, weights, targets)
    assert found(small, distances, labels, weights, targets, dtype) == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.95, 1.0])
def test_radii_are_quantiles(small, keep, dtype, rng):
    distances = rng.exponential(size=101).astype(dtype)
    target = np.ceil(keep * 101)
    expected = np.quantile(distances, target / 101, method="inverted_cdf")
    assert found(small, distances, np.zeros(101, int), None, [target], dtype) == [expected]


def test_a_weight_of_zero_holds_nothing(small):
    """Masses 1, 0, 1 at 1, 2, 3: half is reached at 1, more than half at 3."""
    for target, radius in ((1.0, 1.0), (1.5, 3.0), (2.0, 3.0)):
        assert found(small, [1, 2, 3], [0, 0, 0], [1, 0, 1], [target], np.float64) == [radius]


def test_neighbouring_numbers_are_told_apart(small):
    """The last bit counts."""
    next_to_one = np.nextafter(1.0, 2.0)
    for target, radius in ((1.0, 1.0), (2.0, next_to_one)):
        assert found(small, [next_to_one, 1.0], [0, 0], None, [target], np.float64) == [radius]
