"""K-means, relocating and trimmed k-means of rows with missing values."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import lloydformer as lf
from lloydformer.algorithms import Missing
from lloydformer.plans.lower import lower
from lloydformer.plans.missing import plan_for_missing

POLICIES = ("ignore", "impute")
KINDS = (lf.KMeans, lf.RelocatingKMeans, lf.TrimmedKMeans)


def draw_rows(seed=0, n=120, d=4, k=3, missing=0.3, spread=4.0):
    """Return rows around k centers, with missing values, and their clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    rows = spread * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d))
    gaps = rng.random((n, d)) < missing
    gaps[gaps.all(axis=1), 0] = False
    rows[gaps] = np.nan
    return rows, labels


def starts_of(rows, k=3):
    """Return k rows with their missing values filled in."""
    return np.where(np.isnan(rows[:k]), np.nanmean(rows, axis=0), rows[:k])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("engine", ["native", "chunked"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterations_are_those_of_the_definition(policy, engine, dtype):
    rows, _ = draw_rows(seed=3)
    start = starts_of(rows)
    wanted = Missing(policy).run(rows, start, 4)
    model = lf.KMeans(3, init=start, missing=policy, max_iter=4, tol=0, engine=engine)
    model.fit(rows.astype(dtype))
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    assert np.allclose(model.cluster_centers_, wanted.centers[model.n_iter_], atol=tolerance)
    costs = [Missing(policy).objective(rows, centers) for centers in wanted.centers]
    assert np.allclose(model.objective_history_, costs[: model.n_iter_ + 1], rtol=tolerance)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_circuit_is_the_plain_algorithm_and_lowers_to_the_plan(policy):
    for seed in range(5):
        rows, _ = draw_rows(seed, n=30, missing=0.4)
        start = starts_of(rows)
        circuit = lf.Circuit(lf.recipes.missing(policy), n_features=4, n_clusters=3)
        trace, wanted = circuit(rows, start, n_layers=5), Missing(policy).run(rows, start, 5)
        assert np.allclose(trace.centers, wanted.centers, atol=1e-9)
        assert (trace.labels.numpy() == wanted.labels).all()
        costs = [Missing(policy).objective(rows, centers) for centers in wanted.centers]
        assert np.allclose(trace.objective, costs)
    plan = lower(lf.recipes.missing(policy))
    assert plan == plan_for_missing(lower(lf.recipes.lloyd()), policy)


def test_a_circuit_of_complete_points_is_lloyds():
    points = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    one, other = (
        lf.Circuit(recipe, 3, 4)(points, points[:4], n_layers=6)
        for recipe in (lf.recipes.missing(), lf.recipes.lloyd())
    )
    assert torch.allclose(one.centers, other.centers, atol=1e-12)
    assert torch.allclose(one.objective, other.objective)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_best_of_many_starts_is_that_of_all_partitions(policy):
    for seed in range(4):
        rows, _ = draw_rows(seed, n=7, d=3, k=2, missing=0.3, spread=2.0)
        oracle, best = Missing(policy), np.inf
        for labels in itertools.product(range(2), repeat=6):
            own = np.eye(2)[[0, *labels]]
            if 0 in own.sum(axis=0):
                continue
            # "impute" ends at the means of the observed values, as "ignore" with equal factors
            centers = starts_of(rows, 2)
            shares = 3 / (~np.isnan(rows)).sum(axis=1) if policy == "ignore" else np.ones(len(rows))
            for j, column in itertools.product(range(2), range(3)):
                there = (own[:, j] == 1) & ~np.isnan(rows[:, column])
                if there.any():
                    centers[j, column] = np.average(rows[there, column], weights=shares[there])
            best = min(best, oracle.objective(rows, centers))
        model = lf.KMeans(2, missing=policy, n_init=60, init="random", tol=0, random_state=0)
        assert model.fit(rows).inertia_ == pytest.approx(best, rel=1e-6)


@given(st.integers(0, 10**6), st.sampled_from(POLICIES), st.sampled_from(KINDS), st.booleans())
def test_objectives_never_rise(seed, policy, kind, weighted):
    rows, _ = draw_rows(seed, n=40, missing=0.1 + seed % 5 / 10, spread=1.0)
    weights = np.random.default_rng(seed).integers(0, 4, len(rows)) if weighted else None
    kind = kind if kind is not lf.TrimmedKMeans else lf.KMeans  # trimming has no objective to lower
    model = kind(4, missing=policy, random_state=seed % 1000, max_iter=40)
    model.fit(rows, sample_weight=weights)
    history = model.objective_history_
    assert (np.diff(history) <= 1e-9 * history[0]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_complete_rows_are_those_of_the_usual_fit(kind, policy):
    rows, _ = draw_rows(missing=0.0)
    usual = kind(3, random_state=0).fit(rows)
    model = kind(3, random_state=0, missing=policy).fit(rows)
    assert (model.labels_ == usual.labels_).all()
    assert model.inertia_ == usual.inertia_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_predict_transform_and_score_take_missing_values(kind, policy):
    rows, _ = draw_rows(seed=1)
    model = kind(3, missing=policy, random_state=0).fit(rows)
    labels, away = model.predict(rows), model.transform(rows)
    squares = [
        [Missing(policy).squares(row, center) for center in model.cluster_centers_] for row in rows
    ]
    assert np.allclose(away, np.sqrt(squares))
    assert (labels == np.argmin(squares, axis=1)).all()
    assert np.allclose(model.distances_to_centers(rows), np.sqrt(np.min(squares, axis=1)))
    assert model.score(rows) == pytest.approx(-model.inertia_)
    kept = model.labels_ >= 0
    assert (labels[kept] == model.labels_[kept]).all()
    one = model.predict(rows[:1])  # the same with few rows, and with a complete one
    assert one[0] == labels[0]
    assert model.predict(model.cluster_centers_).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_of_weight_two_counts_twice(kind, policy):
    rows, _ = draw_rows(seed=2)
    weights = np.random.default_rng(0).integers(0, 3, len(rows))
    start = starts_of(rows)
    weighted = kind(3, init=start, missing=policy, random_state=0)
    weighted.fit(rows, sample_weight=weights)
    repeated = kind(3, init=start, missing=policy, random_state=0)
    if kind is lf.RelocatingKMeans:  # draws depend on the rows
        weighted, repeated = (m.set_params(patience=0) for m in (weighted, repeated))
        weighted.fit(rows, sample_weight=weights)
    repeated.fit(np.repeat(rows, weights, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert np.allclose(weighted.cluster_centers_, repeated.cluster_centers_)


@pytest.mark.parametrize("policy", POLICIES)
def test_relocations_find_what_many_starts_find(policy):
    rows, _ = draw_rows(seed=5, n=400, d=6, k=12, missing=0.2, spread=6.0)
    start = np.nan_to_num(rows[:1]) + 0.01 * np.random.default_rng(0).normal(size=(12, 6))
    stuck = lf.KMeans(12, init=start, missing=policy).fit(rows)
    found = lf.RelocatingKMeans(12, init=start, missing=policy, random_state=0).fit(rows)
    many = lf.KMeans(12, n_init=20, missing=policy, random_state=0).fit(rows)
    assert found.inertia_ < 0.9 * stuck.inertia_
    assert found.inertia_ <= 1.01 * many.inertia_


def test_trimming_leaves_out_far_rows_with_missing_values():
    rows, _ = draw_rows(seed=7, n=200)
    rows[:5, 1:] += 60.0
    model = lf.TrimmedKMeans(
        3, keep=0.9, missing="ignore", init="robust", n_init=5, random_state=0
    ).fit(rows)
    seen = ~np.isnan(rows[:5, 1:]).all(axis=1)
    assert set(np.flatnonzero(seen)) <= set(model.outliers_.tolist())
    assert (model.labels_[model.outliers_] == -1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_frames_and_folders(tmp_path, dtype):
    pandas = pytest.importorskip("pandas")
    rows, _ = draw_rows()
    model = lf.KMeans(3, missing="ignore", random_state=0).fit(torch.tensor(rows, dtype=dtype))
    assert isinstance(model.labels_, torch.Tensor)
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    framed = lf.KMeans(3, missing="ignore", random_state=0).fit(frame)
    assert (framed.labels_ == model.labels_.numpy()).all()
    framed.save_pretrained(tmp_path / "model")
    again = lf.KMeans.from_pretrained(tmp_path / "model")
    assert again.missing == "ignore"
    assert (again.predict(frame) == framed.labels_).all()


def test_the_number_of_threads_does_not_change_a_bit():
    rows, _ = draw_rows(n=30_000, d=3)
    fits = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        fits.append(lf.KMeans(5, missing="ignore", random_state=0).fit(rows))
    assert (fits[0].cluster_centers_ == fits[1].cluster_centers_).all()


def test_errors_name_what_was_found():
    rows, _ = draw_rows()
    with pytest.raises(ValueError, match=r'missing values, the first in row .*missing="ignore"'):
        lf.KMeans(3).fit(rows)
    with pytest.raises(ValueError, match="or use KMeans, RelocatingKMeans or TrimmedKMeans with"):
        lf.SoftKMeans(3).fit(rows)
    model = lf.KMeans(3, missing="ignore", random_state=0).fit(rows)
    empty = rows.copy()
    empty[[17, 40]] = np.nan
    for call in (model.fit, model.predict, model.score, model.transform):
        with pytest.raises(ValueError, match="found no value in row 17 and 1 more rows; remove"):
            call(empty)
    column = rows.copy()
    column[:, 2] = np.nan
    column[np.isnan(column).all(axis=1), 0] = 0.0
    with pytest.raises(ValueError, match="found no value in column 2; remove this column"):
        model.fit(column)
    model.fit(rows).predict(column)  # other rows may lack a column
    with pytest.raises(ValueError, match="found a sparse matrix with missing='ignore'"):
        lf.KMeans(3, missing="ignore").fit(sparse.csr_matrix(np.nan_to_num(rows)))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(rows > 5, np.inf, rows))
    with pytest.raises(ValueError, match="missing: found 'ignore' in partial_fit"):
        lf.KMeans(3, missing="ignore").partial_fit(rows)
    with pytest.raises(ValueError, match="batch_size: X has missing values"):
        lf.KMeans(3, missing="ignore", batch_size=50).fit(rows)
    with pytest.raises(ValueError, match="effort: found 'high' for rows with missing values"):
        lf.RelocatingKMeans(3, missing="ignore", effort="high").fit(rows)
    with pytest.raises(ValueError, match="missing"):
        lf.KMeans(3, missing="drop").fit(rows)


def test_rows_are_not_changed():
    rows, _ = draw_rows()
    copy = rows.copy()
    lf.KMeans(3, missing="impute", random_state=0).fit(rows).predict(rows)
    assert np.array_equal(rows, copy, equal_nan=True)
