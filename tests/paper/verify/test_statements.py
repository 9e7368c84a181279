"""Every statement that `lloydformer verify` measures holds; wrong ones are detected."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax

import lloydformer as lf
from lloydformer.circuits.activations import Softmax
from lloydformer.paper.verify import statements
from lloydformer.paper.verify.compare import Deviation
from lloydformer.paper.verify.errata import ERRATA
from lloydformer.paper.verify.finding import judge_agreement, judge_equality
from lloydformer.paper.verify.statements import (
    STATEMENTS,
    THEOREMS,
    all_finite,
    authors_figure,
    finite_temperature,
    generator_for,
)

PUBLISHED = (
    Path(__file__).parents[3] / "benchmarks" / "results" / "paper" / "numerical-validation.json"
)
# These run one problem of ten thousand points, two of them with its self-attention.
LONG = (authors_figure, finite_temperature, all_finite)


@pytest.mark.parametrize(
    "number", [i for i, s in enumerate(STATEMENTS) if s not in (*LONG, *ERRATA)]
)
def test_statement_holds(number, monkeypatch):
    """With fewer problems than the command has; tests/test_agreement.py draws others."""
    monkeypatch.setattr(statements, "PER_FAMILY", 1)
    check(STATEMENTS[number], seed=1)


def check(statement, seed):
    finding = statement(generator_for(statement, seed))
    assert finding.holds, finding
    assert finding.problems >= 5
    return finding


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1], ids=["of the command", "another"])
@pytest.mark.parametrize("number", range(len(THEOREMS)))
def test_theorem_holds_on_all_problems(number, seed):
    check(THEOREMS[number], seed)


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "part"),
    [(authors_figure, "authors"), (finite_temperature, "run"), (all_finite, "every_head")],
    ids=["authors", "encoder_cross", "every head"],
)
def test_ten_thousand_points_give_the_published_numbers(statement, part):
    """Those of `reproduce numerical-validation`, on smaller problems in its own test."""
    finding = statement(np.random.default_rng(2))
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))[part]
    assert finding.holds, finding
    assert finding.deviation == pytest.approx(published["centers"], rel=0.01)
    assert finding.labels == published["labels"][-1]


def test_a_wrong_circuit_does_not_agree():
    assert judge_agreement("", "", Deviation(1e-10)).holds
    assert not judge_agreement("", "", Deviation(1e-8)).holds
    assert not judge_agreement("", "", Deviation(0.0, labels=1)).holds
    assert not judge_agreement("", "", Deviation(0.0, weights=1)).holds
    assert not judge_equality("", "", [0.0, 1e-3]).holds


def test_a_center_that_is_not_a_number_does_not_agree():
    assert not Deviation(np.nan).within(1e-9)
    assert not (Deviation(0.0) + Deviation(np.nan)).within(1e-9)
    assert not (Deviation(np.nan) + Deviation(0.0)).within(1e-9)


def holds(statement) -> bool:
    return statement(generator_for(statement, seed=3)).holds


def free_energy(squares, temperature):
    """The log-sum-exp smoothing: a lower bound."""
    return -temperature * logsumexp(-squares / temperature, axis=1).sum()


def far_weights(squares, temperature):
    """The sign of the exponent is wrong: far centers weigh most."""
    return (softmax(squares / temperature, axis=1) * squares).sum()


def mean_distance(squares, temperature):
    """Above the objective, but it does not tend to it."""
    return squares.mean(axis=1).sum()


def test_the_smoothed_objective_is_neither_below_nor_far_above(monkeypatch):
    assert holds(statements.smoothed_bound)
    for wrong in (free_energy, far_weights, mean_distance):
        monkeypatch.setattr(statements, "smooth_objective", wrong)
        assert not holds(statements.smoothed_bound), wrong.__name__


def test_the_loss_of_training_is_the_smoothed_objective():
    points = torch.rand(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    squares = (points[:, None] - points[:6]).square().sum(dim=-1).numpy()
    loss = lf.learning.smoothed_objective(points, points[:6], temperature=0.1).item()
    assert loss == pytest.approx(statements.smooth_objective(squares, 0.1), rel=1e-12)


def test_another_temperature_is_another_assignment(monkeypatch):
    assert holds(statements.assignments)
    call = Softmax.__call__
    monkeypatch.setattr(Softmax, "__call__", lambda self, s, *more: call(self, 1.001 * s, *more))
    assert not holds(statements.assignments)


@pytest.mark.long
def test_medoids_that_are_no_points_are_detected(monkeypatch):
    assert holds(statements.medoids_are_points)
    run = statements.run_circuit

    def moved(recipe, problem, n_layers, seed=None):
        trace = run(recipe, problem, n_layers, seed)
        trace.centers[-1, 0] += 1e-6 * problem.spread
        return trace

    monkeypatch.setattr(statements, "run_circuit", moved)
    assert not holds(statements.medoids_are_points)


def test_an_objective_below_the_least_is_detected(monkeypatch):
    least = statements.best_medoids
    monkeypatch.setattr(statements, "best_medoids", lambda problem: 1e3 * least(problem))
    assert not holds(statements.medoids_are_points)
