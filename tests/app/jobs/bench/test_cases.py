"""Points and cases of the benchmark."""

import numpy as np
import pytest
import sklearn.cluster

from lloydformer.app.jobs.bench.cases import (
    TAILED,
    draw_cauchy,
    draw_far_row,
    draw_lognormal,
    draw_mixture,
    draw_noise,
    draw_pareto,
    draw_rows,
    draw_scaled_normal,
    draw_word_counts,
    draw_zipf,
    enlarge_data_set,
    read_data_set,
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


def test_rows_with_tails_are_float32_and_as_heavy_as_their_names_say():
    size = (5000, 4, 3, 0)
    noise = draw_noise(*size)
    assert np.array_equal(draw_lognormal(0.0, *size), noise)
    assert np.array_equal(draw_scaled_normal(0.0, *size), noise)
    np.testing.assert_allclose(
        np.log1p(2 * draw_lognormal(2.0, *size)) / 2, noise, rtol=1e-3, atol=1e-3
    )
    far = draw_far_row(1e9, *size)
    np.testing.assert_allclose(far[0], noise[0] * 1e9, rtol=1e-6)
    assert np.array_equal(far[1:], noise[1:])
    draws = [
        *(draw_lognormal(sigma, *size) for sigma in (1.0, 2.0, 3.0)),
        *(draw_scaled_normal(s, *size) for s in (1.0, 2.0)),
        *(draw(*size) for draw in (draw_pareto, draw_cauchy, draw_zipf)),
    ]
    for points in draws:
        assert points.shape == (5000, 4)
        assert points.dtype == np.float32
        assert np.isfinite(points).all()
        lengths = np.linalg.norm(points - np.median(points, axis=0), axis=1)
        assert lengths.max() > 8 * np.median(lengths)  # 3 for normal rows


def test_the_question_tails_has_all_sizes_and_the_sets_of_a_folder(tmp_path):
    question = QUESTIONS["tails"]
    cases = question.cases(0)
    assert 30 <= len(cases) <= 50
    sizes = {tuple(case.name.split(", ")[-2:]) for case in cases}
    assert {size.split(" x ")[1] for size, _ in sizes} == {"2", "20", "128", "512"}
    assert {k for _, k in sizes} == {"k 10", "k 100", "k 1000"}
    assert {case.work for case in cases} == {"fit", "predict"}
    assert question.data_sets == TAILED
    X = np.column_stack([np.arange(200.0) ** 3, np.full(200, 5.0)])
    np.savez(tmp_path / "mc1.npz", X=X)
    job = BenchJob("tails", ["mc1"], data=tmp_path)
    names = [case.name for case in BenchJob("tails", data=tmp_path).cases[len(cases) :]]
    assert names == [
        f"{work}mc1, {kind}, k {k}"
        for kind in ("unscaled", "standardised")
        for k in (10, 100)
        for work in ("", "predict, ")
    ]
    assert job.skipped == [name for name in TAILED if name != "mc1"]
    problem = job.cases[0].make()
    assert (problem.max_iter, problem.tol, problem.start.shape) == (5, 0.0, (10, 2))
    np.testing.assert_array_equal(problem.points, X.astype(np.float32))
    scaled = read_data_set(tmp_path / "mc1.npz", standardised=True)
    assert scaled.shape == (200, 1)  # the constant column is left out
    assert scaled.std() == pytest.approx(1, rel=1e-5)


def test_initial_centers_are_distinct_where_rows_are_not():
    points = np.repeat(np.arange(12.0), 50)[:, None]
    assert len(np.unique(draw_rows(points, 10, seed=0))) == 10
