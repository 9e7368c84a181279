"""A fit as an ONNX graph gives the labels, centers, inertia and iterations of the estimator."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import TopK

pytest.importorskip("onnx", reason='the extra "onnx" is not installed')
onnxruntime = pytest.importorskip("onnxruntime", reason='the extra "onnx" is not installed')

FITS = {
    "kmeans": lf.KMeans(),
    "kmeans, to the end": lf.KMeans(tol=0.0),
    "kmeans, two iterations": lf.KMeans(max_iter=2),
    "kmeans, empty clusters kept": lf.KMeans(empty="keep"),
    "spherical": lf.SphericalKMeans(),
    "soft": lf.SoftKMeans(inverse_temperature=0.7),
    "soft, hard": lf.SoftKMeans(inverse_temperature=1e4),
    "trimmed": lf.TrimmedKMeans(keep=0.8),
    "robust": lf.RobustKMeans(inverse_temperature=0.1),
    "robust, softmax": lf.RobustKMeans(inverse_temperature=0.3, activation="softmax"),
    "robust, top-k": lf.RobustKMeans(inverse_temperature=0.3, activation=TopK(4)),
    "circuit": lf.CircuitClusterer(recipe=lf.recipes.lloyd_dot()),
}
N_PROBLEMS = 50


def problem(number, name):
    """Points about some middles; every third problem has whole numbers with ties and duplicates."""
    rng = np.random.default_rng([number, list(FITS).index(name)])
    n, d, k = int(rng.integers(20, 90)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    if name == "spherical":
        d += 1
    points = rng.uniform(-4, 4, size=(k, d))[np.arange(n) % k] + rng.normal(size=(n, d))
    centers = points[rng.choice(n, size=k, replace=False)]
    # with top-k, rounding would decide which of equally far points is the fourth
    if number % 3 == 1 and name not in ("spherical", "robust, top-k"):
        points = np.round(points)
        centers = points[:k].copy()
        # a center without points, which a fit fills
        if k > 2 and number % 2:
            centers[-1] += 40.0
    if number % 3 == 2:
        points, centers = points + 1000.0, centers + 1000.0
    return points, centers


def fitted(name, points, centers):
    model = FITS[name].set_params(n_clusters=len(centers), init=centers)
    return model.fit(points)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of duplicates
@pytest.mark.parametrize("name", FITS)
def test_the_graph_is_the_fit(name, tmp_path):
    path = tmp_path / "fit.onnx"
    lf.export.fit_onnx(FITS[name], path)
    run = onnxruntime.InferenceSession(path)
    several = 0
    for number in range(N_PROBLEMS):
        points, centers = problem(number, name)
        model = fitted(name, points, centers)
        found = run.run(None, {"points": points, "centers": centers})
        new, labels, inertia, n_iter = found
        size = np.abs(points).max()
        np.testing.assert_allclose(new, model.cluster_centers_, rtol=0, atol=1e-12 * size)
        np.testing.assert_array_equal(labels, model.labels_)
        np.testing.assert_allclose(inertia, model.inertia_, rtol=1e-9, atol=1e-9)
        assert n_iter == model.n_iter_, f"problem {number}"
        several += n_iter > 3
    assert several > 5 or "two" in name


def test_lloyd_is_small(tmp_path):
    lf.export.fit_onnx(lf.KMeans(empty="keep"), tmp_path / "a.onnx")
    assert (tmp_path / "a.onnx").stat().st_size < 3500


def test_single_precision(tmp_path):
    lf.export.fit_onnx(lf.KMeans(), tmp_path / "a.onnx", torch.float32)
    points, centers = (rows.astype(np.float32) for rows in problem(0, "kmeans"))
    run = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    new, labels, _, _ = run.run(None, {"points": points, "centers": centers})
    assert new.dtype == np.float32
    model = fitted("kmeans", points, centers)
    np.testing.assert_allclose(new, model.cluster_centers_, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(labels, model.labels_)


PREDICTORS = {
    "kmeans": lf.KMeans(3, random_state=0),
    "spherical": lf.SphericalKMeans(3, random_state=0),
    "soft": lf.SoftKMeans(3, random_state=0),
    "trimmed": lf.TrimmedKMeans(3, random_state=0),
    "robust": lf.RobustKMeans(3, random_state=0),
    "medoids": lf.KMedoids(3, random_state=0),
    "medoids, cosine": lf.KMedoids(3, metric="cosine", random_state=0),
    "relocating": lf.RelocatingKMeans(3, random_state=0),
    "learned": lf.LearnedKMeans(3, random_state=0),
    "circuit": lf.CircuitClusterer(3, recipe=lf.recipes.lloyd_binary(), random_state=0),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictions(name, tmp_path, rng):
    points = rng.normal(size=(60, 3)) + 5.0
    model = PREDICTORS[name].fit(points)
    lf.export.predict_onnx(model, tmp_path / "a.onnx")
    run = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    for rows in (points, rng.normal(size=(200, 3)) + 5.0):
        (labels,) = run.run(None, {"points": rows})
        np.testing.assert_array_equal(labels, model.predict(rows))


ALONE = """
import json, sys
sys.modules["lloydformer"] = sys.modules["torch"] = None
import numpy as np, onnxruntime
points = np.array([[0.0], [1.0], [8.0], [9.0]])
run = onnxruntime.InferenceSession(sys.argv[1])
print(json.dumps([x.tolist() for x in run.run(None, {"points": points, "centers": points[:2]})]))
"""


def test_a_fit_runs_without_this_package(tmp_path):
    lf.export.fit_onnx(lf.KMeans(), tmp_path / "a.onnx")
    command = [sys.executable, "-c", ALONE, str(tmp_path / "a.onnx")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == [[[0.5], [8.5]], [0, 0, 1, 1], 1.0, 3]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lf.KMedoids(), "found KMedoids, whose fit draws"),
        (lf.RelocatingKMeans(), "found RelocatingKMeans, whose fit"),
        (lf.LearnedKMeans(), "found LearnedKMeans, whose fit"),
        (lf.KMeans(batch_size=10), "found KMeans, whose fit"),
        (lf.SoftKMeans(), 'found inverse_temperature="scale"'),
        (lf.KMeans(empty="error"), 'found empty="error"'),
        (lf.CircuitClusterer(recipe=lf.recipes.medoids()), "which draws or searches"),
        (lf.CircuitClusterer(recipe=lf.recipes.lloyd("average")), "Circuit.export"),
    ],
    ids=str,
)
def test_what_is_no_loop_is_refused(model, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        lf.export.fit_onnx(model, tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_of_predictions(tmp_path):
    with pytest.raises(ValueError, match="found GaussianMixture, which does not label by"):
        lf.export.predict_onnx(lf.GaussianMixture(2), tmp_path / "a.onnx")
    with pytest.raises(ValueError, match="which is not fitted"):
        lf.export.predict_onnx(lf.KMeans(), tmp_path / "a.onnx")
    model = lf.KMedoids(2, metric="manhattan").fit([[0.0], [1.0], [5.0]])
    with pytest.raises(ValueError, match="found metric='manhattan'"):
        lf.export.predict_onnx(model, tmp_path / "a.onnx")
    with pytest.raises(ValueError, match=r"path: found 'a\.pt'"):
        lf.export.predict_onnx(model, "a.pt")
    with pytest.raises(ValueError, match="dtype: found"):
        lf.export.predict_onnx(model, "a.onnx", dtype=torch.int64)
