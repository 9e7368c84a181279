"""Pieces of collections without a cluster: where parts go, and what a look at a piece finds."""

import numpy as np
import pytest

from lloydformer.engines.dask.chunks import split_weights, survey_chunk, survey_weights, to_rows
from lloydformer.engines.dask.placement import merge_neighbours, place_partitions, share_out
from lloydformer.engines.partitioned.partitions import cut_partitions


def test_parts_stay_where_most_of_their_rows_are():
    parts = cut_partitions([100, 100, 100, 100], leaf=64)
    found = place_partitions(parts, [["a"], ["a"], ["b"], ["b"]], {"a": 1, "b": 1})
    assert found == ["a", "a", "b", "b"]


def test_a_worker_that_has_everything_gives_some_away():
    parts = cut_partitions([640] * 4, leaf=64)
    found = place_partitions(parts, [["a"]] * 4, {"a": 1, "b": 1})
    assert sorted(found) == ["a", "a", "b", "b"]
    found = place_partitions(parts, [["a"]] * 4, {"a": 3, "b": 1})  # by their threads
    assert sorted(found) == ["a", "a", "a", "b"]


def test_rows_on_workers_that_are_gone_go_anywhere():
    parts = cut_partitions([640] * 2, leaf=64)
    assert sorted(place_partitions(parts, [["gone"], []], {"a": 1, "b": 1})) == ["a", "b"]


def test_a_long_piece_is_cut_so_that_every_worker_has_some():
    found = cut_partitions([1000], leaf=64, most=300)
    assert [cut.stop - cut.start for cut in found] == [256, 256, 256, 232]


def test_neighbours_are_computed_on_the_same_worker_by_its_threads():
    assert share_out(6, {"b": 1, "a": 2}) == ["a"] * 4 + ["b"] * 2
    assert share_out(1, {"b": 1, "a": 1}) == ["a"]
    assert share_out(0, {"a": 1}) == []


def test_parts_that_stand_together_on_a_worker_become_one():
    parts = cut_partitions([100, 100, 100, 500], leaf=64)
    found, workers = merge_neighbours(parts, ["a", "a", "b", "b"], 250)
    assert workers == ["a", "b", "b"]  # the last two would be too long
    assert found[0].stop == parts[1].stop
    assert found[0].sources == ((0, 0, 100), (1, 0, 92))  # not cut any more
    assert merge_neighbours(parts, ["a", "b", "a", "b"], 900)[0] == parts


def test_what_a_look_at_a_piece_finds():
    found = survey_chunk(0, np.array([[0, 0], [1, np.inf], [3, 4]], dtype=np.float32))
    assert (found.n_rows, found.n_features, found.is_float32) == (3, 2, True)
    assert (found.not_finite, found.no_direction, found.n_zero) == (1, 0, 1)
    np.testing.assert_array_equal(found.ends, [[0, 0], [3, np.inf]])
    nothing = survey_chunk(1, np.zeros((0, 2)))
    assert nothing.ends is None
    assert nothing.n_rows == 0


@pytest.mark.parametrize("block", [np.zeros(3), np.zeros((1, 2, 3)), np.array([["a"]])])
def test_blocks_that_are_no_rows_of_numbers_are_named(block):
    with pytest.raises(ValueError, match="X: partition 4"):
        to_rows(4, block)


def test_sparse_blocks_are_refused():
    from scipy import sparse

    with pytest.raises(ValueError, match="partition 2 is a sparse matrix"):
        to_rows(2, sparse.csr_matrix((2, 2)))


def test_weights_are_cut_as_the_rows_are():
    first, second = split_weights(np.arange(5), [2, 3])
    np.testing.assert_array_equal(second, [2, 3, 4])
    found = survey_weights(0, first, np.array([[0.0], [1.0]]), directions=True)
    assert (found.largest, found.smallest, found.n_weighted) == (1.0, 1.0, 1)
    with pytest.raises(ValueError, match="one weight for each of the 4 rows"):
        split_weights([1.0, 2.0], [2, 2])
