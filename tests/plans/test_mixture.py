"""EM of mixtures as folds: equal to the circuit and to the plain algorithm on every engine."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.algorithms import Mixture, MixtureState
from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.circuits.mixture import MixtureKind, NaturalParameters
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.rows import DenseRows, SparseRows
from lloydformer.engines import ENGINES
from lloydformer.plans.lower import LoweringError, derive, lower
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.mixture import (
    Components,
    IllDefinedError,
    MixtureLabels,
    MixturePlan,
    log_factorials,
    sum_differences,
    sum_products,
    weighted_statistics,
)
from lloydformer.plans.soft import SoftPlan

KINDS = ("full", "tied", "diag", "spherical", "shared", 0.7)
PROBLEMS = {
    "plain": (0.0, 1.0),
    "shifted": (1e4, 1.0),
    "small": (0.0, 1e-6),
    "large": (0.0, 1e6),
}


def problem(shift=0.0, scale=1.0, seed=3, n=300, d=3, k=4):
    rng = np.random.default_rng(seed)
    own = rng.integers(0, k, n)
    axes = rng.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    noise = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), axes[own])
    rows = (rng.normal(0, 3, (k, d))[own] + noise) * scale + shift
    means = rows[rng.choice(n, k, replace=False)]
    covariances = np.stack([np.eye(d) * rows.var()] * k)
    return rows, MixtureState(rng.dirichlet(np.full(k, 4.0)), means, covariances)


def as_theirs(covariances, kind):
    """Covariance matrices (k, d, d) in the shape that `Components` has."""
    d = range(covariances.shape[-1])
    return {
        "full": covariances,
        "tied": covariances[0],
        "diag": covariances[:, d, d],
        "spherical": covariances[:, 0, 0],
        "shared": covariances[0, 0, 0],
    }.get(kind)


def components(state, kind, origin=0.0):
    """The state as the plan holds it."""
    given = None if state.covariances is None else as_theirs(state.covariances, kind.covariance)
    return Components.create(
        kind,
        torch.tensor(np.log(state.weights)),
        torch.tensor(state.means) - origin,
        None if given is None else torch.tensor(given, dtype=torch.float64),
    )


def improved(rows, state, plan, n_iterations, engine="chunked", weights=None):
    """States and bounds of some iterations, over leaves of 64 rows."""
    weights = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    data = TensorBlocks(torch.tensor(rows), weights, leaf=64)
    opened_by = ENGINES[engine]()
    if hasattr(opened_by, "n_threads"):
        opened_by.n_threads = 2
    with opened_by.open(data) as session:
        origin = session.layout.origin
        origin = origin if plan.kind.family == "gaussian" else torch.zeros_like(origin)
        current = components(state, plan.kind, origin)
        totals, found = plan.measure(session), []
        for _ in range(n_iterations):
            current, bound = plan.improve(session, current, totals)
            found.append((replace(current, means=current.means + origin), bound))
        session.fold(MixtureLabels(current))
        return found, session.labels()


def check_equal(found, history, kind, scale=1.0):
    for (ours, bound), true in zip(found, history, strict=True):
        assert np.abs(ours.means.numpy() - true.state.means).max() <= 1e-9 * scale
        np.testing.assert_allclose(ours.log_weights.exp(), true.state.weights, atol=1e-9)
        assert bound == pytest.approx(true.lower_bound, abs=1e-9)
        if isinstance(kind, str):
            expected = as_theirs(true.state.covariances, kind)
            np.testing.assert_allclose(ours.covariances, expected, atol=1e-9 * scale**2)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_iteration_is_the_plain_algorithms(kind, engine):
    rows, state = problem()
    if isinstance(kind, float):
        state = replace(state, covariances=np.stack([kind * np.eye(3)] * 4))
    oracle = Mixture(kind)
    found, labels = improved(rows, state, MixturePlan(MixtureKind(kind)), 6, engine)
    history = oracle.run(rows, state, 7)
    check_equal(found, history[:6], kind)
    assert labels.tolist() == history[6].responsibilities.argmax(axis=1).tolist()


@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_circuit_plan_and_algorithm_agree(kind, of):
    shift, scale = PROBLEMS[of]
    kind, reg = kind if isinstance(kind, str) else kind * scale**2, 1e-6 * scale**2
    rows, state = problem(shift, scale)
    recipe = lf.recipes.mixture(kind, regularisation=reg)
    if isinstance(kind, float):
        state = replace(state, covariances=np.stack([kind * np.eye(3)] * 4))
    check_equal(
        improved(rows, state, lower(recipe), 6)[0],
        Mixture(kind, regularisation=reg).run(rows, state, 6),
        kind,
        scale,
    )
    start = {"weights": torch.tensor(state.weights)}
    if isinstance(kind, str):
        start["covariances"] = torch.tensor(np.array(as_theirs(state.covariances, kind)))
    points, means = torch.tensor(rows), torch.tensor(state.means)
    trace = lf.Circuit(recipe, 3, 4)(points, means, 6, start=start)
    (*_, (last, _)), _ = improved(rows, state, lower(recipe), 6)
    assert (trace.centers[-1] - last.means).abs().max() <= 1e-9 * scale


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_other_families(family, engine):
    rng = np.random.default_rng(4)
    means = rng.uniform(0.1, 0.9, (4, 6)) * (1 if family == "bernoulli" else 7)
    true = means[rng.integers(0, 4, 200)]
    rows = (rng.binomial(1, true) if family == "bernoulli" else rng.poisson(true)).astype(float)
    state = MixtureState(rng.dirichlet(np.full(4, 4.0)), means * 0.9)
    plan = MixturePlan(MixtureKind(family=family))
    weights = torch.tensor(rng.integers(0, 3, 200), dtype=torch.float64)
    data = TensorBlocks(torch.tensor(rows), weights, 64, torch.zeros(6, dtype=torch.float64))
    with ENGINES[engine]().open(data) as session:
        current, totals = components(state, plan.kind), plan.measure(session)
        for true in Mixture(family=family).run(rows, state, 4, weights.numpy()):
            current, bound = plan.improve(session, current, totals)
            np.testing.assert_allclose(current.means, true.state.means, atol=1e-10)
            np.testing.assert_allclose(current.log_weights.exp(), true.state.weights, atol=1e-10)
            assert bound == pytest.approx(true.lower_bound, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_weights_count_rows(kind):
    rows, state = problem()
    counts = np.random.default_rng(1).integers(0, 3, len(rows)).astype(float)
    plan = MixturePlan(MixtureKind(kind))
    if isinstance(kind, float):
        state = replace(state, covariances=np.stack([kind * np.eye(3)] * 4))
    found, _ = improved(rows, state, plan, 4, weights=counts)
    check_equal(found, Mixture(kind).run(rows, state, 4, counts), kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_component_without_points_is_that_of_the_plain_algorithm(kind):
    rows, state = problem()
    means = state.means.copy()
    means[2] += 1e4
    state = replace(state, means=means, covariances=np.stack([np.eye(3)] * 4))
    if isinstance(kind, float):
        state = replace(state, covariances=np.stack([kind * np.eye(3)] * 4))
    true = Mixture(kind).run(rows, state, 1)
    assert true[0].responsibilities[:, 2].max() == 0
    for weights in (None, np.ones(len(rows))):
        found, _ = improved(rows, state, MixturePlan(MixtureKind(kind)), 1, weights=weights)
        check_equal(found, true, kind)


def test_the_number_of_threads_changes_no_bit():
    rows, state = problem(n=3000)
    plan = MixturePlan()
    data = TensorBlocks(torch.tensor(rows), None, leaf=64)
    found = []
    for n_threads in (1, 2, 3):
        with ENGINES["chunked"](n_threads).open(data) as session:
            start = components(state, plan.kind, session.layout.origin)
            found.append(plan.improve(session, start, plan.measure(session)))
    for new, bound in found[1:]:
        assert torch.equal(new.covariances, found[0][0].covariances)
        assert bound == found[0][1]


@pytest.mark.parametrize("kind", ["diag", "spherical", "shared"])
@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson"])
def test_sparse_rows_have_the_scores_of_dense_ones(kind, family):
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.4, (30, 5)).clip(max=1 if family == "bernoulli" else 9).astype(float)
    means = torch.tensor(rng.uniform(0.1, 0.9, (3, 5)))
    gaussian = family == "gaussian"
    chosen = MixtureKind(kind) if gaussian else MixtureKind(family=family)
    shapes = {"diag": (3, 5), "spherical": (3,), "shared": ()}
    covariances = torch.tensor(rng.uniform(0.5, 2, shapes[kind])) if gaussian else None
    given = Components.create(chosen, torch.zeros(3).double(), means, covariances)
    dense = DenseRows(torch.tensor(rows), None)
    thin = SparseRows(sparse.csr_matrix(rows))
    torch.testing.assert_close(given.log_joint(thin.double()), given.log_joint(dense))
    torch.testing.assert_close(log_factorials(thin), log_factorials(dense))
    shares = torch.tensor(rng.dirichlet(np.ones(3), size=30))
    for one, two in zip(
        *(weighted_statistics(shares, r, given) for r in (thin, dense)), strict=True
    ):
        torch.testing.assert_close(one, two)


def test_members_lower_to_one_family_of_plans():
    assert lower(lf.recipes.mixture("diag")) == MixturePlan(MixtureKind("diag"))
    assert lower(lf.recipes.mixture(0.5)) == MixturePlan(MixtureKind(0.5))
    assert lower(lf.recipes.mixture(0.25, weights="equal")) == SoftPlan(2.0)
    assert lower(lf.recipes.mixture(0.0, weights="equal")) == MeansPlan()
    steps = derive(lf.recipes.mixture()).steps
    assert [step.split(":")[0] for step in steps[:-1]] == [
        *("encoder_self", "encoder_cross", "decoder_self", "decoder_cross", "feedforward")
    ]
    assert steps[-1].startswith("What is left is MixturePlan(kind=MixtureKind(covariance='full'")


def test_another_head_does_not_lower():
    recipe = lf.recipes.mixture()
    hard = replace(recipe.encoder_cross, activation=LimitingSoftmax())
    with pytest.raises(
        LoweringError, match="encoder_cross prevents lowering: it is not that of EM"
    ):
        lower(replace(recipe, encoder_cross=hard))
    with pytest.raises(LoweringError, match="feedforward prevents lowering"):
        lower(replace(recipe, feedforward=NaturalParameters(MixtureKind("diag"))))


def test_a_mixture_is_no_clustering_of_centers():
    with pytest.raises(ValueError, match=r"recipe: found a mixture.* use GaussianMixture"):
        lf.CircuitClusterer(2, recipe=lf.recipes.mixture()).fit([[0.0], [1.0], [5.0]])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_collapsed_components_are_an_error_that_names_reg_covar(kind):
    zeros = {"full": (2, 3, 3), "tied": (3, 3), "diag": (2, 3), "spherical": (2,)}[kind]
    with pytest.raises(IllDefinedError, match="increase reg_covar"):
        Components.create(
            MixtureKind(kind),
            torch.zeros(2).double(),
            torch.zeros(2, 3).double(),
            torch.zeros(zeros).double(),
        )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_products_and_differences_agree(kind):
    """The statistics of a block do not depend on the way that its precision allows."""
    rows, state = problem(n=100)
    if isinstance(kind, float):
        state = replace(state, covariances=np.stack([kind * np.eye(3)] * 4))
    given = components(state, MixtureKind(kind))
    dense = DenseRows(torch.tensor(rows), None)
    statistic = given.statistic(dense)
    joint = given.compare_by_products(statistic)
    torch.testing.assert_close(joint, given.compare_by_differences(dense.points))
    shares = joint.softmax(dim=1)
    ways = sum_products(shares, statistic, given), sum_differences(shares, dense.points, given)
    for one, two in zip(*ways, strict=True):
        torch.testing.assert_close(one, two, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_narrow_components_far_apart_keep_their_digits(kind):
    """Products of statistics would lose 12 of 16 digits of these covariances."""
    rng = np.random.default_rng(0)
    own = np.arange(400) % 4
    rows = rng.normal(0, 1e6, (4, 2))[own] + rng.normal(size=(400, 2))
    means = np.stack([rows[own == j].mean(axis=0) for j in range(4)])
    state = MixtureState(np.full(4, 0.25), means, np.stack([np.eye(2)] * 4))
    (((new, _),), _) = improved(rows, state, MixturePlan(MixtureKind(kind)), 1)
    true = Mixture(kind).run(rows, state, 1)[0].state
    tolerance = 1e-3 if kind == "tied" else 1e-8  # the whole less the part between the means
    np.testing.assert_allclose(new.covariances, as_theirs(true.covariances, kind), atol=tolerance)


def test_the_way_depends_on_rounding_and_width():
    rows, state = problem(n=200)
    single, both = torch.tensor(rows, dtype=torch.float32), torch.float64
    given = components(state, MixtureKind("full"))
    assert given.choose_way(single) == (True, torch.float32)
    assert given.choose_way(30 * single) == (True, both)
    assert given.choose_way(1e6 * torch.tensor(rows)) == (False, both)
    wide = Components.around(MixtureKind("full"), torch.zeros(2, 64).double())
    assert wide.choose_way(torch.ones(3, 64)) == (False, torch.float32)
    assert wide.choose_way(1e4 * torch.ones(3, 64)) == (False, both)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_pairs_that_are_left_out_change_nothing(kind):
    """Responsibilities of far components are 0 to rounding, and sums by differences skip them."""
    rng = np.random.default_rng(2)
    points = torch.tensor(rng.normal(0, 1, (300, 3)) + (np.arange(300) % 3)[:, None] * 40.0)
    given = Components.around(MixtureKind(kind), points[:3].clone())
    shares = given.compare_by_differences(points).softmax(dim=1)
    assert (shares < 1e-20).double().mean() > 0.6
    found = sum_differences(shares, points, given)
    away = points[:, None] - given.means  # (n, k, d)
    torch.testing.assert_close(found.sums, (shares[:, :, None] * away).sum(dim=0))
    squares = torch.einsum("nk,nkp,nkq->kpq", shares, away, away)
    diagonal = squares.diagonal(dim1=1, dim2=2)
    expected = {"full": squares, "diag": diagonal, "spherical": diagonal.sum(dim=1)}[kind]
    torch.testing.assert_close(found.squares, expected)


def test_wide_rows_in_float32_are_those_of_float64():
    rng = np.random.default_rng(3)
    rows = rng.normal(0, 1, (500, 70)) + (np.arange(500) % 2)[:, None] * 3.0
    given = Components.around(MixtureKind("full"), torch.tensor(rows[:2]))
    plan, found = MixturePlan(regularisation=1e-2), []
    for dtype in (torch.float64, torch.float32):
        data = TensorBlocks(
            torch.tensor(rows, dtype=dtype), None, 128, torch.zeros(70, dtype=dtype)
        )
        with ENGINES["chunked"](1).open(data) as session:
            found.append(plan.improve(session, given, plan.measure(session)))
    (double, one), (single, two) = found
    assert one == pytest.approx(two, rel=1e-6)
    torch.testing.assert_close(single.covariances, double.covariances, atol=1e-4, rtol=1e-4)
