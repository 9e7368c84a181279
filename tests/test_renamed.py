"""Old names work, with a warning that says the new one; docs/migration.md has all of them."""

import copy
import inspect
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import lloydformer as lf
from lloydformer.renamed import renamed_arguments, to_new_names

SOURCE = Path(lf.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "migration.md"
ESTIMATORS = [
    kind
    for name in lf.__all__
    if hasattr(kind := getattr(lf, name), "_renamed_parameters") and kind is not lf.Clusterer
]
FUNCTIONS = [
    ("Circuit", lf.Circuit.__init__),
    ("Circuit", lf.Circuit.forward),
    ("ablate_edge", lf.interp.ablate_edge),
]
PACKAGES = [lf.data, lf.learning]
X = np.random.default_rng(0).normal(size=(60, 2))


def names_of_code() -> set[tuple[str, str, str]]:
    """Every renamed name as (where, old, new); parameters of all estimators once."""
    found = set()
    for kind in ESTIMATORS:
        for old, new in kind._renamed_parameters.items():
            everywhere = lf.Clusterer._renamed_parameters.get(old) == new
            found.add(("all estimators" if everywhere else kind.__name__, old, new))
        for name, words in kind._renamed_values.items():
            found |= {(kind.__name__, f'{name}="{o}"', f'{name}="{n}"') for o, n in words.items()}
    for package in PACKAGES:
        found |= {(package.__name__, old, new) for old, new in package._RENAMED.items()}
    for where, function in FUNCTIONS:
        found |= {(where, old, new) for old, new in function._renamed_parameters.items()}
    return found


def test_the_page_lists_every_name():
    text = PAGE.read_text(encoding="utf-8").split("<!-- renamed")[1].split("<!-- end -->")[0]
    found = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `?(.+?)`? \|$", text, re.MULTILINE)
    rows = [(where, old, new) for old, new, where in found]
    assert set(rows) == names_of_code()
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_constructor_knows_old_names_and_stores_new_ones(kind):
    own = kind().get_params()
    for old, new in kind._renamed_parameters.items():
        name, _, entry = new.partition(".")
        value = 7 if entry else own[name]
        with pytest.warns(FutureWarning, match=rf"^{kind.__name__}: {old} is now {name}") as caught:
            model = kind(**{old: value})
        assert caught[0].filename == __file__
        assert model.get_params() == (own | {name: {entry: 7}} if entry else own)
        with pytest.warns(FutureWarning, match=old):
            assert getattr(model, old) is value
        with pytest.warns(FutureWarning, match=old):
            assert kind().set_params(**{old: value}).get_params() == model.get_params()
        with pytest.warns(FutureWarning, match=old):
            setattr(model, old, value)
        assert old not in vars(model)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_old_words_become_new_ones(kind):
    for name, words in kind._renamed_values.items():
        for old, new in words.items():
            with pytest.warns(FutureWarning, match=f'{name}="{old}" is now "{new}"'):
                model = kind(**{name: old})
            assert getattr(model, name) == new
            model.check_parameters()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_new_names_give_no_warning(kind):
    model = clone(kind(2))
    assert copy.copy(model).get_params() == model.get_params()
    assert (
        list(inspect.signature(kind).parameters)[1:]
        == list(inspect.signature(kind.__init__).parameters)[2:]
    )


def test_both_names_together_are_refused():
    with (
        pytest.warns(FutureWarning),
        pytest.raises(ValueError, match="LearnedKMeans: found both polish and max_iter"),
    ):
        lf.LearnedKMeans(2, polish=3, max_iter=4)


def test_entries_of_a_dictionary_are_collected():
    names = {"rest": "options.n_iter", "n_moved": "options.n_moved"}
    given = {"rest": 2, "n_moved": 3, "seed": 1, "other": None}
    found = to_new_names("", given, names, {}, warns=False)
    assert found == {"options": {"n_iter": 2, "n_moved": 3}, "seed": 1, "other": None}
    current = {"options": {"n_moved": 5}}
    assert to_new_names("", {"rest": 2}, names, {}, current=current, warns=False) == {
        "options": {"n_iter": 2, "n_moved": 5}
    }
    assert to_new_names("", {"rest": None}, names, {}, warns=False) == {}  # the default


def test_a_grid_search_may_have_old_names():
    model = lf.LearnedKMeans(2, n_steps=1, random_state=0)
    with pytest.warns(FutureWarning, match="polish is now max_iter"):
        search = GridSearchCV(model, {"polish": [0, 3]}, cv=2).fit(X)
    assert search.best_estimator_.max_iter in (0, 3)


def test_a_class_of_another_package_may_have_an_old_name_of_its_own():
    class Ours(lf.LearnedKMeans):
        def __init__(self, n_clusters=8, *, polish=300):
            super().__init__(n_clusters, max_iter=polish)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = clone(Ours(2, polish=5))
        assert model.get_params() == {"n_clusters": 2, "polish": 5}
        assert model.max_iter == 5


def test_pickles_of_earlier_versions_are_read():
    model = lf.LearnedKMeans(2, max_iter=4)
    state = model.__getstate__()
    state["polish"] = state.pop("max_iter")
    again = lf.LearnedKMeans.__new__(lf.LearnedKMeans)
    again.__setstate__(state)
    assert again.max_iter == 4
    assert pickle.loads(pickle.dumps(again)).get_params() == model.get_params()


def test_circuits_know_old_names():
    points = torch.rand(6, 2)
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=2)
    with pytest.warns(FutureWarning, match="Circuit: keep is now names_filter") as caught:
        old = circuit(points, points[:2], n_layers=1, keep="*.scores")
    assert caught[0].filename == __file__
    new = circuit(points, points[:2], n_layers=1, names_filter="*.scores")
    assert old.kept.keys() == new.kept.keys() != set()


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_know_old_names(package):
    for old, new in package._RENAMED.items():
        message = f"{package.__name__}: {old} is now {new}"
        with pytest.warns(FutureWarning, match=message) as caught:
            assert getattr(package, old) is getattr(package, new)
        assert caught[0].filename == __file__
        with pytest.warns(FutureWarning, match=message) as caught:
            exec(f"from {package.__name__} import {old}", {"__name__": "user"})
        assert {warning.filename for warning in caught} == {"<string>"}
        assert old not in dir(package)


def test_every_decorated_function_is_compared_with_the_page():
    sources = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    decorated = sum(len(re.findall(r"^ *@renamed_arguments\(", text, re.M)) for text in sources)
    assert decorated == len(FUNCTIONS)


def test_arguments_of_functions():
    @renamed_arguments(size="n_rows")
    def rows(n_rows=1, *, seed=0):
        return n_rows, seed

    assert rows(2, seed=1) == rows(n_rows=2, seed=1) == (2, 1)
    with pytest.warns(FutureWarning, match=r"rows: size is now n_rows; .* until version 2.0"):
        assert rows(size=3) == (3, 0)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="both size and n_rows"):
        rows(size=3, n_rows=4)
