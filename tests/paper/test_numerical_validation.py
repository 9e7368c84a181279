"""Numerical validation: small problems, a second opinion, and claims that can fail."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from lloydformer.paper.numerical_validation import ARTEFACT
from lloydformer.paper.numerical_validation.experiment import (
    PROBLEM,
    as_printed,
    circuit,
    draws,
    problem,
)
from lloydformer.paper.scope import Scope


@pytest.fixture(scope="module")
def result():
    few = problem(0, replace(PROBLEM, points=2000))
    found = {
        "circuit": circuit(*few), "printed": as_printed(*few),
        "scale-1": draws(replace(PROBLEM, points=500), range(3)),
        "scale-10": draws(replace(PROBLEM, points=500, scale=10), range(3)),
    }  # fmt: skip
    return json.loads(json.dumps(ARTEFACT.result(found), allow_nan=False))


def held(result):
    return [claim.holds for claim in ARTEFACT.claims(result)]


def test_the_circuit_is_near_to_lloyds_and_as_printed_it_is_not(result):
    assert held(result)[:2] == [True, True]
    assert result["run"]["centers"] < 1e-2
    assert result["printed"]["centers"] > 1e-2
    assert not held(result)[-1]
    assert result["printed"]["itself"] < 0.5


def test_lloyds_side_is_scikit_learns(result):
    points, centers = problem(0, replace(PROBLEM, points=2000))
    peer = KMeans(5, init=centers.numpy(), n_init=1, max_iter=10, tol=0, algorithm="lloyd")
    peer.fit(points.numpy())
    assert np.array(result["run"]["lloyd"]["centers"][-1]) == pytest.approx(
        peer.cluster_centers_, abs=1e-4
    )
    assert result["rows"]["10"][0] == pytest.approx(peer.inertia_, rel=1e-3)


def test_labels_and_points_in_the_picture_belong_together(result):
    for who in ("lloyd", "transformer"):
        shown = result["run"][who]
        points, centers = np.array(result["run"]["points"]), np.array(shown["centers"][-2])
        nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        same = nearest == np.array([int(label) for label in shown["labels"]])
        assert same.mean() > 0.99  # those on a border may turn with the rounding in the file


def test_there_is_a_row_for_each_layer(result):
    assert list(result["rows"]) == [str(layer) for layer in range(11)]
    assert len(ARTEFACT.tables(result)[0].rows) == 11
    assert list(ARTEFACT.pieces(Scope(trials=2))) == ["circuit", "printed", "scale-1", "scale-10"]


def test_claims_can_fail_and_hold(result):
    exact, off = copy.deepcopy(result), copy.deepcopy(result)
    exact["run"]["transformer"] = exact["run"]["lloyd"]
    exact["run"].update(centers=0.0, labels=[0] * 10)
    exact["printed"]["centers"] = 0.0
    for scale in ("1", "10"):
        exact["draws"][scale] = [{"labels": [3, 0], "of": 500, "centers": 0.0}]
    off["run"]["transformer"]["objective"][-1] *= 1.01
    off["run"].update(centers=0.02, labels=[0] * 9 + [1])
    off["draws"]["1"] = [{"labels": [0, 1], "of": 500, "centers": 0.0}]
    assert held(exact) == [True] * 6
    assert held(off)[:4] == [False] * 4


def test_the_picture_has_six_panels(result):
    (picture,) = ARTEFACT.pictures(result)
    assert [ax.get_title(loc="left") for ax in picture.figure.axes] == list("ABCDEF")
