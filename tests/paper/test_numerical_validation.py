"""fig:numerical_validation: small problems, scikit-learn, and verdicts that can be others."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from lloydformer.paper.artefact import Scope, load_artefact
from lloydformer.paper.numerical_validation import (
    difference_of,
    measure_authors,
    measure_draws,
    measure_encoder_cross,
    measure_every_head,
)
from lloydformer.paper.verdict import Answer, Kind
from lloydformer.paper.verify import statements
from lloydformer.paper.verify.finite_temperature import (
    FIGURE,
    LloydDifference,
    authors_problem,
    figure_problem,
)
from lloydformer.paper.verify.statements import all_finite, finite_temperature

ARTEFACT = load_artefact("numerical-validation")

FEW = figure_problem(size=replace(FIGURE, points=2000))


@pytest.fixture(scope="module")
def result():
    found = {
        "authors": measure_authors(),
        "circuit": measure_encoder_cross(*FEW),
        "every-head": measure_every_head(*FEW),
        "scale-1": measure_draws(replace(FIGURE, points=500), range(3)),
        "scale-10": measure_draws(replace(FIGURE, points=500, scale=10), range(3)),
    }
    return json.loads(json.dumps(ARTEFACT.combine(found), allow_nan=False))


def answers(result):
    return [v.answer for v in ARTEFACT.verdicts(result) if v.kind is Kind.CLAIM]


def test_the_circuit_is_close_to_lloyds_but_not_with_gamma_in_every_head(result):
    assert difference_of(result["run"]).same_to_the_eye
    assert not difference_of(result["every_head"]).same_to_the_eye
    assert result["every_head"]["itself"] < 0.5


def test_the_authors_run_is_made_again_from_what_their_notebook_states(result):
    """Its printed numbers: the log objectives, and 9,921 of 10,000 assignments that are one-hot."""
    printed = [6.44, 5.78, 5.47, 4.96, 4.69, 4.61, 4.59, 4.59, 4.59, 4.59, 4.59]
    lloyd, transformer = np.log(np.array(list(result["rows"].values())).T)
    assert transformer.round(2).tolist() == printed
    assert result["authors"]["shared"] == 79
    # numbers of labels that differ from Lloyd's, of a run of that notebook
    assert result["authors"]["labels"] == [0, 30, 47, 28, 13, 5, 3, 0, 0, 0]
    assert 0.006 < np.abs(np.expm1(transformer - lloyd)).max() < 0.0067
    layers, paths, _ = (v for v in ARTEFACT.verdicts(result) if v.kind is Kind.CLAIM)
    assert (layers.answer, paths.answer) == (Answer.HOLDS, Answer.HOLDS)
    assert "in layers 2, 3, 4, 5, 6, 7, for 30, 47, 28, 13, 5, 3 of 10,000" in layers.here
    assert "0 of 10,000 final labels differ" in paths.here


def test_the_authors_protocol_is_their_run_alone():
    pieces = ARTEFACT.pieces(Scope(authors=True))
    result = ARTEFACT.combine({name: piece() for name, piece in pieces.items()})
    assert [v.kind for v in ARTEFACT.verdicts(result)] == [Kind.CLAIM] * 2
    assert len(ARTEFACT.tables(result)[0].rows) == 11
    assert "authors' data" in ARTEFACT.pictures(result)[0].caption


def test_verify_and_reproduce_say_the_same(result, monkeypatch):
    """One problem, the same runs, one judgement."""
    monkeypatch.setattr(statements.figure, "figure_problem", lambda: FEW)
    rng = np.random.default_rng(7)
    near, far = finite_temperature(rng), all_finite(rng)
    for finding, part in ((near, result["run"]), (far, result["every_head"])):
        assert finding.deviation == part["centers"]
        assert finding.labels == part["labels"][-1]
    assert near.holds == difference_of(result["run"]).same_to_the_eye
    assert far.holds != difference_of(result["every_head"]).same_to_the_eye
    assert f"{result['every_head']['itself']:.2g}" in far.note


def test_lloyds_centers_are_those_of_scikit_learn(result):
    points, centers = FEW
    peer = KMeans(5, init=centers.numpy(), n_init=1, max_iter=10, tol=0, algorithm="lloyd")
    peer.fit(points.numpy())
    assert np.array(result["run"]["lloyd"]["centers"][-1]) == pytest.approx(
        peer.cluster_centers_, abs=1e-4
    )
    points, centers = authors_problem()
    assert len(points) == 10_000
    peer = KMeans(5, init=centers.double().numpy(), n_init=1, max_iter=10, tol=0, algorithm="lloyd")
    peer.fit(points.double().numpy())
    assert result["rows"]["10"][0] == pytest.approx(peer.inertia_, rel=1e-3)


def test_labels_in_the_picture_belong_to_its_points(result):
    for who in ("lloyd", "transformer"):
        shown = result["authors"][who]
        points, centers = np.array(result["authors"]["points"]), np.array(shown["centers"][-2])
        nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        same = nearest == np.array([int(label) for label in shown["labels"]])
        assert same.mean() > 0.99  # those on a border may turn with the rounding in the file


def test_the_saved_differences_are_those_of_the_runs(result):
    run = result["run"]
    pairs = [np.array(run[who]["centers"]) for who in ("lloyd", "transformer")]
    away = np.linalg.norm(pairs[1] - pairs[0], axis=2).max(axis=1)
    assert run["apart"] == pytest.approx(away, abs=3e-5)  # centers are rounded in the file
    assert run["centers"] == pytest.approx(np.abs(pairs[1] - pairs[0]).max(), abs=3e-5)
    differing = run["differing"]
    assert len(differing["points"]) == run["labels"][-1]
    assert all(a != b for a, b in zip(differing["lloyd"], differing["transformer"], strict=True))


def test_differences_at_another_scale_are_parts_of_the_side(result):
    far = [
        measure_draws(replace(FIGURE, points=500, scale=s), range(1))["draws"][0] for s in (1, 10)
    ]
    assert far[1]["centers"] < 10 * far[0]["centers"]
    assert difference_of({"centers": 0.02, "labels": [0], "of": 1}) == LloydDifference(0.02, [0], 1)


def test_there_is_a_row_for_each_layer(result):
    assert list(result["rows"]) == [str(layer) for layer in range(11)]
    assert len(ARTEFACT.tables(result)[0].rows) == 11
    pieces = ARTEFACT.pieces(Scope(trials=2))
    assert list(pieces) == ["authors", "circuit", "every-head", "scale-1", "scale-10"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"centers": 0.0, "labels": [0] * 10}, [Answer.HOLDS, Answer.HOLDS]),
        ({"centers": 2e-4, "labels": [3] + [0] * 9}, [Answer.HOLDS, Answer.HOLDS]),
        ({"centers": 2e-4, "labels": [0] * 9 + [2]}, [Answer.HOLDS, Answer.FAILS]),
        ({"centers": 0.02, "labels": [3] + [0] * 9}, [Answer.HOLDS, Answer.FAILS]),
    ],
    ids=["exact", "exact at the end", "other final labels", "other paths"],
)
def test_labels_and_paths_decide_the_claims_on_the_figure(result, change, expected):
    other = copy.deepcopy(result)
    other["authors"] |= change
    assert answers(other)[:2] == expected


@pytest.mark.parametrize(
    ("plain", "scaled", "answer"),
    [
        ([9, 8, 7, 9], [1, 0, 2, 1], Answer.HOLDS),
        ([9, 0, 7, 0], [1, 3, 2, 3], Answer.UNDECIDED),
        ([1, 0, 2, 1], [9, 8, 7, 9], Answer.FAILS),
        ([9], [1], Answer.UNDECIDED),
    ],
    ids=["fewer", "unclear", "more", "one draw"],
)
def test_scaling_must_improve_agreement_and_not_make_it_perfect(result, plain, scaled, answer):
    other = copy.deepcopy(result)
    for scale, counts in (("1", plain), ("10", scaled)):
        other["draws"][scale] = [{"labels": [0, n], "of": 500, "centers": 0.0} for n in counts]
    assert answers(other)[2] is answer


def test_identical_labels_in_every_draw_are_asked_beyond_the_paper(result):
    literal, asked, every = (v for v in ARTEFACT.verdicts(result) if v.kind is Kind.BEYOND)
    assert "of 2,000 final labels" in literal.here
    assert "of 3 draws" in asked.here
    assert "off by" in every.here
    assert "does not say" in every.note


def test_the_picture_has_six_panels_and_a_row_of_differences(result):
    (picture,) = ARTEFACT.pictures(result)
    axes = picture.figure.axes
    assert [ax.get_title(loc="left") for ax in axes] == list("ABCDEFGHI")
    objective, centers, labels = axes[6:]
    assert [ax.get_yscale() for ax in (objective, centers)] == ["log", "log"]
    lloyd, transformer = (
        np.array(result["authors"][w]["objective"]) for w in ("lloyd", "transformer")
    )
    shown = objective.lines[0].get_ydata()
    assert shown == pytest.approx((np.abs(transformer - lloyd) / lloyd)[1:])
    assert list(centers.lines[0].get_ydata()) == result["authors"]["apart"][1:]
    marked = [tuple(float(x[0]) for x in line.get_data()) for line in labels.lines]
    assert marked == [tuple(point) for point in result["authors"]["differing"]["points"]]
    assert f"({len(marked)} of all)" in picture.caption
