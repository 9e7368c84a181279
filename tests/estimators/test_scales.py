"""Rows and weights times a power of two: the same labels and centers, to the last bit.

Where squares or sums do not fit a float, a `ValueError` names the argument.
"""

import numpy as np
import pytest
from scipy import sparse

import lloydformer as lf
from lloydformer.circuits.activations import TopK
from lloydformer.engines import instruction_set

K = 4
RNG = np.random.default_rng(3)
X = RNG.uniform(size=(K, 3))[RNG.integers(K, size=150)] + 0.1 * RNG.normal(size=(150, 3))
WEIGHTS = RNG.exponential(size=150) * (RNG.random(150) < 0.9)

MODELS = {
    "kmeans": lambda gamma, **how: lf.KMeans(K, **how),
    "parallel": lambda gamma, **how: lf.KMeans(K, init="k-means||", **how),
    "random": lambda gamma, **how: lf.KMeans(K, init="random", n_init=2, **how),
    "soft": lambda gamma, **how: lf.SoftKMeans(K, inverse_temperature=64 * gamma, **how),
    "soft, scale": lambda gamma, **how: lf.SoftKMeans(K, **how),
    "spherical": lambda gamma, **how: lf.SphericalKMeans(K, **how),
    "trimmed": lambda gamma, **how: lf.TrimmedKMeans(K, **how),
    "robust": lambda gamma, **how: lf.RobustKMeans(K, inverse_temperature=0.25 * gamma, **how),
    "robust, scale": lambda gamma, **how: lf.RobustKMeans(K, **how),
    "softmax": lambda gamma, **how: lf.RobustKMeans(
        K, inverse_temperature=4 * gamma, activation="softmax", **how
    ),
    "top": lambda gamma, **how: lf.RobustKMeans(
        K, inverse_temperature=4 * gamma, activation=TopK(9), **how
    ),
    "medoids": lambda gamma, **how: lf.KMedoids(K, max_iter=5, **how),
    "relocating": lambda gamma, **how: lf.RelocatingKMeans(K, **how),
    "learned": lambda gamma, **how: lf.LearnedKMeans(K, **how),
    "circuit": lambda gamma, **how: lf.CircuitClusterer(
        K, recipe=lf.recipes.soft(8 * gamma), **how
    ),
}
"""Each estimator, with its inverse temperature times a factor."""
OF_WEIGHT_ALONE = set(MODELS) - {"robust", "top"}
"""To these two a weight of 2 is two points, and another unit another problem."""
OF_SCALE = set(MODELS) - {"medoids"}
"""The draws of k-medoids depend on the unit of the rows."""
SHIFTS = {"float64": (-499, -333, 259, 498), "float32": (-50, -20, 20, 50)}
"""Exponents up to which squares of rows near 1 fit, 1e78 and 1e-100 among them."""
ENDS_AND_BETWEEN = [slice(0, None, 3), pytest.param(slice(1, 3), marks=pytest.mark.long)]
"""Of these exponents: the first and the last, and in `make test-all` those between them."""


@pytest.fixture(params=["native", "chunked"])
def engine(request):
    if request.param == "native" and instruction_set() is None:
        pytest.skip("the kernels of the native engine were not built here")
    return request.param


@pytest.fixture(params=SHIFTS)
def rows(request):
    return X.astype(request.param)


def model(name, engine, gamma=1.0, **how):
    return MODELS[name](gamma, random_state=0, engine=engine, **how)


def same(one, two, shift=0, scale=0):
    """Equal labels; centers times 2^shift; objectives times 2^scale."""
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(np.ldexp(one.cluster_centers_, shift), two.cluster_centers_)
    assert np.ldexp(one.inertia_, scale) == two.inertia_
    np.testing.assert_array_equal(np.ldexp(one.objective_history_, scale), two.objective_history_)


@pytest.mark.parametrize("part", ENDS_AND_BETWEEN, ids=["ends", "between"])
@pytest.mark.parametrize("name", sorted(OF_SCALE - {"spherical"}))
def test_scaled_rows_give_scaled_centers(name, engine, rows, part):
    one = model(name, engine).fit(rows)
    for shift in SHIFTS[str(rows.dtype)][part]:
        scaled = np.ldexp(rows, shift)
        two = model(name, engine, 2.0 ** (-2 * shift)).fit(scaled)
        same(one, two, shift, 2 * shift)
        np.testing.assert_array_equal(two.predict(scaled), one.predict(rows))
        np.testing.assert_array_equal(two.transform(scaled), np.ldexp(one.transform(rows), shift))
        assert two.score(scaled) == np.ldexp(one.score(rows), 2 * shift)


@pytest.mark.parametrize(
    "shifts", [(-1000, 130, 1008), pytest.param((-130, -1, 127), marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", sorted(OF_WEIGHT_ALONE))
def test_scaled_weights_give_the_same(name, engine, rows, shifts):
    one = model(name, engine).fit(rows, sample_weight=WEIGHTS)
    for shift in shifts:
        weights = np.ldexp(WEIGHTS, shift)
        two = model(name, engine).fit(rows, sample_weight=weights)
        same(one, two, scale=shift)
        assert two.score(rows, sample_weight=weights) == np.ldexp(
            one.score(rows, sample_weight=WEIGHTS), shift
        )


@pytest.mark.parametrize("name", sorted(OF_WEIGHT_ALONE - {"robust, scale"}))
def test_weights_without_digits(name, engine, rows):
    """Below 2e-308 a float has fewer digits the smaller it is: these are whole numbers of it.

    The inverse temperature that suits them in robust k-means is their inverse, and no float.
    """
    whole = np.floor(8 * WEIGHTS)
    one = model(name, engine).fit(rows, sample_weight=whole)
    two = model(name, engine).fit(rows, sample_weight=np.ldexp(whole, -1074))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


@pytest.mark.parametrize("name", ["kmeans", "trimmed", "relocating", "learned", "softmax"])
def test_weights_that_sum_past_the_largest_float(name, engine):
    near = X / 64  # so that the objective still is a float
    weights = np.ldexp(WEIGHTS + 1, 1020)
    with np.errstate(over="ignore"):
        assert weights.sum() == np.inf
    one = model(name, engine, 4096.0).fit(near, sample_weight=WEIGHTS + 1)
    same(one, model(name, engine, 4096.0).fit(near, sample_weight=weights), scale=1020)


@pytest.mark.parametrize("shift", [-900, -130, 4, 130, 900])
def test_sparsemax_of_heavier_points_is_sharper(engine, rows, shift):
    """Its weights solve sum w (z - t)_+ = 1, so a factor of w is one of the scores z."""
    one = model("robust", engine, 2.0**shift).fit(rows, sample_weight=WEIGHTS)
    two = model("robust", engine).fit(rows, sample_weight=np.ldexp(WEIGHTS, shift))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_any_weights_give_finite_numbers_or_an_error_that_names_them(name, engine, rows):
    for largest in (1e39, 1e200, 1e307):
        weights = RNG.uniform(size=150) * largest
        found = model(name, engine)
        try:
            found.fit(rows, sample_weight=weights)
        except ValueError as error:
            if str(error).startswith("sample_weight: found weights up to"):
                continue
            raise
        assert np.isfinite(found.cluster_centers_).all()
        assert np.isfinite([found.inertia_, *found.objective_history_]).all()


def test_an_objective_that_is_no_float_is_refused(engine):
    with pytest.raises(
        ValueError, match=r"^sample_weight: found weights up to [\de.+]+; .*; divide"
    ):
        model("kmeans", engine).fit(2.0**20 * X, sample_weight=np.full(150, 1e307))
    fitted = model("kmeans", engine).fit(X)
    with pytest.raises(
        ValueError, match=r"^sample_weight: found weights up to [\de.+]+; .*; divide"
    ):
        fitted.score(X, sample_weight=np.full(150, 1e308))


def test_weights_whose_ratio_is_no_float_are_refused(engine):
    weights = np.where(np.arange(150) < 75, 1e300, 1e-300)
    with pytest.raises(ValueError, match=r"^sample_weight: found 1e-300 beside 1e\+300, a ratio"):
        model("kmeans", engine).fit(X, sample_weight=weights)


def test_small_weights_beside_large_ones_still_count(engine):
    """Clusters of rows whose weights are 1e-300 of the others' are means of these rows."""
    far = X + np.where(np.arange(150) < 75, 0, 50)[:, None]
    light = np.where(np.arange(150) < 75, 1e-300, 1) * (WEIGHTS + 1)
    light[75] = 3.0  # so that weights are divided by 2
    found = lf.KMeans(2, init=far[[0, 75]], engine=engine).fit(far, sample_weight=light)
    expected = np.average(far[:75], axis=0, weights=WEIGHTS[:75] + 1)
    np.testing.assert_allclose(found.cluster_centers_[0], expected, rtol=1e-12)


# Rows that no squares fit.

FAR = {"float64": (1e152, 1e200, 1e300), "float32": (1e17, 1e25, 3e38)}


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"spherical"}))
def test_rows_beyond_the_range_are_refused(name, engine, rows):
    for factor in FAR[str(rows.dtype)]:
        large = rows / np.abs(rows).max() * rows.dtype.type(factor)
        for refused in (large, rows / np.abs(rows).max() / rows.dtype.type(factor)):
            with pytest.raises(ValueError, match=r"^X: found values that span .*; rescale them"):
                model(name, engine).fit(refused)


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"spherical"}))
def test_rows_far_beyond_the_fitted_ones_are_refused(name, engine, rows):
    """A single row spans nothing, but its distance to the centers has no square."""
    fitted = model(name, engine).fit(rows)
    for factor in FAR[str(rows.dtype)]:
        far = np.full((1, 3), factor, dtype=rows.dtype)
        for call in (fitted.predict, fitted.transform, fitted.score, fitted.distances_to_centers):
            with pytest.raises(ValueError, match=r"^X: found values that span .*; rescale them"):
                call(far)


def test_rows_far_away_but_within_the_range(engine, rows):
    fitted = lf.KMeans(2, init=[[-1.0], [1.0]], engine=engine).fit(
        np.array([[-1.0], [1.0]], dtype=rows.dtype)
    )
    far = np.array([[-1e15], [1e15], [-3e3], [1e9]], dtype=rows.dtype)
    np.testing.assert_array_equal(fitted.predict(far), [0, 1, 0, 1])
    np.testing.assert_allclose(fitted.transform(far)[:, 0], np.abs(far[:, 0] + 1), rtol=1e-6)


def test_rows_so_far_that_only_products_tell(engine):
    """1e100 less 1 is 1e100; the product with a center still has its sign."""
    fitted = lf.KMeans(2, init=[[-1.0, 0], [1.0, 0]], engine=engine).fit([[-1.0, 0], [1.0, 0]])
    far = np.array([[1e100, 0], [-1e100, 3e120], [1e30, 1e30], [-1e30, 1e99]])
    np.testing.assert_array_equal(fitted.predict(far), [1, 0, 1, 0])


def test_rows_that_hardly_differ_can_be_predicted(engine):
    """Their squares vanish beside the distances to the centers, and nothing is lost."""
    fitted = model("kmeans", engine).fit(X)
    near = np.array([[1e-200, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(fitted.predict(near), fitted.predict(np.zeros((2, 3))))


@pytest.mark.parametrize("kind", [lf.KMeans, lf.RelocatingKMeans, lf.LearnedKMeans])
def test_sparse_rows_beyond_the_range_are_refused(kind):
    rows = sparse.csr_matrix(np.where(X > 0.6, X, 0))
    fitted = kind(K, random_state=0).fit(rows)
    for refused in (rows * 1e200, rows * 1e-200):
        with pytest.raises(ValueError, match=r"^X: found values that span .*; rescale them"):
            kind(K).fit(refused)
    with pytest.raises(ValueError, match=r"^X: found values that span .*; rescale them"):
        fitted.predict(rows * 1e200)
    np.testing.assert_array_equal(
        kind(K, random_state=0).fit(rows * 2.0**300).cluster_centers_,
        fitted.cluster_centers_ * 2.0**300,
    )


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"spherical", "random"}))
def test_starts_beyond_the_range_are_refused(name, engine, rows):
    start = np.full((K, 3), 1e200)
    given = model(name, engine).set_params(init=start)
    with pytest.raises(
        ValueError, match=r"^init: found a value 1e.200 from the middle of the data"
    ):
        given.fit(rows)


# Directions have no scale.

DIRECTIONS = {"float64": (-1070, -1030, -600, 600, 1020), "float32": (-145, -127, -80, 80, 126)}


def test_directions_of_any_length(engine, rows):
    """Also of rows so short that their inverse is no float, and of rows whose squares are none."""
    whole = np.floor(64 * rows)  # few digits: they fit the smallest numbers
    one = model("spherical", engine).fit(whole)
    for shift in DIRECTIONS[str(rows.dtype)]:
        scaled = np.ldexp(whole, min(shift, 1024 - 8 if rows.dtype == "float64" else 128 - 8))
        two = model("spherical", engine).fit(scaled)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-6)
        assert two.inertia_ == pytest.approx(one.inertia_, rel=1e-5)
        np.testing.assert_array_equal(two.predict(scaled), two.labels_)
        np.testing.assert_allclose(two.transform(scaled), one.transform(whole), atol=1e-5)
        starts = model("spherical", engine).set_params(init=scaled[:K]).fit(whole)
        again = model("spherical", engine).set_params(init=whole[:K]).fit(whole)
        np.testing.assert_array_equal(starts.labels_, again.labels_)


def test_rows_of_zeros_may_have_the_largest_weight(engine):
    rows = np.concatenate([[[0.0, 0.0, 0.0]], X]).astype(np.float32)
    weights = np.concatenate([[1e200], WEIGHTS])
    one = model("spherical", engine, zero_rows="ignore").fit(rows, sample_weight=weights)
    two = model("spherical", engine).fit(rows[1:], sample_weight=WEIGHTS)
    np.testing.assert_allclose(one.inertia_, two.inertia_, rtol=1e-6)


# Inverse temperatures.


@pytest.mark.parametrize("gamma", [1e39, 1e100, 1e308])
def test_soft_clusters_without_temperature_are_hard(engine, rows, gamma):
    start = rows[:K]
    soft = lf.SoftKMeans(K, inverse_temperature=gamma, init=start, engine=engine).fit(rows)
    hard = lf.KMeans(K, init=start, engine=engine).fit(rows)
    np.testing.assert_array_equal(soft.labels_, hard.labels_)
    np.testing.assert_allclose(soft.cluster_centers_, hard.cluster_centers_, rtol=1e-5)
    assert np.isfinite(soft.objective_history_).all()
    np.testing.assert_array_equal(soft.predict_proba(rows), np.eye(K)[soft.labels_])


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("gamma", [1e-45, 1e-100, 1e-300])
def test_soft_clusters_at_high_temperature_are_one(engine, rows, gamma):
    soft = lf.SoftKMeans(K, inverse_temperature=gamma, init=rows[:K], engine=engine).fit(rows)
    np.testing.assert_allclose(soft.cluster_centers_, [rows.mean(axis=0)] * K, rtol=1e-5)


def test_a_free_energy_that_is_no_float_is_refused(engine):
    with pytest.raises(ValueError, match=r"^inverse_temperature: found 1e-308, and float64 cannot"):
        lf.SoftKMeans(K, inverse_temperature=1e-308, engine=engine).fit(X)


@pytest.mark.parametrize("activation", ["sparsemax", "softmax", TopK(9)])
def test_robust_clusters_at_any_temperature(engine, rows, activation):
    found = [
        lf.RobustKMeans(
            K, inverse_temperature=gamma, activation=activation, init=rows[:K], engine=engine
        ).fit(rows)
        for gamma in (1e-300, 1e300, 1e307)
    ]
    assert all(np.isfinite(each.cluster_centers_).all() for each in found)
    np.testing.assert_array_equal(found[1].cluster_centers_, found[2].cluster_centers_)


# Batches of rows, and batches of problems.


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SphericalKMeans])
def test_partial_fits_with_scaled_weights(kind, engine, rows):
    def stream(shift):
        found = kind(K, init=X[:K], engine=engine)
        for part in range(3):
            found.partial_fit(rows[part::3], sample_weight=np.ldexp(WEIGHTS[part::3], shift))
        return found

    one = stream(0)
    for shift in (-1000, 130, 1000):
        two = stream(shift)
        np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
        np.testing.assert_array_equal(np.ldexp(one._counts, shift), two._counts)
        assert np.ldexp(one.inertia_, shift) == two.inertia_


def test_partial_fits_of_heavy_and_light_rows(engine):
    light, heavy = np.full(75, 1e-200), np.full(75, 1e200)
    found = lf.KMeans(1, init=X[:1], engine=engine).partial_fit(X[:75], sample_weight=heavy)
    found.partial_fit(X[75:], sample_weight=light)
    np.testing.assert_allclose(found.cluster_centers_[0], X[:75].mean(axis=0), rtol=1e-12)
    found.partial_fit(X[75:], sample_weight=heavy)
    np.testing.assert_allclose(found.cluster_centers_[0], X.mean(axis=0), rtol=1e-12)


def test_partial_fits_refuse_a_sum_that_is_no_float(engine):
    found = lf.KMeans(1, init=X[:1], engine=engine)
    found.partial_fit(X[:1], sample_weight=[1.5e308])
    centers, steps = found.cluster_centers_.copy(), found.n_steps_
    with pytest.raises(ValueError, match=r"^sample_weight: the weights of all rows so far sum"):
        found.partial_fit(X[:2], sample_weight=[1e308, 1e308])
    np.testing.assert_array_equal(found.cluster_centers_, centers)
    assert found.n_steps_ == steps


BATCHES = {
    "lloyd": lambda gamma: lf.recipes.lloyd(),
    "spherical": lambda gamma: lf.recipes.spherical(),
    "soft": lambda gamma: lf.recipes.soft(8 * gamma),
    "trimmed": lambda gamma: lf.recipes.trimmed(),
    "softmax": lambda gamma: lf.recipes.robust(4 * gamma, "softmax"),
    "robust": lambda gamma: lf.recipes.robust(0.25 * gamma),
    "top": lambda gamma: lf.recipes.robust(4 * gamma, TopK(9)),
}


def batch(name, rows, gamma=1.0, weights=None, init="k-means++"):
    return lf.fit_batch(
        rows, 2, recipe=BATCHES[name](gamma), sample_weight=weights, init=init, random_state=0
    )


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("name", sorted(set(BATCHES) - {"robust", "top"}))
def test_batches_with_scaled_weights(name, init, rows):
    """Each problem has its own unit."""
    problems, weights = rows.reshape(5, 30, 3), WEIGHTS.reshape(5, 30)
    shifts = np.array([0, -1000, 130, 1005, -1])
    one = batch(name, problems, weights=weights, init=init)
    two = batch(name, problems, weights=np.ldexp(weights, shifts[:, None]), init=init)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.centers, two.centers)
    np.testing.assert_array_equal(np.ldexp(one.inertia, shifts), two.inertia)


def test_batches_of_sparsemax_have_the_weights_of_points(rows):
    problems, weights = rows.reshape(5, 30, 3), WEIGHTS.reshape(5, 30)
    one = batch("robust", problems, 2.0**-100, np.ldexp(weights, 100))
    two = batch("robust", problems, 1.0, weights)
    np.testing.assert_array_equal(one.centers, two.centers)


@pytest.mark.parametrize("name", sorted(set(BATCHES) - {"spherical"}))
def test_batches_of_scaled_points(name, rows):
    problems = rows.reshape(5, 30, 3)
    one = batch(name, problems)
    for shift in SHIFTS[str(rows.dtype)]:
        two = batch(name, np.ldexp(problems, shift), 2.0 ** (-2 * shift))
        np.testing.assert_array_equal(one.labels, two.labels)
        np.testing.assert_array_equal(np.ldexp(one.centers, shift), two.centers)
        np.testing.assert_array_equal(np.ldexp(one.inertia, 2 * shift), two.inertia)


def test_batches_of_directions_of_any_length(rows):
    problems = np.floor(64 * rows).reshape(5, 30, 3)
    one = batch("spherical", problems)
    for shift in DIRECTIONS[str(rows.dtype)]:
        scaled = np.ldexp(problems, min(shift, 1024 - 8 if rows.dtype == "float64" else 128 - 8))
        np.testing.assert_array_equal(one.labels, batch("spherical", scaled).labels)
        given = batch("spherical", problems, init=scaled[:, :2])
        again = batch("spherical", problems, init=problems[:, :2])
        np.testing.assert_array_equal(given.labels, again.labels)


def test_batches_refuse_what_no_float_holds(rows):
    problems = rows.reshape(5, 30, 3)
    with pytest.raises(
        ValueError, match=r"^sample_weight: found weights up to [\de.+]+; .*; divide"
    ):
        batch("lloyd", problems * 1e5, weights=np.full((5, 30), 1e308))
    with pytest.raises(ValueError, match=r"^sample_weight: found 1e-300 beside 1e\+300"):
        batch("lloyd", problems, weights=np.tile([1e300, 1e-300], (5, 15)))
    with pytest.raises(ValueError, match=r"^points: found values that span"):
        batch("lloyd", problems.astype(float) * 1e200)
