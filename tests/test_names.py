"""One class name, one meaning; algorithms are entered once and exported."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import lloydformer as lf
from lloydformer import estimators
from lloydformer.estimators import ALGORITHMS, RegisteredAlgorithm, register

SOURCE = Path(lf.__file__).parent


def class_names() -> list[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    return [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]


def test_no_class_name_is_defined_twice():
    names = class_names()
    assert len(names) > 200
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_registered_estimator_is_exported():
    for known in ALGORITHMS.values():
        name = known.estimator.__name__
        assert getattr(lf, name) is known.estimator
        assert name in lf.__all__
        assert name in estimators.__all__


def test_a_name_is_given_once():
    other = RegisteredAlgorithm("soft", lf.KMeans, lf.recipes.lloyd, object, "another one")
    with pytest.raises(ValueError, match="SoftKMeans has already"):
        register(other)
    assert ALGORITHMS["soft"].estimator is lf.SoftKMeans
