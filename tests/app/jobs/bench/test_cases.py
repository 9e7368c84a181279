"""Points and cases of the benchmark."""

import numpy as np
import sklearn.cluster

from lloydformer.app.jobs.bench.cases import (
    draw_mixture,
    draw_noise,
    draw_rows,
    draw_word_counts,
    enlarge_data_set,
)
from lloydformer.app.jobs.bench.questions import QUESTIONS, BenchJob


def test_rows_of_words_are_sparse_and_have_topics():
    matrix = draw_word_counts(2000, 500, 20, topics=5, seed=0)
    assert matrix.shape == (2000, 500)
    assert matrix.has_canonical_format
    assert matrix.dtype == np.float32
    assert 12 < matrix.nnz / 2000 < 20  # a word that is drawn twice is one number
    assert matrix.data.min() > 0
    fitted = sklearn.cluster.KMeans(5, n_init=3, random_state=0).fit(matrix)
    alone = np.square(matrix - matrix.mean(axis=0)).sum()
    assert fitted.inertia_ < 0.95 * alone


def test_points_depend_on_the_seed_and_sets_are_repeated_with_jitter(tmp_path, rng):
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0), rng.normal(size=50) * 1000])
    np.savez(tmp_path / "set.npz", X=X)
    grown = enlarge_data_set(tmp_path / "set.npz", 1000, seed=3)
    assert grown.shape == (1000, 2)  # the constant column is dropped
    assert grown.dtype == np.float32
    assert len(np.unique(grown, axis=0)) == 1000
    assert -0.3 < grown.min() < grown.max() < 1.3
    assert np.array_equal(grown, enlarge_data_set(tmp_path / "set.npz", 1000, seed=3))
    assert np.array_equal(draw_mixture(100, 2, 3, seed=1), draw_mixture(100, 2, 3, seed=1))
    assert not np.array_equal(draw_noise(100, 2, 3, seed=1), draw_noise(100, 2, 3, seed=2))
    assert len(np.unique(draw_rows(grown, 50, seed=0), axis=0)) == 50


def test_names_of_rows_are_unique_and_sets_in_the_folder_are_used(tmp_path):
    for question in QUESTIONS.values():
        names = [case.name for case in question.cases(0)]
        assert len(set(names)) == len(names) > 0
    np.savez(tmp_path / "pendigits.npz", X=np.eye(4))
    names = [case.name for case in BenchJob("convergence", data=tmp_path).cases]
    assert names[4:] == ["pendigits, 1M, k 64"]


def test_small_problems_start_with_kmeans_plus_plus_and_from_a_given_start():
    drawn, given = (case.make() for case in QUESTIONS["small"].cases(0))
    assert drawn.start is None
    assert given.start.shape == (8, 10)
    assert np.array_equal(drawn.points, given.points)
