"""A model in a folder is the model: to the last bit, whole or not at all, and never by surprise."""

import json
import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from scipy import sparse

import lloydformer as lf
from lloydformer.circuits.activations import Softmax, TopK
from lloydformer.data.storage import model_folder
from lloydformer.estimators import Clusterer

X = np.random.default_rng(5).normal([100.0, 0.0, -7.0], 1.0, size=(300, 3))
MODELS = [
    lf.KMeans(3, random_state=0),
    lf.RelocatingKMeans(3, random_state=0),
    lf.SoftKMeans(3, random_state=0, inverse_temperature=100.0),
    lf.SphericalKMeans(3, random_state=0),
    lf.TrimmedKMeans(3, random_state=0, keep=0.9),
    lf.RobustKMeans(3, random_state=0),
    lf.RobustKMeans(3, random_state=0, inverse_temperature=0.5, activation=TopK(20)),
    lf.KMedoids(3, random_state=0, max_iter=20),
    lf.CircuitClusterer(3, random_state=0),
    lf.CircuitClusterer(3, random_state=0, max_iter=5, recipe=lf.recipes.lloyd(ties="average")),
    lf.CircuitClusterer(
        3, random_state=0, max_iter=5, recipe=lf.recipes.robust(0.2, TopK(9), 40.0)
    ),
]
KINDS = [
    lambda X: X,
    lambda X: X.astype(np.float32),
    torch.from_numpy,
    lambda X: torch.from_numpy(X).float(),
    lambda X: lf.data.open_dataset(X, scale="minmax"),
]


def name(model):
    return type(model).__name__


def same(one, other):
    """Equal, of the same type, to the last bit."""
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        one, other = one.numpy(), other.numpy()
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def same_model(one, other):
    """The same parameters, attributes and view, none more and none less."""
    assert type(one) is type(other)
    assert vars(one).keys() == vars(other).keys()
    for attribute in vars(one).keys() - {"_view"}:
        same(getattr(one, attribute), getattr(other, attribute))
    if hasattr(one, "_view"):
        same(one._view.origin, other._view.origin)
        scalings = [m._view.scaling for m in (one, other)]
        assert (scalings[0] is None) == (scalings[1] is None)
        if scalings[0] is not None:
            same(scalings[0].shift, scalings[1].shift)
            same(scalings[0].scale, scalings[1].scale)


def same_answers(one, other, X):
    for method in ("predict", "transform", "score"):
        same(getattr(one, method)(X), getattr(other, method)(X))
    if hasattr(one, "predict_proba"):
        same(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS, ids=["f64", "f32", "tensor64", "tensor32", "scaled"])
@pytest.mark.parametrize("model", MODELS, ids=name)
def test_what_is_read_is_what_was_saved(model, kind, tmp_path):
    data = kind(X)
    model.fit(data)
    model.save_pretrained(tmp_path / "model")
    for reader in (type(model), Clusterer):
        again = reader.from_pretrained(tmp_path / "model")
        same_model(again, model)
        same_answers(again, model, data)
    assert len(list((tmp_path / "model").iterdir())) == 2


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SphericalKMeans])
def test_sparse_models(kind, tmp_path):
    counts = sparse.random(200, 50, density=0.2, format="csr", random_state=0)
    model = kind(3, random_state=0).fit(counts)
    model.save_pretrained(tmp_path)
    same_answers(kind.from_pretrained(tmp_path), model, counts)


def test_names_of_columns_stay_and_are_compared(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "ü"])
    lf.KMeans(3, random_state=0).fit(frame).save_pretrained(tmp_path)
    again = lf.KMeans.from_pretrained(tmp_path)
    assert again.feature_names_in_.tolist() == ["a", "b", "ü"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "ü"]])


def test_a_model_that_is_not_fitted_comes_back_so(tmp_path):
    model = lf.TrimmedKMeans(np.int64(4), keep=np.float32(0.5), device=torch.device("cpu"))
    model.save_pretrained(tmp_path)
    again = Clusterer.from_pretrained(tmp_path)
    assert again.get_params() == {**model.get_params(), "device": "cpu"}
    assert not hasattr(again, "cluster_centers_")
    same(again.fit(X).n_features_in_, 3)


@pytest.mark.parametrize(
    "init", [X[:3], X[:3].tolist(), sparse.csr_matrix(X[:3]), torch.from_numpy(X[:3])], ids=type
)
def test_initial_centers_are_saved_as_tensors(init, tmp_path):
    model = lf.KMeans(3, init=init).fit(X)
    model.save_pretrained(tmp_path)
    again = lf.KMeans.from_pretrained(tmp_path)
    assert isinstance(again.init, torch.Tensor if isinstance(init, torch.Tensor) else np.ndarray)
    same(np.asarray(again.init), X[:3])
    same(again.fit(X).cluster_centers_, model.cluster_centers_)


def test_the_centers_of_a_model_may_be_its_start(tmp_path):
    model = lf.KMeans(3, random_state=0).fit(X)
    model.set_params(init=model.cluster_centers_).save_pretrained(tmp_path)
    same_model(lf.KMeans.from_pretrained(tmp_path), model)


def test_the_files_are_json_and_safetensors(tmp_path):
    model = lf.KMeans(3, random_state=0).fit(X)
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["class"], config["format"]) == ("KMeans", 1)
    assert config["parameters"]["n_clusters"] == 3
    assert config["attributes"]["inertia_"] == model.inertia_
    assert config["versions"]["lloydformer"] == lf.__version__
    same(load_file(tmp_path / config["tensors"])["cluster_centers_"], model.cluster_centers_)


def test_numbers_that_json_does_not_have_come_back(tmp_path):
    model = lf.KMeans(3).fit(X)
    model.inertia_ = float("inf")
    model.save_pretrained(tmp_path)
    assert lf.KMeans.from_pretrained(tmp_path).inertia_ == float("inf")


# ---- what cannot be saved


@pytest.mark.parametrize(
    "wrong",
    [
        {"init": lambda X, k, random_state: X[:k]},
        {"random_state": np.random.RandomState(0)},
        {"init": np.array([["a", "b"]])},
        {"n_clusters": 0},
    ],
    ids=["function", "generator", "words", "nothing"],
)
def test_parameters_that_cannot_be_saved_are_named(wrong, tmp_path):
    (parameter,) = wrong
    with pytest.raises(ValueError, match=parameter):
        lf.KMeans(**wrong).save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_could_not_be_read_is_not_saved(tmp_path):
    model = lf.KMeans(3).fit(X).set_params(n_clusters=4)
    with pytest.raises(ValueError, match=r"n_clusters: found 4, .* 3 rows; fit the model again"):
        model.save_pretrained(tmp_path / "model")
    with pytest.raises(
        ValueError, match=r"device: found device\(type='meta'\), which holds no num"
    ):
        lf.KMeans(3, device=torch.device("meta")).save_pretrained(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_for_a_device_that_is_not_here_is_read(tmp_path):
    lf.KMeans(3, device="cuda:7").save_pretrained(tmp_path)
    assert lf.KMeans.from_pretrained(tmp_path).device == "cuda:7"


def test_a_callback_is_left_out(tmp_path):
    lf.KMeans(3, callback=print).fit(X).save_pretrained(tmp_path)
    assert lf.KMeans.from_pretrained(tmp_path).callback is None


@dataclass(frozen=True)
class Sharper(Softmax):
    """A part that is not lloydformer's own."""


def test_a_part_of_ones_own_is_refused(tmp_path):
    soft = lf.recipes.soft()
    mine = replace(soft, encoder_cross=replace(soft.encoder_cross, activation=Sharper()))
    with pytest.raises(ValueError, match="recipe: found Sharper"):
        lf.CircuitClusterer(recipe=mine).save_pretrained(tmp_path)


def test_an_attribute_that_no_fit_sets_is_refused(tmp_path):
    model = lf.KMeans(3).fit(X)
    model.note_ = "mine"
    with pytest.raises(ValueError, match=r"note_: .*delete it"):
        model.save_pretrained(tmp_path)


# ---- what is there already


def test_a_model_is_replaced_only_if_asked_to(tmp_path):
    first, second = (lf.KMeans(3, random_state=s, max_iter=s).fit(X) for s in (1, 2))
    first.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a model already; pass force=True"):
        second.save_pretrained(tmp_path)
    same_model(lf.KMeans.from_pretrained(tmp_path), first)
    second.save_pretrained(tmp_path, force=True)
    same_model(lf.KMeans.from_pretrained(tmp_path), second)
    assert len(list(tmp_path.iterdir())) == 2


def test_other_files_stay(tmp_path):
    others = ["model-of-mine.safetensors", "model.safetensors", ".config.json.swp", "notes.txt"]
    for other in others:
        (tmp_path / other).write_text("mine")
    for _ in range(2):
        lf.KMeans(3).save_pretrained(tmp_path, force=True)
    assert all((tmp_path / other).read_text() == "mine" for other in others)


def test_the_config_of_another_program_stays(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="is not a model of lloydformer; choose another folder"):
        lf.KMeans(3).save_pretrained(tmp_path, force=True)
    assert json.loads((tmp_path / "config.json").read_text()) == {"model_type": "bert"}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        lf.KMeans(3).save_pretrained(tmp_path / "file")
    with pytest.raises(ValueError, match="there is no such file"):
        lf.KMeans.from_pretrained(tmp_path / "file")


# ---- what cannot be read


def test_another_class_is_refused_with_both_names(tmp_path):
    lf.SoftKMeans(3).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a SoftKMeans, not a KMeans"):
        lf.KMeans.from_pretrained(tmp_path)


def refused(folder, words):
    """It is a ValueError of one line that names the folder."""
    with pytest.raises(ValueError, match=words) as caught:
        Clusterer.from_pretrained(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_missing_or_not_whole(tmp_path):
    refused(tmp_path / "nowhere", "config.json: there is no such file")
    lf.KMeans(3).fit(X).save_pretrained(tmp_path)
    (tensors,) = tmp_path.glob("*.safetensors")
    whole = tensors.read_bytes()
    tensors.write_bytes(whole[:-8])
    refused(tmp_path, "safetensors: is damaged")
    tensors.write_bytes(whole[:-1] + b"\xff")
    refused(tmp_path, "safetensors: is damaged")
    tensors.unlink()
    refused(tmp_path, "safetensors: there is no such file")
    config = tmp_path / "config.json"
    config.write_text(config.read_text()[:-20])
    refused(tmp_path, "config.json: is not JSON")


WRONG = [
    ({"format": 2}, "format 2; this version of lloydformer reads format 1"),
    ({"library": "other"}, "is not a model of lloydformer"),
    ({"tensors": "../model.safetensors"}, "not a name of a tensor file"),
    ({"tensors": None}, "not a name of a tensor file"),
    ({"class": "Birch"}, "found class 'Birch'; there are BernoulliMixture, CircuitClusterer"),
    ({"class": ["KMeans"]}, "found class"),
    ({"class": "Clusterer"}, "found class 'Clusterer'"),
    ({"parameters": None}, "found parameters None"),
    ({"parameters": {"depth": 3}}, r"found parameters \['depth'\], which KMeans"),
    ({"parameters": {"n_clusters": -1}}, "'n_clusters' parameter of KMeans must be"),
    ({"parameters": {"init": {"array": "init"}}}, "init: found .* not in the tensors"),
    ({"parameters": {"init": {"array": ["init"]}}}, "init: found .* not in the tensors"),
    ({"parameters": {"init": {"pickle": "gASV"}}}, "init: found .* not a value"),
    ({"parameters": {"init": {"recipe": {"part": "os.system"}}}}, "found part 'os.system'"),
    ({"parameters": {"n_clusters": 4}}, "n_clusters: found 4, but cluster_centers_ has 3 rows"),
    ({"parameters": {"n_clusters": 10**30}}, "n_clusters: found 1000.* has 3 rows"),
    ({"parameters": {"max_iter": 10**30}}, "'max_iter' parameter of KMeans must be"),
    ({"parameters": {"device": "meta"}}, "device: found 'meta', which holds no numbers; pass cpu"),
    ({"parameters": {"device": "meta:3"}}, "device: found 'meta:3', which holds no numbers"),
    ({"parameters": {"device": "toaster"}}, "device: found 'toaster' .*; pass cpu or cuda"),
    ({"attributes": {"n_features_in_": 4}}, r"shape \(3, 3\); it is \(3, 4\)"),
    ({"attributes": {"_n_features_out": 2}}, r"shape \(3, 3\); it is \(2, 3\)"),
    ({"attributes": {"_n_features_out": True}}, "_n_features_out: found True; it is a int"),
    ({"attributes": {"inertia_": "low"}}, "inertia_: found 'low'; it is a float"),
    ({"attributes": {"n_iter_": 0}}, "n_iter_: found 0"),
    ({"attributes": {"labels_": [0, 1]}}, "does not name labels_ of its tensors"),
    ({"attributes": {"labels_": {"array": "cluster_centers_"}}}, "found"),
    ({"attributes": {"feature_names_in_": {"names": ["a"]}}}, r"shape \(1,\); it is \(3,\)"),
    ({"attributes": {"feature_names_in_": {"names": [1, 2, 3]}}}, "feature_names_in_: found"),
    ({"attributes": {"predict": 1}}, "found attribute 'predict'"),
    ({"view": {"shift": {"tensor": "view.origin"}}}, "found"),
    ({"view": {"origin": 1.0}}, "view.origin of its tensors"),
]


@pytest.mark.parametrize(("change", "words"), WRONG, ids=str)
def test_a_config_that_is_wrong_is_refused(change, words, tmp_path):
    lf.KMeans(3, random_state=0).fit(X).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    for key, value in change.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(config))
    refused(tmp_path, words)


@pytest.mark.parametrize("missing", ["cluster_centers_", "inertia_", "n_features_in_"])
def test_an_attribute_that_is_missing_is_named(missing, tmp_path):
    lf.KMeans(3, random_state=0).fit(X).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["attributes"][missing]
    path.write_text(json.dumps(config))
    refused(tmp_path, missing)


def test_a_model_that_is_replaced_while_it_is_read_is_the_new_one(tmp_path, monkeypatch):
    old, new = (lf.KMeans(k, random_state=0).fit(X) for k in (3, 4))
    old.save_pretrained(tmp_path)
    read = model_folder._read_tensors

    def too_late(path):
        monkeypatch.setattr(model_folder, "_read_tensors", read)
        new.save_pretrained(tmp_path, force=True)
        return read(path)

    monkeypatch.setattr(model_folder, "_read_tensors", too_late)
    same_model(lf.KMeans.from_pretrained(tmp_path), new)


def test_an_empty_folder_stays_after_an_error(tmp_path, monkeypatch):
    model = lf.KMeans(1).fit([[0.0], [1.0]])
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with pytest.raises(OSError, match="full"):
            model.save_pretrained(tmp_path / name)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
