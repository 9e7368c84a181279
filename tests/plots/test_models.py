"""`model.plot(X)` draws what the model and the rows say."""

import builtins

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy import sparse
from sklearn.decomposition import PCA

import lloydformer as lf
from lloydformer.plots.models import KINDS, draw_centers, top_columns
from lloydformer.profiles.clustering import open_clustering

RNG = np.random.default_rng(0)
MIDDLES = np.array([[0, 0, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0]])
X = pd.DataFrame(
    MIDDLES[np.arange(90) % 3] + RNG.normal(size=(90, 4)), columns=["long", "wide", "c", "d"]
)
MODEL = lf.KMeans(3, init=MIDDLES.astype(float)).fit(X)
EVERY = (*KINDS, "profiles")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_is_drawn_without_changing_the_model(kind):
    before = dict(vars(MODEL))
    figure = MODEL.plot(X, kind=kind)
    figure.draw_without_rendering()
    assert all(vars(MODEL)[name] is value for name, value in before.items())
    assert figure.number in pyplot.get_fignums()  # plt.show() shows it


def test_the_map_names_the_variance_of_its_axes():
    ax = MODEL.plot(X).axes[0]
    first, second = PCA(2).fit(X).explained_variance_ratio_
    assert ax.get_xlabel() == f"component 1 ({100 * first:.0f}% of the variance)"
    assert ax.get_ylabel() == f"component 2 ({100 * second:.0f}% of the variance)"


def test_two_columns_are_drawn_as_they_are():
    frame = X[["long", "wide"]] * [1, 1000]
    model = lf.KMeans(3, random_state=0).fit(lf.data.open_dataset(frame, scale="standard"))
    ax = model.plot(lf.data.open_dataset(frame)).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("long", "wide")
    drawn = np.vstack([dots.get_offsets() for dots in ax.collections])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(frame, axis=0), rtol=1e-6)
    placed = np.array([text.get_position() for text in ax.texts])
    np.testing.assert_allclose(placed, model.cluster_centers_, rtol=1e-6)


def ellipses(ax):
    """The curves of the components: of two lines each, the coloured one."""
    return [np.array(line.get_xydata()) for line in ax.lines if line.get_color() != "white"]


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_components_of_a_mixture_have_ellipses_of_two_standard_deviations(kind):
    frame = X[["long", "wide"]] * [1, 1000]
    model = lf.GaussianMixture(3, covariance_type=kind, random_state=0).fit(frame)
    found = ellipses(model.plot(frame, kind="map").axes[0])
    assert len(found) == 3
    for j, curve in enumerate(found):
        precision = model.precisions_ if kind == "tied" else model.precisions_[j]
        if kind in ("diag", "spherical"):
            precision = np.diag(np.broadcast_to(precision, 2))
        away = curve - model.means_[j]
        squares = np.einsum("op,pq,oq->o", away, precision, away)
        np.testing.assert_allclose(squares, 4, rtol=1e-6)
        np.testing.assert_allclose(curve[0], curve[-1])


def test_ellipses_of_many_columns_lie_in_the_plane_of_the_map():
    model = lf.GaussianMixture(3, random_state=0).fit(X)
    plane = PCA(2).fit(X)
    for j, curve in enumerate(ellipses(model.plot(X).axes[0])):
        own = plane.components_ @ model.covariances_[j] @ plane.components_.T
        widest = 2 * np.sqrt(np.linalg.eigvalsh(own)[-1])
        signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        middle = plane.transform(pd.DataFrame(model.means_, columns=X.columns))[j]
        # the signs of principal components are arbitrary
        distances = [np.linalg.norm(curve * sign - middle, axis=1).max() for sign in signs]
        assert min(abs(np.array(distances) - widest)) < 1e-3 * widest


def test_ellipses_follow_the_scale_of_the_columns():
    frame = X[["long", "wide"]] * [1, 1000]
    data = lf.data.open_dataset(frame, scale="standard")
    model = lf.GaussianMixture(3, random_state=0).fit(data)
    plain = lf.GaussianMixture(3, means_init=model.means_, reg_covar=1e-9).fit(frame)
    curves = ellipses(model.plot(lf.data.open_dataset(frame)).axes[0])
    for one, two in zip(curves, ellipses(plain.plot(frame).axes[0]), strict=True):
        np.testing.assert_allclose(one.max(axis=0), two.max(axis=0), rtol=0.01)


def test_one_column_is_drawn_as_a_strip():
    model = lf.KMeans(3, random_state=0).fit(X[["long"]])
    ax = model.plot(X[["long"]]).axes[0]
    assert ax.get_xlabel() == "long"
    assert len(ax.get_yticks()) == 0


@pytest.mark.parametrize("kind", ["map", "silhouettes", "sizes", "profiles", "centers"])
def test_names_are_in_the_plot(kind):
    figure = MODEL.plot(X, kind, names={1: "long ones"})
    figure.draw_without_rendering()
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    texts += [text.get_text() for ax in figure.axes for text in ax.get_yticklabels()]
    assert "1 long ones" in texts


def test_sizes_are_those_of_the_labels():
    bars = MODEL.plot(X, "sizes").axes[0].patches
    assert [bar.get_width() for bar in bars] == np.bincount(MODEL.labels_).tolist()


def test_profiles_begin_with_the_columns_that_differ_most():
    axes = MODEL.plot(X, "profiles").axes
    assert {ax.get_title() for ax in axes[:2]} == {"long", "wide"}
    assert axes[0].get_title() == X.columns[top_columns(open_clustering(MODEL, X))[0]]


def test_the_heat_map_has_the_centers_in_units_of_the_spread():
    ax = draw_centers(open_clustering(MODEL, X), pyplot.figure().add_subplot())
    z = (MODEL.cluster_centers_ - X.mean().to_numpy()) / X.std(ddof=0).to_numpy()
    np.testing.assert_allclose(ax.images[0].get_array(), z)
    assert len(ax.texts) == z.size


def test_rows_left_out_are_crosses():
    far = np.vstack([X, [[60.0] * 4]])
    model = lf.TrimmedKMeans(3, keep=0.97, init=MIDDLES.astype(float)).fit(far)
    model.plot(far).draw_without_rendering()
    assert sum(bar.get_width() for bar in model.plot(far, "sizes").axes[0].patches) == len(
        far
    ) - len(model.outliers_)


@pytest.mark.parametrize("kind", EVERY)
def test_spherical_sparse_and_many_clusters(kind):
    rows = sparse.random_array((300, 40), density=0.3, rng=RNG, format="csr")
    model = lf.SphericalKMeans(45, random_state=0).fit(rows)
    model.plot(rows, kind).draw_without_rendering()


def test_axes_of_the_caller_are_used():
    ax = pyplot.figure().add_subplot()
    assert MODEL.plot(X, "sizes", ax=ax) is ax.figure
    assert len(ax.patches) == 3
    with pytest.raises(ValueError, match="ax: kind='profiles' has several axes"):
        MODEL.plot(X, "profiles", ax=ax)


def test_a_kind_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="kind: found 'pie'; pass map, silhouettes, sizes"):
        MODEL.plot(X, "pie")
    with pytest.raises(ValueError, match="kind: found 'silhouettes', which compare clusters"):
        lf.KMeans(1).fit(X).plot(X, "silhouettes")


def test_a_notebook_shows_the_figure_once(monkeypatch):
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "module://matplotlib_inline")
    figure = MODEL.plot(X, "sizes")
    assert figure.number not in pyplot.get_fignums()


def test_without_matplotlib_the_command_is_named(monkeypatch, tmp_path):
    real = builtins.__import__

    def missing(name, *arguments, **more):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    for draw in (MODEL.plot, lambda rows: lf.report(MODEL, rows, tmp_path / "page.html")):
        with pytest.raises(ImportError, match=r'pip install "lloydformer\[plots\]"'):
            draw(X)
