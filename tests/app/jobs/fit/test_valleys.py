"""The evidence of valleys, on cases worked by hand, and against a version that moves each row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from lloydformer.app.jobs.fit.valleys import likely_pairs, pair_evidence

RNG = np.random.default_rng(0)
# Log likelihood ratios of a row in the middle and of one around a center: shares of the middle
# are 0.15 / 0.4 without a valley, and 0.105 / 0.355 with one.
MIDDLE, SIDE = np.log(0.105 / 0.355 / 0.375), np.log(0.25 / 0.355 / 0.625)


def test_rows_on_a_line_are_counted():
    rows = np.array([[0, 1, 2, 7, 9, 10, 10.5, 4.0, 20]]).T
    centers = np.array([[0.0], [10.0]])
    # 0, 1 and 2 are around the first center, 9, 10 and 10.5 around the second, 4 is in the middle.
    expected = MIDDLE + 3 * SIDE
    found = pair_evidence(rows, centers)
    assert np.allclose(found[0, 1], expected)
    assert found[0, 1] == found[1, 0]
    assert np.isnan(found.diagonal()).all()


def test_a_center_between_two_others_hides_them_from_each_other():
    found = pair_evidence(RNG.normal(size=(50, 1)), np.array([[-1.0], [0.0], [1.0]]))
    assert np.isnan(found[0, 2])
    assert np.isfinite([found[0, 1], found[1, 2]]).all()


def move_each_row(rows, centers):
    """The same counts, row by row, from the definition."""
    found = np.full((len(centers), len(centers)), np.nan)
    for i, one in enumerate(centers):
        for j, other in enumerate(centers):
            middle, line = (one + other) / 2, other - one
            nearest = np.linalg.norm(centers - middle, axis=1)
            if i == j or nearest.min() < nearest[i] - 1e-9:
                continue
            counts = np.zeros(3, dtype=int)
            for row in rows:
                t = (row - middle) @ line / (line @ line)
                distances = np.linalg.norm(centers - (row - t * line), axis=1)
                if distances.min() >= distances[i] - 1e-9:
                    counts += [abs(t + 0.5) < 0.25, abs(t) < 0.15, abs(t - 0.5) < 0.25]
            found[i, j] = counts[1] * MIDDLE + min(counts[0], counts[2]) * SIDE
    return found


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_rows_are_moved_along_the_line(seed, k, d):
    rng = np.random.default_rng(seed)
    rows, centers = rng.normal(size=(40, d)), rng.normal(size=(k, d))
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    found = pair_evidence(rows, centers)
    assert np.allclose(found, move_each_row(rows, centers), equal_nan=True)
    # Nothing depends on origin, axes and unit.
    moved = pair_evidence(3 * rows @ turn + 5, 3 * centers @ turn + 5)
    assert np.allclose(found, moved, equal_nan=True)


def test_cells_of_one_group_have_no_valley_between_them():
    """The edges of a honeycomb are shorter than its cells are wide, but rows are everywhere."""
    turns = np.arange(6) * np.pi / 3
    centers = np.vstack([np.zeros(2), np.stack([np.cos(turns), np.sin(turns)], axis=1)])
    rows = RNG.uniform(-2, 2, size=(4000, 2))
    found = pair_evidence(rows, centers)
    assert np.nanmax(found) < 0
    clusters = centers[RNG.integers(7, size=4000)] + 0.1 * RNG.normal(size=(4000, 2))
    assert np.nanmin(pair_evidence(clusters, centers)[0]) > 10


@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_normal_group_cut_in_two_has_no_valley(d):
    rows = RNG.normal(size=(500, d))
    ends = np.zeros((2, d))
    ends[:, 0] = -0.8, 0.8
    assert pair_evidence(rows, ends)[0, 1] < -5
    rows[:250, 0] += 6
    means = np.array([rows[:250].mean(axis=0), rows[250:].mean(axis=0)])
    assert pair_evidence(rows, means)[0, 1] > 10


def test_centers_at_one_place_have_no_valley():
    rows = RNG.normal(size=(20, 2))
    assert pair_evidence(rows, np.zeros((2, 2)))[0, 1] < 0
    assert np.isfinite(pair_evidence(rows[:0], RNG.normal(size=(3, 2)))[0, 1:]).any()


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_likely_pairs_are_the_forest_of_scipy_with_the_largest_sum(seed, k):
    rng = np.random.default_rng(seed)
    evidence = np.triu(rng.normal(size=(k, k)), 1)
    evidence = evidence + evidence.T
    evidence[rng.random((k, k)) < 0.2] = np.nan
    evidence = np.maximum(evidence, evidence.T)  # nan if one of the two is
    pairs = likely_pairs(evidence)
    # scipy finds the smallest sum of positive weights.
    weights = np.where(np.triu(evidence > 0, 1), 10 - evidence, 0)
    tree = minimum_spanning_tree(np.nan_to_num(weights))
    assert len(pairs) == tree.nnz
    assert sum(evidence[pair] for pair in pairs) == pytest.approx(10 * tree.nnz - tree.sum())
    assert all(evidence[pair] > 0 for pair in pairs)


def test_pairs_without_a_valley_are_not_likely():
    rows = RNG.normal(size=(300, 2))
    rows[:150] += [8, 0]
    rows[150:200] += [1, 0]  # no gap to the last 100
    centers = np.array([rows[:150].mean(axis=0), [1.2, 0.0], [-0.2, 0.0]])
    (pair,) = likely_pairs(pair_evidence(rows, centers))
    assert pair == (0, 1)
    assert likely_pairs(np.full((3, 3), np.nan)) == []
