"""The kernels of mixtures: scores, responsibilities and sums beside definitions in float64."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logsumexp

import lloydformer as lf
from lloydformer.circuits.mixture import MixtureKind
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, Native, instruction_set
from lloydformer.engines.native.installed import kernels
from lloydformer.plans.mixture import (
    Components,
    MixtureLabels,
    MixturePlan,
    MixtureRows,
    MixtureSums,
)

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
KINDS = ("full", "tied", "diag", "spherical", "shared", 0.8)


def runs_here(isa: str) -> bool:
    try:
        return kernels().isa(isa) == isa
    except ValueError:
        return False


ISAS = [isa for isa in ("portable", "avx2", "avx512") if instruction_set() and runs_here(isa)]


def problem(n, d, k, kind, dtype=torch.float64, seed=0, spread=3.0, weighted=False, leaf=64):
    """Rows about the means, the components relative to the origin, and the rows in float64."""
    rng = np.random.default_rng([seed, n, d, k])
    means = rng.normal(0, spread, (k, d))
    rows = torch.tensor(means[rng.integers(0, k, n)] + rng.normal(size=(n, d)), dtype=dtype)
    weights = torch.tensor(rng.uniform(0, 2, n) * (rng.random(n) < 0.8)) if weighted else None
    data = TensorBlocks(rows, weights, leaf, torch.zeros(d, dtype=dtype))
    axes = rng.normal(size=(k, d, d)) * 0.3 / d**0.5 + np.eye(d)
    matrices = torch.tensor(axes @ axes.transpose(0, 2, 1))
    covariances = {
        "full": matrices,
        "tied": matrices[0],
        "diag": matrices.diagonal(dim1=1, dim2=2),
        "spherical": matrices[:, 0, 0],
        "shared": matrices[0, 0, 0],
    }.get(kind)
    logs = torch.tensor(np.log(rng.dirichlet(np.full(k, 4.0))))
    given = Components.create(MixtureKind(kind), logs, torch.tensor(means), covariances)
    return data, given, rows.double().numpy()


def defined(given: Components, rows):
    """Logarithms of weighted densities (n, k), by the definition."""
    k, d = given.means.shape
    kind, covariances = given.kind.covariance, given.covariances
    if kind in ("spherical", "shared") or not isinstance(kind, str):
        matrices = covariances.reshape(-1, 1, 1) * torch.eye(d)
    elif kind == "diag":
        matrices = covariances.diag_embed()
    else:
        matrices = covariances
    matrices = matrices.expand(k, d, d).numpy()
    away = rows[:, None] - given.means.numpy()
    squares = np.einsum("nkp,kpq,nkq->nk", away, np.linalg.inv(matrices), away)
    logs = np.linalg.slogdet(matrices)[1] + d * np.log(2 * np.pi)
    return given.log_weights.numpy() - 0.5 * (squares + logs)


def asked(session, given, what):
    found = session.run(MixtureRows(given, what))
    assert found is not None
    return found.double().numpy()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("isa", ISAS)
def test_scores_and_sums_are_those_of_the_definition(isa, kind, dtype):
    eps = torch.finfo(dtype).eps
    for n, d, k, weighted in [(1, 1, 1, False), (33, 3, 2, True), (250, 17, 5, True),
                              (500, 40, 9, False), (70, 270, 2, True)]:  # fmt: skip
        data, given, rows = problem(n, d, k, kind, dtype, weighted=weighted)
        joint = defined(given, rows)
        likelihoods = logsumexp(joint, axis=1)
        shares = np.exp(joint - likelihoods[:, None])
        off = 100 * eps * (d + np.abs(likelihoods))
        with Native(3, instruction_set=isa).open(data) as session:
            assert (np.abs(asked(session, given, "likelihoods") - likelihoods) <= off).all()
            found = asked(session, given, "shares")
            assert (np.abs(found - shares) <= off[:, None] * shares + 1e-13).all()
            labels = asked(session, given, "labels").astype(int)
            assert (joint[np.arange(n), labels] >= joint.max(axis=1) - 2 * off).all()
            (likelihood,) = session.fold(MixtureLabels(given))
            assert np.array_equal(session.labels().numpy(), labels)
            masses, sums, squares, same = session.fold(MixtureSums(given))
        weights = np.ones(n) if data.sample_weight is None else data.sample_weight.numpy()
        assert likelihood == pytest.approx(weights @ likelihoods, rel=1e-13 + 10 * eps)
        assert likelihood == pytest.approx(same.item(), rel=1e-13)
        shares = shares * weights[:, None]
        away = rows[:, None] - given.means.numpy()
        close = {"rtol": 0, "atol": 200 * eps * (d + 1) * max(1.0, weights.sum())}
        np.testing.assert_allclose(masses, shares.sum(axis=0), **close)
        np.testing.assert_allclose(sums, np.einsum("nk,nkp->kp", shares, away), **close)
        if kind in ("full", "diag", "spherical"):
            moments = np.einsum("nk,nkp,nkq->kpq", shares, away, away)
            diagonal = np.diagonal(moments, axis1=1, axis2=2)
            shapes = {"full": moments, "diag": diagonal, "spherical": diagonal.sum(axis=1)}
            close["atol"] *= 10 * (d if kind == "spherical" else 1)
            np.testing.assert_allclose(squares, shapes[kind], **close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("isa", ISAS)
def test_powers_of_two_are_precise(isa, dtype):
    """Two components of variance 1 share a row by a logistic function of its place."""
    rows = torch.linspace(-20, 20, 4001, dtype=dtype)[:, None]
    data = TensorBlocks(rows, None, 4096, torch.zeros(1, dtype=dtype))
    given = Components.around(MixtureKind("diag"), torch.tensor([[-0.5], [0.5]]).double())
    with Native(instruction_set=isa).open(data) as session:
        found = asked(session, given, "shares")
    x, eps = rows[:, 0].double().numpy(), torch.finfo(dtype).eps
    for j, true in enumerate((expit(-x), expit(x))):
        # scores of up to 300 are rounded
        assert (np.abs(found[:, j] / true - 1) < eps * (4 + 2 * x**2)).all()
    assert np.abs(found.sum(axis=1) - 1).max() <= 2 * eps


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_responsibilities_below_the_rounding_are_zero_and_left_out(dtype):
    data, _, rows = problem(300, 2, 2, "diag", dtype)
    far = Components.around(MixtureKind("diag"), torch.tensor([[0.0, 0.0], [60.0, 0.0]]).double())
    with Native().open(data) as session:
        shares = asked(session, far, "shares")
        masses, *_ = session.fold(MixtureSums(far))
    assert (shares[:, 1] == 0).all()
    assert masses[1] == 0
    np.testing.assert_allclose(masses[0], len(rows))
    # logarithms say where it goes: the plan asks for them
    plan = MixturePlan(MixtureKind("diag"))
    for engine in (Native(), Chunked(1)):
        with engine.open(data) as session:
            new, _ = plan.improve(session, far, plan.measure(session))
        expected = rows[rows[:, 0].argmax()]
        np.testing.assert_allclose(new.means[1], expected, atol=2.0)
        assert new.log_weights[1] < -100


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_rows_of_float32_are_compared_in_float64_where_they_must_be(kind):
    """Narrow components far from the origin, and rows far from all components."""
    rng = np.random.default_rng(1)
    means = rng.normal(0, 100, (3, 4))
    rows = means[np.arange(200) % 3] + 0.01 * rng.normal(size=(200, 4))
    rows[::50] += 3000.0
    rows = torch.tensor(rows, dtype=torch.float32)
    data = TensorBlocks(rows, None, 64, torch.zeros(4))
    around = Components.around(MixtureKind(kind), torch.tensor(means), 1e-4)
    joint = defined(around, rows.double().numpy())
    likelihoods = logsumexp(joint, axis=1)
    with Native().open(data) as session:
        np.testing.assert_allclose(asked(session, around, "likelihoods"), likelihoods, rtol=3e-7)
        labels = asked(session, around, "labels")
        _, sums, _, _ = session.fold(MixtureSums(around))
    assert np.array_equal(labels, joint.argmax(axis=1))
    shares = np.exp(joint - likelihoods[:, None])
    expected = np.einsum("nk,nkp->kp", shares, rows.double().numpy()[:, None] - means)
    np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_one_narrow_component_among_wide_ones(kind):
    """Rows near it, or beside it, are compared in float64; the others in float32."""
    rng = np.random.default_rng(2)
    means, scales = rng.normal(0, 20, (4, 3)), np.array([1e-4, 1.0, 2.0, 1e-4])
    means[3] = means[0] + 1e-4  # beside each other, deep in a wide one
    means[1] = means[0] + 0.5
    own = np.arange(400) % 4
    rows = means[own] + scales[own, None] * rng.normal(size=(400, 3))
    rows = torch.tensor(rows, dtype=torch.float32)
    data = TensorBlocks(rows, None, 64, torch.zeros(3))
    variances = torch.tensor(scales**2)
    covariances = {
        "full": variances[:, None, None] * torch.eye(3).double(),
        "diag": variances[:, None].expand(4, 3),
        "spherical": variances,
    }[kind]
    logs = torch.full((4,), 0.25).double().log()
    given = Components.create(MixtureKind(kind), logs, torch.tensor(means), covariances)
    joint = defined(given, rows.double().numpy())
    likelihoods = logsumexp(joint, axis=1)
    with Native().open(data) as session:
        found = asked(session, given, "likelihoods")
        np.testing.assert_allclose(found, likelihoods, rtol=1e-4, atol=1e-4)
        shares = asked(session, given, "shares")
    np.testing.assert_allclose(shares, np.exp(joint - likelihoods[:, None]), atol=2e-4)
    assert 0.05 < (np.abs(joint[:, 0] - joint[:, 3]) < 3).mean() < 0.95


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_number_of_threads_changes_no_bit(kind, dtype):
    data, given, _ = problem(30_000, 5, 4, kind, dtype, leaf=8192, weighted=True)
    found = []
    for n_threads in (1, 2, 3):
        with Native(n_threads).open(data) as session:
            found.append([*session.fold(MixtureSums(given)), *session.fold(MixtureLabels(given))])
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_a_row_has_the_same_result_whichever_rows_it_is_read_with():
    """Some rows of a block are compared in float64; the others do not notice."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 3)).astype(np.float32)
    rows[::9] *= 2000
    model = lf.GaussianMixture(3, random_state=0, reg_covar=1e-3, tol=1.0).fit(rows)
    whole = model.predict_proba(rows), model.score_samples(rows), model.predict(rows)
    assert np.array_equal(whole[2], model.labels_)
    for i in (0, 1, 8, 9, 63, 64, 699):
        parts = (
            model.predict_proba(rows[i:]),
            model.score_samples(rows[i:]),
            model.predict(rows[i:]),
        )
        for one, all_rows in zip(parts, whole, strict=True):
            assert np.array_equal(one, all_rows[i:])


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_statistics_of_float32_are_added_in_float64(kind):
    """Sums of so many rows in float32 would lose four digits."""
    rng = np.random.default_rng(0)
    rows = torch.tensor(rng.normal(size=(400_000, 2)) + 1e4, dtype=torch.float32)
    data = TensorBlocks(rows, None, 8192)
    origin = data.origin.double()
    mean = torch.tensor([[1e4 + 0.3, 1e4]], dtype=torch.float64)
    given = Components.around(MixtureKind(kind), mean - origin)
    with Native().open(data) as session:
        masses, sums, squares, _ = session.fold(MixtureSums(given))
    away = rows.double().numpy() - (1e4 + np.array([0.3, 0.0]))
    assert masses.item() == len(rows)
    np.testing.assert_allclose(sums[0], away.sum(axis=0), rtol=1e-6, atol=0.02)
    expected = away.T @ away if kind == "full" else (away**2).sum(axis=0)
    np.testing.assert_allclose(squares[0], expected, rtol=1e-6, atol=0.3)


def test_a_wrong_call_is_named():
    data, given, _ = problem(20, 2, 3, "diag")
    with Native().open(data) as session, pytest.raises(ValueError, match="precision: pass 0, 1"):
        session.points.run(
            "mixture_rows", precision=3, means=given.means, constants=given.log_weights,
            factors=given.factors,
        )  # fmt: skip
