"""Circuits under attack, against the same algorithms in exact arithmetic.

Outliers, scales, unequal problems in a batch, patched centers, far starts, coincident centers and
duplicates; both rules for ties, both precisions, every recipe of the paper.
"""

import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from exact import Exact

import lloydformer as lf
from lloydformer.paper.verify.known import (
    PAIRS,
    PairParameters,
    finds_points_by_dot_product,
    has_average_ties,
    is_spherical,
    make_recipe,
)

DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Other scores, norms or thresholds of the same algorithms: test_variants.py compares these with
# plain algorithms; `Exact` has the recipes of the table.
VARIANTS = {"trimmed_dot", "medoids_dot", "trimmed_by_gamma"} | {
    f"spherical_{name}" for name in ("soft", "trimmed", "robust", "medoids")
}
RECIPES = [
    (name, ties)
    for name in PAIRS
    if name not in VARIANTS
    for ties in (("first", "average") if has_average_ties(name) else ("first",))
]
N, D, K = 40, 3, 4
MOST = 0.05
"""No new center may be off by more than this part of its points' distance from the origin."""


def blobs(rng, n=N):
    middles = rng.uniform(-4, 4, size=(K, D))
    return middles[rng.integers(K, size=n)] + rng.normal(size=(n, D))


def outlier(rng, dtype):
    points = blobs(rng)
    points[-1] = 1e3 if dtype == torch.float32 else 1e8
    return points, points[:K]


def many_outliers(rng, dtype):
    """Two fifths of the points are far away, on one side."""
    points = blobs(rng)
    points[-2 * N // 5 :] += 1e3 if dtype == torch.float32 else 1e8
    return points, points[[0, 1, 2, -1]]


def far_and_empty(rng, dtype):
    points = blobs(rng)
    far = 1e3 if dtype == torch.float32 else 1e8
    return points, np.concatenate([points[: K - 1], np.full((1, D), far)])


def tiny(rng, dtype):
    points = 1e-6 * blobs(rng)
    return points, points[:K]


def huge(rng, dtype):
    points = 1e6 * blobs(rng)
    return points, points[:K]


def far_start(rng, dtype):
    points = blobs(rng)
    return points, np.concatenate([points[: K - 1], np.full((1, D), 25.0)])


def farther_start(rng, dtype):
    points = blobs(rng)
    return points, np.concatenate([points[: K - 1], np.full((1, D), 1e3)])


def coincident_centers(rng, dtype):
    points = blobs(rng)
    return points, points[[0, 0, 1, 1]]


def duplicates(rng, dtype):
    points = np.repeat(blobs(rng, N // 4), rng.integers(1, 8, size=N // 4), axis=0)
    return points, points[[0, 5, 10, 15]]


def exact_ties(rng, dtype):
    """Points on the mirror plane of the first two centers, whose coordinates are swapped."""
    points = blobs(rng)
    points[: N // 2, 1] = points[: N // 2, 0]
    left = rng.normal(size=D)
    return points, np.stack([left, left[[1, 0, 2]], points[-1], points[-2]])


ATTACKS = [
    outlier,
    many_outliers,
    far_and_empty,
    tiny,
    huge,
    far_start,
    farther_start,
    coincident_centers,
    duplicates,
    exact_ties,
]


def drawn(attack, name, ties, dtype, number=0):
    """Points, centers and parameters of a problem, as numbers that the dtype holds exactly."""
    words = f"{attack.__name__} {name} {ties} {number}"
    rng = np.random.default_rng(zlib.crc32(words.encode()))
    points, centers = (a.astype(float) for a in attack(rng, dtype))
    if is_spherical(name):
        points, centers = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (points, centers))
    if getattr(make_recipe(name).norm, "zero_sum", False):
        points, centers = (
            lf.circuits.norms.zero_sum(torch.tensor(a)).numpy() for a in (points, centers)
        )
    spread = float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))
    parameters = PairParameters(
        ties,
        inverse_temperature=float(rng.choice([0.1, 1.0, 10.0])) / spread**2,
        keep=float(rng.choice([0.5, 0.9])),
        seed=number,
        activation=str(rng.choice(["sparsemax", "softmax"])),
    )
    return *(torch.tensor(a).to(dtype) for a in (points, centers)), parameters


def run(name, parameters, points, centers, **options):
    circuit = lf.Circuit(make_recipe(name, parameters), points.shape[-1], centers.shape[-2])
    return circuit(points, centers, n_layers=1, seed=parameters.seed, **options)


def check(name, parameters, points, centers, assignments, after, outside, layer=0):
    """Compare one layer with exact arithmetic, wherever rounding cannot decide.

    Returns the number of points, and of centers, for which it can.
    """
    exact = Exact(name, points.double().numpy(), centers.double().numpy(), parameters, layer)
    eps, shares = torch.finfo(points.dtype).eps, assignments.double().numpy()
    x, c = ((a.double() - outside.origin.double()).numpy() for a in (points, centers))
    margins = uncertainty(name, x, c, eps)
    undecided = 0
    if not name.startswith("soft"):
        undecided = check_assignments(exact, shares, margins, parameters.ties)
    apart = 0.0 if outside.separation is None else float(outside.separation.max())
    new, sure = exact.new_centers(shares, 4 * margins + 64 * eps * (apart + 1) * lowered(shares))
    allowed = error_bound(name, parameters, x, margins, exact.weights, eps, outside)
    wrong = np.abs(after.double().numpy() - new).max(axis=1) > allowed
    assert not (wrong & sure).any(), (np.abs(after.double().numpy() - new).max(axis=1), allowed)
    return undecided, (~sure).sum()


def lowered(shares):
    """Which scores have the separation added: all, if no point belongs to the center alone."""
    return ~(shares == 1).any(axis=0)[None, :]


def check_assignments(exact, shares, margins, ties):
    """Every point is with its exactly best centers; return for how many rounding could decide."""
    best, undecided = exact.best(), 0
    possible = exact.gaps() <= margins + margins[best].min()
    for mine, ideal, near in zip(shares, best, possible, strict=True):
        chosen = mine > 0
        if not (near == ideal).all():
            undecided += 1
            assert (chosen <= near).all()
        elif ties == "average":
            np.testing.assert_array_equal(chosen, ideal)
        else:
            assert chosen.sum() == 1
            assert (chosen <= ideal).all()
    return undecided


def uncertainty(name, x, c, eps):
    """How far rounding may move each score, (n, k), in the circuit's coordinates."""
    lengths = np.linalg.norm(x, axis=1)[:, None], np.linalg.norm(c, axis=1)[None]
    if finds_points_by_dot_product(make_recipe(name)) or is_spherical(name):
        return 16 * (x.shape[1] + 8) * eps * (lengths[0] + lengths[1]) ** 2
    away = np.sqrt(((x[:, None] - c[None]) ** 2).sum(axis=2))
    return 16 * (x.shape[1] + 2) * eps * away * (lengths[0] + lengths[1])


def error_bound(name, parameters, x, margins, weights, eps, outside):
    """How far rounding may move each new center, from the points that it is made of."""
    counted = weights > 1e-3 * eps  # (k, n)
    size = np.where(counted, np.linalg.norm(x, axis=1), 0).max(axis=1)
    rounding = np.full(len(weights), 4.0 * len(x) ** 0.5 * eps)
    if name.startswith(("soft", "robust")):
        scores = np.where(counted, margins.T, 0).max(axis=1)
        if outside.separation is not None:
            scores = scores + 16 * eps * float(outside.separation.max())
        rounding = rounding + parameters.inverse_temperature * scores
    if is_spherical(name):
        rounding = 4 * rounding / np.linalg.norm(weights @ x, axis=1)
    origin = np.abs(outside.origin.double().numpy()).max()
    return np.minimum(rounding, MOST) * size + 2 * eps * origin


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize(("name", "ties"), RECIPES)
def test_one_layer_is_the_exact_iteration(name, ties, attack, dtype):
    points, centers, parameters = drawn(attack, name, ties, DTYPES[dtype])
    trace = run(name, parameters, points, centers)
    undecided, unsure = check(
        name, parameters, points, centers, trace.assignments[0], trace.centers[1], trace.outside[0]
    )
    assert undecided <= N // 8
    assert unsure <= 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "ties"), RECIPES)
def test_problems_of_a_batch_do_not_see_each_other(name, ties, dtype):
    """The second problem is 1e7 times larger; on the sphere it is another problem."""
    problems = [drawn(huge, name, ties, DTYPES[dtype], number) for number in range(2)]
    parameters = problems[0][2]
    size = 1.0 if is_spherical(name) else 1e7
    points = torch.stack([problems[0][0], size * problems[1][0]])
    centers = torch.stack([problems[0][1], size * problems[1][1]])
    trace = run(name, parameters, points, centers)
    for i in range(2):
        outside = trace.outside[0]
        mine = replace(outside, origin=outside.origin[i], separation=own(outside.separation, i))
        undecided, unsure = check(
            name,
            replace(parameters, seed=parameters.seed + i),
            points[i],
            centers[i],
            trace.assignments[i, 0],
            trace.centers[i, 1],
            mine,
        )
        assert undecided + unsure <= N // 8
        alone = run(name, parameters, points[i], centers[i]).outside[0]
        for what in ("origin", "separation", "gap", "tolerance"):
            together, by_itself = own(getattr(outside, what), i), getattr(alone, what)
            torch.testing.assert_close(together, by_itself, rtol=1e-5, atol=0)


def own(values, problem):
    return None if values is None else values[problem]


@pytest.mark.parametrize(("name", "ties"), [r for r in RECIPES if not is_spherical(r[0])])
def test_centers_that_are_patched_far_away(name, ties):
    """The second layer starts from centers that are 30 away from all points."""
    points, centers, parameters = drawn(tiny, name, ties, torch.float64)
    points, centers = 1e6 * points, 1e6 * centers
    parameters = replace(parameters, inverse_temperature=1e-12 * parameters.inverse_temperature)
    circuit = lf.Circuit(make_recipe(name, parameters), D, K)
    moved = centers + torch.tensor([30.0, 0.0, -30.0])
    tokens = circuit.tokens.decoder(moved - circuit.embed(points, centers).origin)
    with circuit.patch("layers.1.decoder_tokens", tokens):
        trace = circuit(points, centers, n_layers=2, seed=parameters.seed)
    undecided, unsure = check(
        name, parameters, points, moved, trace.assignments[1], trace.centers[2], trace.outside[1], 1
    )
    assert undecided + unsure <= 2


def test_the_exact_answer_to_a_far_start():
    """One center at (25, 25): estimator, batch, circuit and algorithm give the exact mean."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(60, 2))
    centers = np.stack([points[0], [25.0, 25.0]])
    parameters = PairParameters(inverse_temperature=1.0)
    expected, _ = Exact("soft", points, centers, parameters).new_centers(None, np.zeros((60, 2)))
    assert np.abs(expected[1]).max() < 3
    found = {
        "algorithm": lf.algorithms.run(lf.algorithms.Soft(1.0), points, centers, 1).centers[1],
        "circuit": run("soft", parameters, *map(torch.tensor, (points, centers))).centers[1],
        "lifted": run("soft_dot", parameters, *map(torch.tensor, (points, centers))).centers[1],
        "batch": lf.fit_batch(
            torch.tensor(points)[None],
            2,
            recipe=lf.recipes.soft(1.0),
            init=torch.tensor(centers)[None],
            max_iter=1,
        ).centers[0],
    }
    for engine in ("native", "chunked"):
        model = lf.SoftKMeans(2, init=centers, max_iter=1, engine=engine, tol=0)
        found[engine] = model.fit(points).cluster_centers_
    for who, new in found.items():
        np.testing.assert_allclose(np.asarray(new), expected, atol=1e-9, err_msg=who)
