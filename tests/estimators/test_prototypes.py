"""K-prototypes and k-modes: categories, and categories beside numbers."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import make_column_selector

import lloydformer as lf
from lloydformer.algorithms import Prototypes
from lloydformer.data.categories import Columns, encode
from lloydformer.plans.lower import lower
from lloydformer.plans.prototypes import PrototypesPlan

# with empty="keep", and for few different rows
pytestmark = pytest.mark.filterwarnings("ignore:Number of distinct clusters")


def draw_table(seed=0, n=80, sizes=(3, 4, 2), n_numbers=2, k=3, noise=0.2):
    """Return a frame of numbers a, b .. and words w0, w1 .. in clusters."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    frame = pd.DataFrame(
        4 * rng.normal(size=(k, n_numbers))[labels] + rng.normal(size=(n, n_numbers)),
        columns=list("abcdef")[:n_numbers],
    )
    for f, size in enumerate(sizes):
        words = rng.integers(size, size=k)[labels]
        words = np.where(rng.random(n) < noise, rng.integers(size, size=n), words)
        frame[f"w{f}"] = [f"v{word}" for word in words]
    return frame, labels


def as_rows(frame, n_numbers):
    """Return the rows of a frame as the oracle takes them."""
    table = frame.to_numpy(object)
    words = [[None if word != word else word for word in row[n_numbers:]] for row in table]
    return [(list(map(float, row[:n_numbers])), own) for row, own in zip(table, words, strict=True)]


def oracle_of(frame, gamma, n_numbers):
    words = frame.columns[n_numbers:]
    return Prototypes(gamma, tuple(sorted(frame[c].dropna().unique()) for c in words))


@pytest.mark.parametrize("n_numbers", [0, 2])
@pytest.mark.parametrize("engine", ["native", "chunked"])
def test_iterations_are_those_of_the_definition(n_numbers, engine):
    for seed in range(5):
        frame, _ = draw_table(seed, n_numbers=n_numbers)
        start = frame.iloc[:3]
        model = lf.KPrototypes(3, init=start, max_iter=6, engine=engine, empty="keep").fit(frame)
        rows, centers = as_rows(frame, n_numbers), as_rows(start, n_numbers)
        oracle = oracle_of(frame, model.gamma_, n_numbers)
        costs = [oracle.objective(rows, centers)]
        for _ in range(model.n_iter_):
            centers = oracle.place(rows, oracle.assign(rows, centers), centers)
            costs.append(oracle.objective(rows, centers))
        assert np.allclose(model.objective_history_, costs)
        assert model.labels_.tolist() == oracle.assign(rows, centers)
        for found, (numbers, words) in zip(model.prototypes_, centers, strict=True):
            assert np.allclose([found[c] for c in frame.columns[:n_numbers]], numbers)
            assert [found[c] for c in frame.columns[n_numbers:]] == words


def test_the_circuit_is_the_plain_algorithm_and_lowers_to_the_plan():
    frame, _ = draw_table(1, n=30)
    model = lf.KPrototypes(3, init=frame.iloc[:3], max_iter=4, empty="keep").fit(frame)
    encoding = model.encoding_
    points = encode(Columns(frame), encoding).matrix.toarray()
    recipe = lf.recipes.prototypes(encoding.sizes, 2)
    circuit = lf.Circuit(recipe, n_features=encoding.width, n_clusters=3)
    trace = circuit(points, points[:3], n_layers=model.n_iter_)
    assert np.allclose(trace.centers[-1], model.cluster_centers_)
    assert np.allclose(trace.objective * model.gamma_ / 2, model.objective_history_)
    assert lower(recipe) == PrototypesPlan(n_numbers=2, sizes=encoding.sizes) == model._plan()


def test_a_block_takes_the_first_of_equally_common_categories():
    table = [["b", "x"], ["a", "x"], ["a", "y"], ["b", "y"]]
    model = lf.KPrototypes(1).fit(table)
    assert model.prototypes_ == [{0: "a", 1: "x"}]
    assert (model.inertia_, model.gamma_) == (4.0, 1.0)


def test_the_best_of_many_starts_is_that_of_all_partitions():
    for seed in range(4):
        frame, _ = draw_table(seed, n=8, sizes=(3, 3), n_numbers=1, k=2, noise=0.5)
        rows, best = as_rows(frame, 1), np.inf
        model = lf.KPrototypes(2, n_init=60, init="random", random_state=0).fit(frame)
        oracle = oracle_of(frame, model.gamma_, 1)
        for labels in itertools.product(range(2), repeat=7):
            labels = [0, *labels]
            if len(set(labels)) == 2:
                centers = oracle.place(rows, labels, rows[:2])
                best = min(best, oracle.objective(rows, centers))
        assert model.inertia_ == pytest.approx(best)


@given(
    st.integers(0, 10**6),
    st.sampled_from(["k-means++", "huang", "cao", "random"]),
    st.sampled_from(["category", "ignore"]),
)
def test_objectives_never_rise(seed, init, missing):
    frame, _ = draw_table(seed, n=40, n_numbers=seed % 3, noise=0.5)
    rng = np.random.default_rng(seed)
    words = frame.columns[seed % 3 :]
    frame[words] = frame[words].where(rng.random((40, len(words))) > 0.2, None)
    model = lf.KPrototypes(
        4, init=init, missing=missing, n_init=2, random_state=seed % 99, categories=list(words)
    )
    model.fit(frame, sample_weight=rng.integers(1, 4, 40))
    history = model.objective_history_
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert model.score(frame) <= 0


@pytest.mark.parametrize("kind", ["object", "category", "array", "lists", "codes", "bools"])
def test_tables_of_every_kind(kind):
    frame, _ = draw_table(2, n_numbers=1, sizes=(2, 2))
    usual = lf.KPrototypes(3, random_state=0).fit(frame)
    names = None
    table = frame
    if kind == "category":
        table = frame.astype({"w0": "category", "w1": "category"})
    elif kind == "array":
        table = frame.to_numpy(object)
    elif kind == "lists":
        table = frame.to_numpy(object).tolist()
    elif kind == "codes":
        table = frame.assign(**{c: (frame[c] == "v1").astype(int) for c in ("w0", "w1")})
        names = ["w0", 2]
    elif kind == "bools":
        table = frame.assign(**{c: frame[c] == "v1" for c in ("w0", "w1")})
    model = lf.KPrototypes(3, random_state=0, categories=names).fit(table)
    assert (model.labels_ == usual.labels_).all()
    assert model.inertia_ == usual.inertia_
    assert (model.predict(table) == model.labels_).all()


def test_columns_by_selector_and_by_name():
    frame, _ = draw_table(3)
    by_type = lf.KPrototypes(3, random_state=0).fit(frame)
    for chosen in (
        make_column_selector(dtype_exclude="number"),
        ["w2", "w0", "w1"],
        lambda X: X.columns[2:],
    ):
        model = lf.KPrototypes(3, categories=chosen, random_state=0).fit(frame)
        assert model.inertia_ == by_type.inertia_
    with pytest.raises(ValueError, match="categories: found 'city'; the columns of X are 'a', 'b'"):
        lf.KPrototypes(3, categories=["city"]).fit(frame)
    with pytest.raises(ValueError, match=r"column 'w0' holds no numbers .* name it in categories"):
        lf.KPrototypes(3, categories=["w1", "w2"]).fit(frame)


def test_an_unknown_category_differs_from_all():
    frame, _ = draw_table(4)
    model = lf.KPrototypes(3, random_state=0).fit(frame)
    other = frame.iloc[:10].assign(w0="new")
    same = frame.iloc[:10]
    numbers = same[["a", "b"]].to_numpy()
    for table, new in ((same, False), (other, True)):
        wanted = np.zeros((10, 3))
        for j, center in enumerate(model.prototypes_):
            away = ((numbers - [center["a"], center["b"]]) ** 2).sum(axis=1)
            differs = sum((table[c] != center[c]).to_numpy() for c in ("w0", "w1", "w2"))
            wanted[:, j] = away + model.gamma_ * differs
        assert np.allclose(model.transform(table) ** 2, wanted), new
        assert (model.predict(table) == wanted.argmin(axis=1)).all()
        assert model.score(table) == pytest.approx(-wanted.min(axis=1).sum())


def test_missing_categories():
    frame, _ = draw_table(5)
    frame.loc[[3, 7], "w1"] = None
    with pytest.raises(
        ValueError, match="found a missing value in row 3, column 'w1'; pass missing"
    ):
        lf.KPrototypes(3).fit(frame)
    own = lf.KPrototypes(3, missing="category", random_state=0).fit(frame)
    assert own.encoding_.categories[1].values[-1] is None
    named = lf.KPrototypes(3, random_state=0).fit(frame.fillna({"w1": "zz"}))
    assert own.inertia_ == pytest.approx(named.inertia_)
    ignored = lf.KPrototypes(3, missing="ignore", random_state=0).fit(frame)
    rows = as_rows(frame, 2)
    centers = [([c["a"], c["b"]], [c["w0"], c["w1"], c["w2"]]) for c in ignored.prototypes_]
    oracle = oracle_of(frame, ignored.gamma_, 2)
    assert ignored.inertia_ == pytest.approx(oracle.objective(rows, centers))
    assert ignored.score(frame) == pytest.approx(-ignored.inertia_)
    frame.loc[9, "a"] = np.nan
    with pytest.raises(ValueError, match="found nan in row 9, column 'a'; fill in"):
        lf.KPrototypes(3, missing="ignore").fit(frame)


def test_a_row_of_weight_two_counts_twice():
    frame, _ = draw_table(6)
    weights = np.random.default_rng(0).integers(0, 3, len(frame))
    options = {"init": frame.iloc[:3], "gamma": 1.5}
    weighted = lf.KPrototypes(3, **options).fit(frame, sample_weight=weights)
    repeated = lf.KPrototypes(3, **options).fit(frame.loc[np.repeat(frame.index, weights)])
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert np.allclose(weighted.cluster_centers_[:, 2:], repeated.cluster_centers_[:, 2:])
    assert weighted.prototypes_[0]["a"] == pytest.approx(repeated.prototypes_[0]["a"])


@pytest.mark.parametrize("init", ["k-means++", "huang", "cao", "random"])
def test_starts_find_planted_clusters(init):
    frame, labels = draw_table(7, n=300, sizes=(5, 5, 5, 5), n_numbers=0, k=3, noise=0.1)
    model = lf.KPrototypes(3, init=init, random_state=0).fit(frame)
    found = {(a, b) for a, b in zip(labels, model.labels_, strict=True)}
    counts = [((labels == a) & (model.labels_ == b)).sum() for a, b in found]
    assert sum(sorted(counts)[-3:]) > 0.95 * len(frame)


def test_costs_are_not_above_those_of_kmodes():
    kprototypes = pytest.importorskip("kmodes.kprototypes")
    for seed in range(3):
        frame, _ = draw_table(seed, n=150, n_numbers=2, k=4, noise=0.4)
        theirs = kprototypes.KPrototypes(4, n_init=3, random_state=seed)
        theirs.fit(frame.to_numpy(object), categorical=[2, 3, 4])
        ours = lf.KPrototypes(4, random_state=seed).fit(frame)
        assert ours.gamma_ == pytest.approx(theirs.gamma)
        assert ours.inertia_ <= theirs.cost_ * (1 + 1e-9)
        again = lf.KPrototypes(4, init=frame_of(theirs, frame), max_iter=1).fit(frame)
        assert again.objective_history_[0] == pytest.approx(theirs.cost_)


def frame_of(model, frame):
    """Return the centers of a model of kmodes as a frame."""
    found = pd.DataFrame(model.cluster_centroids_, columns=frame.columns)
    return found.astype({"a": float, "b": float})


def test_folders(tmp_path):
    frame, _ = draw_table(8)
    frame["flag"] = frame["w0"] == "v1"
    frame["code"] = np.arange(len(frame)) % 3
    model = lf.KPrototypes(3, categories=["w0", "w1", "w2", "flag", "code"], random_state=0)
    model.fit(frame)
    model.set_params(categories=None).save_pretrained(tmp_path / "model")
    again = lf.KPrototypes.from_pretrained(tmp_path / "model")
    assert again.prototypes_ == model.prototypes_
    assert (again.predict(frame) == model.labels_).all()
    assert again.feature_names_in_.tolist() == list(frame.columns)


def test_numbers_alone_are_k_means():
    rows = np.random.default_rng(0).normal(size=(100, 3)) + 7
    one = lf.KPrototypes(4, init=rows[:4], tol=0).fit(rows)
    other = lf.KMeans(4, init=rows[:4], tol=0).fit(rows)
    assert (one.labels_ == other.labels_).all()
    assert one.inertia_ == pytest.approx(other.inertia_)


def test_errors_name_what_was_found():
    frame, _ = draw_table()
    model = lf.KPrototypes(3, random_state=0).fit(frame)
    with pytest.raises(ValueError, match="X has 4 features, but KPrototypes is expecting 5"):
        model.predict(frame.iloc[:, :4])
    with pytest.raises(ValueError, match="lacks the columns 'w0' of the fit"):
        model.predict(frame.rename(columns={"w0": "city"}))
    with pytest.raises(ValueError, match="X: found a sparse matrix"):
        model.fit(sparse.eye(5, format="csr"))
    with pytest.raises(ValueError, match="init: found 2 rows; pass one for each of 3 clusters"):
        lf.KPrototypes(3, init=frame.iloc[:2]).fit(frame)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        lf.KPrototypes(3).fit(frame.iloc[:2])
    with pytest.raises(ValueError, match='engine: found "cuda"; KPrototypes runs on the CPU'):
        lf.KPrototypes(3, engine="cuda").fit(frame)
    with pytest.raises(ValueError, match="gamma"):
        lf.KPrototypes(3, gamma=0.0).fit(frame)
    with pytest.raises(ValueError, match="pass categories as texts, bools or whole numbers"):
        lf.KPrototypes(1, categories=[0]).fit(pd.DataFrame({0: [1.5j, 2.5j], 1: [1.0, 2.0]}))
    with pytest.raises(ValueError, match="n_features: found 3; circuits of these blocks have"):
        lf.Circuit(lf.recipes.prototypes((2, 2)), 3, 2)(
            torch.eye(3).double(), torch.eye(3)[:2].double(), 1
        )


def test_memory_is_linear_in_the_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"w{f}": rng.integers(2000, size=5000) for f in range(4)})
    columns = Columns(frame)
    model = lf.KPrototypes(5, categories=list(frame.columns), n_init=1, random_state=0).fit(frame)
    matrix = encode(columns, model.encoding_).matrix
    assert matrix.shape[1] > 7000  # a dense array would take 8,000 numbers for each row
    assert matrix.nnz == frame.size
