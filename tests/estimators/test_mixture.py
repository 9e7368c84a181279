"""GaussianMixture is scikit-learn's, with weights; and the mixtures of other families."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn import mixture as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.algorithms import Mixture, MixtureState
from lloydformer.estimators import Clusterer
from lloydformer.plans.mixture import Components

KINDS = ("full", "tied", "diag", "spherical")


def blobs(n=400, d=3, k=3, seed=0, spread=8.0):
    """Stretched clusters, and the component of each row."""
    rng = np.random.default_rng(seed)
    own = np.arange(n) % k
    axes = rng.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    noise = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), axes[own])
    return rng.normal(0, spread, (k, d))[own] + noise, own


def given_start(rows, kind, k=3):
    """The same start for both: first rows, equal weights, one variance."""
    d = rows.shape[1]
    precisions = {
        "full": np.stack([np.eye(d) / 4] * k),
        "tied": np.eye(d) / 4,
        "diag": np.full((k, d), 0.25),
        "spherical": np.full(k, 0.25),
    }[kind]
    return {
        "n_components": k,
        "covariance_type": kind,
        "weights_init": np.full(k, 1 / k),
        "means_init": rows[:k],
        "precisions_init": precisions,
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_scikit_learns(kind, dtype):
    rows = blobs()[0].astype(dtype)
    start = given_start(rows, kind)
    ours = lf.GaussianMixture(**start).fit(rows)
    other = theirs.GaussianMixture(**start).fit(rows.astype(float))
    tolerance = 1e-8 if dtype == np.float64 else 1e-4
    assert (ours.n_iter_, ours.converged_) == (other.n_iter_, other.converged_)
    assert ours.lower_bound_ == pytest.approx(other.lower_bound_, abs=0.1 * tolerance)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        mine, yours = getattr(ours, name), getattr(other, name)
        assert mine.shape == yours.shape
        np.testing.assert_allclose(mine, yours, atol=tolerance, rtol=tolerance)
    assert np.array_equal(ours.labels_, other.predict(rows.astype(float)))
    for method in ("predict_proba", "score_samples"):
        mine, yours = getattr(ours, method)(rows), getattr(other, method)(rows.astype(float))
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, yours, atol=1e-7 if dtype == np.float64 else 1e-3)
    for method in ("score", "aic", "bic"):
        assert getattr(ours, method)(rows) == pytest.approx(
            getattr(other, method)(rows.astype(float)), rel=1e-6
        )


@pytest.mark.parametrize("kind", KINDS)
def test_lower_bounds_are_scikit_learns_iteration_by_iteration(kind):
    rows = blobs(seed=3, spread=2.0)[0]
    start = given_start(rows, kind) | {"tol": 0.0, "max_iter": 25}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = lf.GaussianMixture(**start).fit(rows)
        other = theirs.GaussianMixture(**start).fit(rows)
    np.testing.assert_allclose(ours.lower_bounds_[:20], other.lower_bounds_[:20], atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_data_far_from_zero_lose_nothing(kind):
    rows = blobs()[0]
    start = given_start(rows, kind)
    near = lf.GaussianMixture(**start).fit(rows)
    start["means_init"] = start["means_init"] + 1e4
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-3)):
        far = lf.GaussianMixture(**start).fit((rows + 1e4).astype(dtype))
        np.testing.assert_allclose(far.means_ - 1e4, near.means_, atol=tolerance)
        np.testing.assert_allclose(far.covariances_, near.covariances_, atol=20 * tolerance)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_start_finds_the_clusters(kind, init):
    rows, own = blobs(spread=30.0)
    model = lf.GaussianMixture(3, covariance_type=kind, init_params=init, n_init=6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows)
    if init != "random":  # components that begin all alike may stay so
        assert adjusted_rand_score(model.labels_, own) > 0.95
    again = model.fit(rows).means_
    assert np.array_equal(model.fit(rows).means_, again)


def test_stretched_clusters_need_a_mixture():
    rng = np.random.default_rng(0)
    own = np.arange(600) % 3
    rows = rng.normal(size=(600, 2)) * [5.0, 0.5] + own[:, None] * [4.0, 4.0]
    soft = lf.SoftKMeans(3, random_state=0).fit(rows)
    model = lf.GaussianMixture(3, n_init=5, random_state=0).fit(rows)
    assert adjusted_rand_score(soft.labels_, own) < 0.6
    assert adjusted_rand_score(model.labels_, own) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_a_row_twice(kind):
    rows = blobs(n=150)[0]
    counts = np.random.default_rng(0).integers(0, 4, len(rows))
    counts[:3] = 1
    start = given_start(rows, kind)
    weighted = lf.GaussianMixture(**start).fit(rows, sample_weight=counts)
    many = np.repeat(rows, counts, axis=0)
    repeated = lf.GaussianMixture(**start).fit(many)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, atol=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_)
    assert weighted.score(rows, sample_weight=counts) == pytest.approx(repeated.score(many))
    assert weighted.bic(rows, sample_weight=counts) == pytest.approx(repeated.bic(many))


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts_use_weights(init):
    """Rows without weight are as if they were not there."""
    rows = blobs(n=90)[0]
    noisy = np.concatenate([rows, rows + 1e3])
    weights = np.repeat([1.0, 0.0], len(rows))
    model = lf.GaussianMixture(2, init_params=init, random_state=0, reg_covar=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(noisy, sample_weight=weights)
    assert np.abs(model.means_).max() < 100


def test_frames_tensors_and_blocks_give_the_same(tmp_path):
    rows = blobs()[0]
    options = given_start(rows, "full")
    plain = lf.GaussianMixture(**options).fit(rows)
    frame = lf.GaussianMixture(**options).fit(pd.DataFrame(rows, columns=list("abc")))
    assert frame.feature_names_in_.tolist() == ["a", "b", "c"]
    tensor = lf.GaussianMixture(**options).fit(torch.tensor(rows))
    assert isinstance(tensor.covariances_, torch.Tensor)
    assert isinstance(tensor.predict_proba(torch.tensor(rows)), torch.Tensor)
    np.save(tmp_path / "rows.npy", rows)
    blocks = lf.GaussianMixture(**options).fit(lf.data.open_dataset(tmp_path / "rows.npy"))
    for other in (frame, tensor, blocks):
        assert np.array_equal(np.asarray(other.means_), plain.means_)
        assert np.array_equal(np.asarray(other.labels_), plain.labels_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_sparse_rows_are_dense_ones(kind):
    rows = sparse.random_array((300, 20), density=0.2, rng=np.random.default_rng(0)).tocsr()
    options = given_start(rows[:4].toarray(), kind, k=4) | {"reg_covar": 1e-3}
    thin = lf.GaussianMixture(**options).fit(rows)
    thick = lf.GaussianMixture(**options).fit(rows.toarray())
    np.testing.assert_allclose(thin.means_, thick.means_, atol=1e-10)
    np.testing.assert_allclose(thin.score_samples(rows), thick.score_samples(rows.toarray()))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        lf.GaussianMixture(2, covariance_type="full").fit(rows)


@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_engines_agree(engine):
    from lloydformer.engines import instruction_set

    if engine == "native" and instruction_set() is None:
        pytest.skip("the kernels of the native engine were not built here")
    rows = blobs(n=20_000)[0]
    model = lf.GaussianMixture(3, engine=engine, random_state=0).fit(rows)
    auto = lf.GaussianMixture(**given_start(rows, "full")).fit(rows)
    assert adjusted_rand_score(model.labels_, auto.labels_) > 0.99


def test_the_number_of_threads_changes_no_bit():
    rows = blobs(n=40_000)[0]
    found, before = [], torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            model = lf.GaussianMixture(3, random_state=0, tol=1.0).fit(rows)
            found.append(model.covariances_)
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_rows_have_the_fitted_parameters(kind):
    model = lf.GaussianMixture(3, covariance_type=kind, random_state=0).fit(blobs()[0])
    rows, own = model.sample(20_000)
    assert rows.shape == (20_000, 3)
    np.testing.assert_allclose(np.bincount(own) / len(own), model.weights_, atol=0.02)
    for j in range(3):
        np.testing.assert_allclose(rows[own == j].mean(axis=0), model.means_[j], atol=0.1)
    assert model.score(rows) == pytest.approx(model.lower_bound_, abs=0.1)
    with pytest.raises(ValueError, match="The sampling requires at least one sample"):
        model.sample(0)


def test_bic_finds_the_number_of_components():
    rows, _ = blobs(n=900, k=3, spread=10.0)
    scores = [
        lf.GaussianMixture(k, n_init=3, random_state=0).fit(rows).bic(rows) for k in range(1, 6)
    ]
    assert int(np.argmin(scores)) + 1 == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_continues():
    rows = blobs(spread=2.0)[0]
    start = given_start(rows, "full") | {"tol": 0.0}
    once = lf.GaussianMixture(**start, max_iter=8).fit(rows)
    steps = lf.GaussianMixture(**start, max_iter=4, warm_start=True).fit(rows)
    assert steps.n_iter_ == 4
    steps.fit(rows)
    np.testing.assert_allclose(steps.covariances_, once.covariances_, atol=1e-9)
    np.testing.assert_allclose(steps.lower_bounds_, once.lower_bounds_[4:], atol=1e-10)


def test_no_iteration_gives_the_start():
    rows = blobs()[0]
    model = lf.GaussianMixture(**given_start(rows, "tied"), max_iter=0).fit(rows)
    np.testing.assert_allclose(model.means_, rows[:3])
    np.testing.assert_allclose(model.precisions_, np.eye(3) / 4)
    assert (model.n_iter_, model.converged_, model.lower_bound_) == (0, False, -np.inf)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_of_several_starts_is_kept():
    rows = blobs(k=6, spread=3.0)[0]
    bounds = [
        lf.GaussianMixture(6, n_init=1, init_params="random_from_data", random_state=s).fit(rows)
        for s in range(3)
    ]
    many = lf.GaussianMixture(6, n_init=8, init_params="random_from_data", random_state=0).fit(rows)
    assert many.lower_bound_ >= max(model.lower_bound_ for model in bounds[:1])


def test_ctrl_c_keeps_the_best_so_far():
    rows = blobs(spread=2.0)[0]
    seen = []

    def stop(progress):
        seen.append(progress)
        if (progress.start, progress.iteration) == (1, 1):
            raise KeyboardInterrupt

    options = {"n_components": 3, "n_init": 5, "random_state": 0, "tol": 0.0, "max_iter": 6}
    model = lf.GaussianMixture(**options, effort="low", callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows)
    assert [(p.start, p.iteration) for p in seen] == [*((0, i) for i in range(6)), (1, 0), (1, 1)]
    best = max(-seen[5].objective, -seen[7].objective)
    assert model.lower_bound_ == pytest.approx(best)
    assert model.predict(rows).tolist() == model.labels_.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_predicts_to_the_last_bit(kind, tmp_path):
    rows = blobs()[0]
    model = lf.GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
    model.save_pretrained(tmp_path / "model")
    again = lf.GaussianMixture.from_pretrained(tmp_path / "model")
    assert np.array_equal(again.score_samples(rows), model.score_samples(rows))
    assert again.get_params() == model.get_params()
    assert (again.n_iter_, again.converged_) == (model.n_iter_, model.converged_)
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace(f'"{kind}"', '"nonsense"'))
    with pytest.raises(ValueError, match="covariance_type"):
        lf.GaussianMixture.from_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match=r"holds a GaussianMixture|nonsense"):
        Clusterer.from_pretrained(tmp_path / "model")


def test_a_folder_with_covariances_of_another_kind_is_refused(tmp_path):
    model = lf.GaussianMixture(2, covariance_type="diag", random_state=0).fit(blobs()[0])
    model.set_params(covariance_type="full").save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match=r"covariances_: found the shape \(2, 3\); .*\(2, 3, 3\)"):
        lf.GaussianMixture.from_pretrained(tmp_path / "model")


# Degenerate data: each has its rule, and none gives NaN.
DEGENERATE = {
    "duplicates": np.repeat([[0.0, 1.0], [5.0, 5.0]], 20, axis=0),
    "a constant column": np.c_[np.linspace(0, 1, 40), np.ones(40)],
    "collinear columns": np.c_[np.linspace(0, 1, 40), np.linspace(0, 2, 40)],
    "as many rows as components": np.array([[0.0, 1.0], [5.0, 5.0]]),
    "all rows equal": np.ones((30, 2)),
    "fewer rows than columns": np.eye(6)[:4] * 3,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DEGENERATE)
def test_degenerate_data_stay_finite(data, kind):
    rows = DEGENERATE[data]
    model = lf.GaussianMixture(2, covariance_type=kind, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows)
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.score_samples(rows)).all()
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)
    decides = "reg_covar=1e-06, which decides"
    if data == "duplicates" or (kind == "full" and data != "fewer rows than columns"):
        assert any(decides in str(warning.message) for warning in caught)


def test_without_regularisation_a_collapse_is_an_error():
    with pytest.raises(ValueError, match=r"ill-defined empirical covariance.* increase reg_covar"):
        lf.GaussianMixture(2, reg_covar=0, random_state=0).fit(DEGENERATE["duplicates"])


@pytest.mark.parametrize("kind", KINDS)
def test_effort_never_lowers_the_likelihood(kind):
    rows = blobs(n=600, k=8, spread=4.0, seed=1)[0]
    options = {"n_components": 8, "covariance_type": kind, "random_state": 1, "max_iter": 300}
    low, medium, more, high = (
        lf.GaussianMixture(**options, effort=effort).fit(rows)
        for effort in ("low", "medium", 4, "high")
    )
    assert low.lower_bound_ <= medium.lower_bound_ <= more.lower_bound_
    again = lf.GaussianMixture(**options, effort="high").fit(rows)
    assert np.array_equal(again.means_, high.means_)
    assert high.lower_bound_ > low.lower_bound_ or kind == "tied"


def test_effort_leaves_an_optimum_of_k_means_starts():
    """Lines so long that k-means cuts them across: EM from its clusters does not recover."""
    rng = np.random.default_rng(0)
    own = np.arange(600) % 3
    rows = rng.normal(size=(600, 2)) * [10.0, 0.5] + own[:, None] * [0.0, 5.0]
    low = lf.GaussianMixture(3, effort="low", random_state=0).fit(rows)
    assert adjusted_rand_score(low.labels_, own) < 0.1
    for effort in ("medium", "high"):
        model = lf.GaussianMixture(3, effort=effort, random_state=0).fit(rows)
        assert adjusted_rand_score(model.labels_, own) == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_begins_with_a_race_of_starts_that_are_drawn():
    rows, heard = blobs(n=300, k=6, spread=3.0)[0], []
    options = {"n_components": 6, "random_state": 0, "callback": heard.append, "reg_covar": 1e-2}
    for more, starts in (
        ({"effort": "low"}, {0}),
        ({"effort": "medium"}, set(range(8))),  # 6 starts and at least 2 rounds
        ({"effort": "medium", "n_init": 2}, set(range(4))),
        ({"effort": "medium", "means_init": rows[:6]}, set(range(3))),
    ):
        heard.clear()
        lf.GaussianMixture(**options, **more).fit(rows)
        assert {progress.start for progress in heard} >= starts
        assert more["effort"] != "low" or {progress.start for progress in heard} == starts


class BrokenError(Exception):
    """Raised by a callback."""


@pytest.mark.parametrize("effort", ["medium", "low"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_a_broken_fit_resumes_to_the_same_bits(kind, effort, tmp_path):
    rows = blobs(n=500, k=5, spread=2.0)[0]
    path, heard = tmp_path / "new folder" / "fit", []
    options = {"n_components": 5, "covariance_type": kind, "reg_covar": 1e-2, "effort": effort}
    options |= {"max_iter": 30, "tol": 1e-5, "n_init": 1 if effort == "medium" else 3}

    def hear(progress):
        heard.append((progress.start, progress.iteration))
        if len(heard) in breaks:
            raise BrokenError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        breaks = ()
        whole = lf.GaussianMixture(**options, random_state=3, callback=hear).fit(rows)
        n_calls = len(heard)
        for breaks in ((1, 2), (n_calls // 5, n_calls // 2, n_calls - 2)):
            heard = []
            model = lf.GaussianMixture(**options, random_state=3, checkpoint=path, callback=hear)
            for _ in breaks:
                with pytest.raises(BrokenError):
                    model.fit(rows)
            model.fit(rows)
            assert not path.exists()
            assert len(heard) <= n_calls + len(breaks)  # the last iteration may be heard twice
            for name in ("weights_", "means_", "covariances_", "lower_bounds_", "labels_"):
                assert np.array_equal(getattr(model, name), getattr(whole, name)), name


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_belongs_to_its_fit(tmp_path):
    rows = blobs(n=100)[0]

    def stop(progress):
        raise KeyboardInterrupt

    options = {"n_components": 3, "random_state": 0, "checkpoint": tmp_path / "fit"}
    with pytest.raises(KeyboardInterrupt):
        lf.GaussianMixture(**options, callback=stop).fit(rows)
    assert (tmp_path / "fit").exists()
    with pytest.raises(
        ValueError, match=r"checkpoint: .* with reg_covar=1e-06, and here it is 0.1"
    ):
        lf.GaussianMixture(**options, reg_covar=0.1).fit(rows)
    with pytest.raises(ValueError, match=r"checkpoint: .* by a fit of other rows or weights"):
        lf.GaussianMixture(**options).fit(rows + 1)
    with pytest.raises(ValueError, match=r"checkpoint: found .*, which is a folder"):
        lf.GaussianMixture(3, checkpoint=tmp_path).fit(rows)
    lf.GaussianMixture(**options).fit(rows)
    assert not (tmp_path / "fit").exists()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_other_families_resume_too(family, tmp_path):
    rows, heard = counts(family)[0], []

    def hear(progress):
        heard.append(progress)
        if len(heard) == 4:
            raise BrokenError

    options = {"n_components": 3, "tol": 1e-6, "n_init": 2}
    whole = FAMILIES[family](**options, random_state=1).fit(rows)
    model = FAMILIES[family](**options, random_state=1, checkpoint=tmp_path / "fit", callback=hear)
    with pytest.raises(BrokenError):
        model.fit(rows)
    assert np.array_equal(model.fit(rows).means_, whole.means_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ctrl_c_in_a_race_keeps_the_best_so_far():
    rows = blobs(k=6, spread=2.0)[0]
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.start == 2 and progress.iteration == 3:
            raise KeyboardInterrupt

    options = {"tol": 0.0, "reg_covar": 1e-2, "effort": "medium", "random_state": 0}
    model = lf.GaussianMixture(6, **options, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows)
    ends = {progress.start: -progress.objective for progress in seen}
    assert len(ends) == 3
    assert [sum(p.start == start for p in seen) for start in range(2)] == [20, 20]
    assert model.lower_bound_ == pytest.approx(max(ends.values()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_start_that_collapses_is_dropped_if_another_does_not(monkeypatch):
    """Two pairs of equal rows and a cloud: some starts give a pair a component of its own."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(60, 2)), np.full((2, 2), 9.0)])
    bad, good = rows[[0, -1]], rows[[0, 1]]
    starts = iter([bad, good])
    module = "lloydformer.estimators.mixture.draw_start"

    def draw(fit, k, method, rng):
        means = torch.tensor(next(starts)) - fit.session.layout.origin
        return Components.around(fit.plan.kind, means, 0.5)

    monkeypatch.setattr(module, draw)
    model = lf.GaussianMixture(2, reg_covar=0, n_init=2, max_iter=5, tol=1.0)
    with pytest.warns(ConvergenceWarning, match="1 of 2 starts were dropped"):
        model.fit(rows)
    assert np.isfinite(model.covariances_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_component_without_points_is_reported():
    rows = blobs(k=1, n=50)[0]
    start = given_start(rows, "spherical", k=2)
    start["means_init"] = np.array([rows[0], rows[0] + 1e5])
    start["weights_init"] = [1.0, 0.0]
    with pytest.warns(ConvergenceWarning, match=r"Components \[1\] have no points"):
        model = lf.GaussianMixture(**start, max_iter=1, tol=1e9).fit(rows)
    assert np.isfinite(model.means_).all()


WRONG = {
    "fewer rows": ({"n_components": 20}, "Expected n_samples >= n_components but got n_comp"),
    "weights": ({"weights_init": [0.5, 0.6]}, "should be normalized"),
    "negative weights": ({"weights_init": [1.5, -0.5]}, r"in the range \[0, 1\]"),
    "shape of weights": (
        {"weights_init": [1.0]},
        r"should have the shape of \(2,\), but got \(1,\)",
    ),
    "shape of means": ({"means_init": [[1.0], [2.0]]}, r"should have the shape of \(2, 3\)"),
    "precisions": ({"precisions_init": -np.ones((2, 3, 3))}, "symmetric, positive-definite"),
    "shape of precisions": ({"precisions_init": np.ones((3, 3))}, "should have the shape of"),
    "kind": ({"covariance_type": "round"}, "The 'covariance_type' parameter"),
    "effort": ({"effort": "huge"}, "The 'effort' parameter"),
    "init": ({"init_params": "best"}, "The 'init_params' parameter"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_bad_parameters_are_named(fault):
    options, words = WRONG[fault]
    with pytest.raises(ValueError, match=words):
        lf.GaussianMixture(**{"n_components": 2, **options}).fit(blobs(n=10)[0])


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match="NaN"):
        lf.GaussianMixture().fit([[0.0], [np.nan]])
    with pytest.raises(ValueError, match="X: Negative values in data, found -1"):
        lf.PoissonMixture().fit([[0.0], [-1.0]])
    with pytest.raises(ValueError, match="X: found values from 0 to 2; a Bernoulli mixture needs"):
        lf.BernoulliMixture().fit([[0.0], [2.0]])


FAMILIES = {"bernoulli": lf.BernoulliMixture, "poisson": lf.PoissonMixture}


def counts(family, n=400, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.05, 0.95, (3, 30)) * (1 if family == "bernoulli" else 9)
    own = np.arange(n) % 3
    draw = rng.binomial(1, means[own]) if family == "bernoulli" else rng.poisson(means[own])
    return draw.astype(float), own


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_find_their_components(family):
    rows, own = counts(family)
    model = FAMILIES[family](3, random_state=0, n_init=3).fit(rows)
    assert adjusted_rand_score(model.labels_, own) > 0.9
    options = {"n_components": 3, "means_init": (rows[:3] + rows.mean(axis=0)) / 2}
    thin = FAMILIES[family](**options, random_state=0).fit(sparse.csr_matrix(rows))
    thick = FAMILIES[family](**options, random_state=0).fit(rows)
    np.testing.assert_allclose(thin.means_, thick.means_, atol=1e-9)
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean())
    drawn, _ = model.sample(5000)
    assert model.score(drawn) == pytest.approx(model.score(rows), abs=0.3)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_are_their_plain_algorithm(family):
    rows, _ = counts(family)
    means = rows[:150].reshape(3, 50, 30).mean(axis=1)
    options = {"weights_init": np.full(3, 1 / 3), "means_init": means, "tol": 0, "max_iter": 5}
    with pytest.warns(ConvergenceWarning):
        model = FAMILIES[family](3, **options).fit(rows)
    true = Mixture(family=family).run(rows, MixtureState(np.full(3, 1 / 3), means), 5)
    np.testing.assert_allclose(model.means_, true[-1].state.means, atol=1e-10)
    np.testing.assert_allclose(model.lower_bounds_, [each.lower_bound for each in true], atol=1e-9)


def test_the_number_of_parameters():
    rows = blobs()[0]
    for kind, expected in {"full": 29, "tied": 17, "diag": 20, "spherical": 14}.items():
        model = lf.GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
        other = theirs.GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
        assert model._n_parameters() == other._n_parameters() == expected


def test_lines_while_it_runs(capsys):
    lf.GaussianMixture(2, verbose=1, verbose_interval=1, random_state=0).fit(blobs()[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Initialization 0"
    assert lines[1].startswith("  Iteration 1, lower bound -")


def test_a_mixture_can_be_described_and_drawn():
    pytest.importorskip("matplotlib")
    rows = blobs()[0]
    model = lf.GaussianMixture(3, random_state=0).fit(rows)
    assert "3 groups" in str(model.describe(rows))
    assert model.plot(rows, kind="map").axes
    assert "<table" in model._repr_html_()
