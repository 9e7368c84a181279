"""partial_fit is MiniBatchKMeans's, and centers are running means of what they were given."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans

import lloydformer as lf

BOTH = [lf.KMeans, lf.SphericalKMeans]
FAR = np.array([[100.0, 0.0], [0.0, 100.0], [-100.0, -100.0]])


def batches(rng, n_batches=8, size=50, d=3, middle=40.0):
    return [rng.normal(middle + 0.3 * b, 1.0, size=(size, d)) for b in range(n_batches)]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, torch.from_numpy])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_what_mini_batch_k_means_does(kind, weighted, rng):
    first, *later = batches(rng)
    init = first[:5]
    ours = lf.KMeans(5, init=init)
    theirs = MiniBatchKMeans(5, init=init, reassignment_ratio=0)
    for number, batch in enumerate([first, *later], start=1):
        weights = rng.uniform(0, 2, len(batch)) if weighted else None
        ours.partial_fit(kind(batch), sample_weight=weights)
        known = sparse.csr_matrix(batch) if kind is sparse.csr_matrix else batch
        theirs.partial_fit(known, sample_weight=weights)
        np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-12)
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
        np.testing.assert_allclose(ours._counts, theirs._counts, rtol=1e-12)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
        assert ours.n_steps_ == theirs.n_steps_ == number
    np.testing.assert_array_equal(ours.predict(batch), theirs.predict(batch))
    np.testing.assert_allclose(ours.transform(batch), theirs.transform(batch), rtol=1e-7)


def test_float32_stays_and_is_as_near_as_its_precision_allows(rng):
    parts = [part.astype(np.float32) for part in batches(rng)]
    ours, theirs = (
        kind(5, init=parts[0][:5], **more)
        for kind, more in [(lf.KMeans, {}), (MiniBatchKMeans, {"reassignment_ratio": 0})]
    )
    for part in parts:
        ours.partial_fit(part)
        theirs.partial_fit(part)
    assert ours.cluster_centers_.dtype == np.float32
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-4)


@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(3, 9), min_size=1, max_size=6))
def test_centers_are_the_means_of_all_rows_that_came_to_them(seed, sizes):
    rng = np.random.default_rng(seed)
    model, rows, labels, weights = lf.KMeans(3, init=FAR), [], [], []
    for size in sizes:
        labels.append(rng.integers(0, 3, size))
        rows.append(FAR[labels[-1]] + rng.normal(size=(size, 2)))  # far apart: never another one
        weights.append(rng.uniform(0.5, 2, size))
        model.partial_fit(rows[-1], sample_weight=weights[-1])
    x, a, w = np.concatenate(rows), np.concatenate(labels), np.concatenate(weights)
    for j in range(3):
        mine = a == j
        expected = np.average(x[mine], axis=0, weights=w[mine]) if mine.any() else FAR[j]
        np.testing.assert_allclose(model.cluster_centers_[j], expected, rtol=1e-12)
        assert model._counts[j] == pytest.approx(w[mine].sum())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_spherical_centers_are_directions_of_sums(kind, rng):
    axes = np.eye(3)
    model, sums = lf.SphericalKMeans(3, init=axes), np.zeros((3, 3))
    for _ in range(6):
        labels = rng.integers(0, 3, 20)
        batch = (axes[labels] + rng.normal(scale=0.05, size=(20, 3))) * rng.uniform(1, 9, (20, 1))
        weights = rng.uniform(0, 2, 20)
        model.partial_fit(kind(batch), sample_weight=weights)
        units = batch / np.linalg.norm(batch, axis=1, keepdims=True)
        np.add.at(sums, labels, weights[:, None] * units)
        directions = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        np.testing.assert_allclose(model.cluster_centers_, directions, atol=1e-12)
        np.testing.assert_array_equal(model.labels_, labels)
        cosines = np.take_along_axis(units @ directions.T, labels[:, None], axis=1)[:, 0]
        assert model.inertia_ == pytest.approx((weights * (1 - cosines)).sum(), abs=1e-9)


@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_after_a_fit_it_goes_on_as_if_the_rows_had_been_streamed(spread, rng):
    """At a fixed point, centers and masses are those of the rows, for means and for directions."""
    axes = 5.0 * np.eye(3)
    labels = rng.integers(0, 3, 300)
    X, batch = (axes[a] + rng.normal(scale=spread, size=(len(a), 3)) for a in (labels, labels[:60]))
    weights = rng.uniform(0.5, 2, 300)
    for kind in BOTH:
        model = kind(3, init=axes, tol=0).fit(X, sample_weight=weights).partial_fit(batch)
        streamed = kind(3, init=axes).partial_fit(X, sample_weight=weights).partial_fit(batch)
        np.testing.assert_allclose(model.cluster_centers_, streamed.cluster_centers_, rtol=1e-10)
        np.testing.assert_allclose(model._counts, streamed._counts, rtol=1e-10)
        assert (model.n_steps_, streamed.n_steps_) == (1, 2)


def test_a_fit_begins_anew_after_batches(rng):
    X = rng.normal(size=(80, 2))
    fitted = lf.KMeans(3, random_state=0).fit(X)
    again = lf.KMeans(3, random_state=0).partial_fit(X + 5).fit(X)
    np.testing.assert_array_equal(again.cluster_centers_, fitted.cluster_centers_)
    assert not hasattr(again, "n_steps_")


@pytest.mark.parametrize("kind", BOTH)
def test_the_first_batch_chooses_the_start_by_init(kind, rng):
    first, second = rng.normal(5, 1, size=(2, 60, 3))
    one, other = (kind(4, random_state=7, n_init=n).partial_fit(first) for n in (1, 5))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    another = kind(4, random_state=8).partial_fit(first)
    assert not np.array_equal(one.cluster_centers_, another.cluster_centers_)
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        kind(4).partial_fit(first[:3])
    kind(4).partial_fit(first).partial_fit(second[:1])  # later batches may be small


def test_a_center_without_rows_stays_to_the_last_bit():
    model = lf.KMeans(3, init=FAR + 0.1).partial_fit(FAR[[0, 1, 2, 0]] + 0.3)
    before = model.cluster_centers_.copy()
    for empty in ("keep", "error", "farthest"):
        model.set_params(empty=empty).partial_fit(FAR[:2] + 0.7)
        np.testing.assert_array_equal(model.cluster_centers_[2], before[2])
    assert not np.array_equal(model.cluster_centers_[0], before[0])


def test_rows_without_weight_move_nothing():
    model = lf.KMeans(3, init=FAR).partial_fit(FAR + 1)
    before = model.cluster_centers_.copy()
    model.partial_fit(FAR + 9, sample_weight=[0, 2, 0])
    np.testing.assert_array_equal(model.cluster_centers_[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(model.cluster_centers_[1], FAR[1] + (1 + 2 * 9) / 3)
    np.testing.assert_array_equal(model._counts, [1, 3, 1])


def test_far_from_zero_no_digit_is_lost(rng):
    parts = [part + 1e7 for part in batches(rng, middle=0.0)]
    near, far = (lf.KMeans(4, init=parts[0][:4] - off) for off in (1e7, 0.0))
    for part in parts:
        near.partial_fit(part - 1e7)
        far.partial_fit(part)
        np.testing.assert_array_equal(near.labels_, far.labels_)
    np.testing.assert_allclose(far.cluster_centers_ - 1e7, near.cluster_centers_, atol=1e-7)


def test_the_scaling_of_the_first_batch_is_kept(rng):
    first, second = rng.normal(size=(2, 40, 2)) * [1.0, 1000.0]
    scale = first.max(axis=0) - first.min(axis=0)
    shift = first.min(axis=0)
    model = lf.KMeans(3, init=first[:3])
    model.partial_fit(lf.data.open_dataset(first, scale="minmax"))
    model.partial_fit(lf.data.open_dataset(second, scale="minmax"))
    plain = lf.KMeans(3, init=(first[:3] - shift) / scale)
    plain.partial_fit((first - shift) / scale).partial_fit((second - shift) / scale)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_ * scale + shift)


@pytest.mark.parametrize("kind", BOTH)
def test_a_saved_model_goes_on_to_the_last_bit(kind, rng, tmp_path):
    first, second, third = rng.normal(3, 1, size=(3, 50, 4))
    model = kind(3, random_state=0).partial_fit(first).partial_fit(second)
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path).partial_fit(third)
    model.partial_fit(third)
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert (again.inertia_, again.n_steps_) == (model.inertia_, 3)


def test_batches_that_do_not_fit_are_refused(rng):
    model = lf.KMeans(3, random_state=0).partial_fit(rng.normal(size=(20, 4)))
    before = model.cluster_centers_.copy()
    with pytest.raises(ValueError, match="X has 5 features, but KMeans is expecting 4"):
        model.partial_fit(rng.normal(size=(20, 5)))
    with pytest.raises(ValueError, match=r"found torch.float32, and centers in torch.float64"):
        model.partial_fit(rng.normal(size=(20, 4)).astype(np.float32))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((20, 4), np.nan))
    with pytest.raises(ValueError, match="n_clusters: found 4, and 3 centers"):
        model.set_params(n_clusters=4).partial_fit(rng.normal(size=(20, 4)))
    with pytest.raises(ValueError, match="'n_clusters' parameter"):
        lf.KMeans(0).partial_fit(rng.normal(size=(20, 4)))
    np.testing.assert_array_equal(model.cluster_centers_, before)


def test_zero_rows_are_as_in_fit():
    batch = np.vstack([np.eye(3), np.zeros(3)])
    with pytest.raises(ValueError, match="row 3"):
        lf.SphericalKMeans(2).partial_fit(batch)
    model = lf.SphericalKMeans(3, zero_rows="ignore", init=np.eye(3)).partial_fit(batch)
    np.testing.assert_allclose(model.cluster_centers_, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(model._counts, 1)


def test_many_batches_find_what_one_fit_finds(rng):
    planted = rng.normal(scale=10, size=(5, 4))
    X = planted[rng.integers(0, 5, 5000)] + rng.normal(size=(5000, 4))
    model = lf.KMeans(5, random_state=0)
    for part in np.split(X, 50):
        model.partial_fit(part)
    assert -model.score(X) < 1.01 * lf.KMeans(5, n_init=3, random_state=0).fit(X).inertia_


def drifting_batches(n_batches=300, size=20):
    """Two clusters in one dimension that move by 10 in all, at 4 and 9 in the middle of the way."""
    rng, labels = np.random.default_rng(1), np.arange(size) % 2
    for at in np.linspace(-0.1, 9.9, n_batches):
        yield (at + 5.0 * labels + rng.normal(scale=0.3, size=size))[:, None]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, torch.from_numpy])
def test_decay_follows_a_stream_that_drifts(kind):
    start = np.array([[0.0], [5.0]])
    follows, remembers = lf.KMeans(2, init=start, decay=0.1), lf.KMeans(2, init=start)
    for batch in drifting_batches():
        follows.partial_fit(kind(batch))
        remembers.partial_fit(kind(batch))
    # A stationary lag: (1 - decay) / decay batches, in each of which the clusters move by 1/30.
    true, lag = np.array([[9.9], [14.9]]), 9 * 10 / 299
    np.testing.assert_allclose(np.asarray(follows.cluster_centers_), true - lag, atol=0.15)
    # Without decay, centers are means of all rows since the first one: far behind.
    assert (np.asarray(remembers.cluster_centers_) < true - 4).all()


@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(3, 9), min_size=1, max_size=6),
    decay=st.sampled_from([0.0, 0.01, 0.5, 0.9]),
)
def test_a_row_keeps_its_weight_times_a_power_of_what_is_left(seed, sizes, decay):
    rng, rows, labels, weights = np.random.default_rng(seed), [], [], []
    model = lf.KMeans(3, init=FAR, decay=decay)
    for age, size in zip(range(len(sizes) - 1, -1, -1), sizes, strict=True):
        labels.append(rng.integers(0, 3, size))
        rows.append(FAR[labels[-1]] + rng.normal(size=(size, 2)))  # far apart: never another one
        given = rng.uniform(0.5, 2, size)
        model.partial_fit(rows[-1], sample_weight=given)
        weights.append(given * (1 - decay) ** age)
    x, a, w = np.concatenate(rows), np.concatenate(labels), np.concatenate(weights)
    for j in range(3):
        mine = a == j
        expected = np.average(x[mine], axis=0, weights=w[mine]) if mine.any() else FAR[j]
        np.testing.assert_allclose(model.cluster_centers_[j], expected, rtol=1e-12, atol=1e-11)
        assert model._counts[j] == pytest.approx(w[mine].sum())


@pytest.mark.parametrize("decay", [0.25, 1.0])
def test_directions_forget_as_means_do(decay, rng):
    model, sums = lf.SphericalKMeans(3, init=np.eye(3), decay=decay), np.zeros((3, 3))
    for _ in range(6):
        labels = np.arange(30) % 3
        batch = np.eye(3)[labels] + rng.normal(scale=0.05, size=(30, 3))
        model.partial_fit(batch)
        units = batch / np.linalg.norm(batch, axis=1, keepdims=True)
        sums *= 1 - decay
        np.add.at(sums, labels, units)
        directions = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        np.testing.assert_allclose(model.cluster_centers_, directions, atol=1e-12)


def test_decay_worked_by_hand():
    """Half of the weight is left after each batch: (1/2 * 1/2 * 0 + 1/2 * 4 + 8) / (7/4)."""
    model = lf.KMeans(1, init=[[0.0]], decay=0.5)
    for value in (0.0, 4.0, 8.0):
        model.partial_fit([[value]])
    assert model.cluster_centers_[0, 0] == pytest.approx(40 / 7)
    assert model._counts[0] == 1.75


def test_decay_changes_nothing_else(rng):
    """A center without rows stays, however long, and its old weight is forgotten meanwhile."""
    model = lf.KMeans(3, init=FAR, decay=0.5).partial_fit(np.repeat(FAR + 1, 50, axis=0))
    for _ in range(1200):  # 0.5^1200 is below the smallest float
        model.partial_fit(FAR[:2])
    np.testing.assert_array_equal(model.cluster_centers_[2], FAR[2] + 1)
    assert model._counts[2] == 0
    model.partial_fit(FAR[2:] + 2)
    np.testing.assert_allclose(model.cluster_centers_[2], FAR[2] + 2)
    X = rng.normal(size=(60, 2))
    plain, forgetful = (lf.KMeans(3, random_state=0, decay=d).fit(X) for d in (0.0, 0.7))
    np.testing.assert_array_equal(plain.cluster_centers_, forgetful.cluster_centers_)
    np.testing.assert_array_equal(plain._counts, forgetful._counts)


@pytest.mark.parametrize("kind", BOTH)
def test_a_saved_model_keeps_its_decay(kind, rng, tmp_path):
    first, second, third = rng.normal(3, 1, size=(3, 50, 4))
    model = kind(3, random_state=0, decay=0.3).partial_fit(first).partial_fit(second)
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path).partial_fit(third)
    model.partial_fit(third)
    assert again.decay == 0.3
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(again._counts, model._counts)


@pytest.mark.parametrize("decay", [-0.1, 1.5, np.nan, "fast", None])
def test_a_decay_that_is_no_share_is_refused(decay):
    with pytest.raises(ValueError, match="'decay' parameter"):
        lf.KMeans(1, decay=decay).partial_fit([[0.0]])
