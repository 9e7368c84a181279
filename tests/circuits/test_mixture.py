"""One layer of `mixture` is one EM iteration, for every member of the family."""

import json
import warnings

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.algorithms import Mixture, MixtureState
from lloydformer.circuits.mixture import GATES, MixtureNetwork, NaturalParameters
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.circuits.subspaces import (
    ASSIGNMENT,
    COVARIANCE,
    LINEAR,
    ONE,
    POSITION,
    QUADRATIC,
    WEIGHT,
)

LAYERS = 8
GAUSSIAN = [
    (covariance, weights)
    for covariance in ("full", "tied", "diag", "spherical", "shared", 0.7)
    for weights in ("free", "equal")
]
PROBLEMS = {"plain": (0.0, 1.0), "shifted": (1e4, 1.0), "small": (0.0, 1e-3), "large": (0.0, 1e6)}


def problem(kind, shift=0.0, scale=1.0, seed=3, n=150, d=3, k=4):
    """Rows of stretched clusters and a start with covariances of this kind."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, k, n)
    axes = rng.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    noise = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), axes[own])
    rows = (rng.normal(0, 3, (k, d))[own] + noise) * scale + shift
    means = rows[rng.choice(n, k, replace=False)]
    covariances = restricted(np.cov(rows.T) * rng.uniform(0.5, 1, (k, 1, 1)), kind)
    return rows, MixtureState(rng.dirichlet(np.full(k, 4.0)), means, covariances)


def restricted(covariances, kind):
    """The covariance matrices (k, d, d) as ones of this kind."""
    k, d, _ = covariances.shape
    if not isinstance(kind, str):
        return np.stack([kind * np.eye(d)] * k)
    if kind in ("tied", "shared"):
        covariances = np.stack([covariances[0]] * k)
    if kind in ("spherical", "shared"):
        return np.stack([np.eye(d) * np.trace(c) / d for c in covariances])
    return covariances * np.eye(d) if kind == "diag" else covariances


def as_theirs(covariances, kind):
    """Covariance matrices in the shape that `start` and `parameters` have."""
    d = range(covariances.shape[-1])
    return {
        "full": covariances,
        "tied": covariances[..., 0, :, :],
        "diag": covariances[..., d, d],
        "spherical": covariances[..., 0, 0],
        "shared": covariances[..., 0, 0, 0],
    }.get(kind)


def start_of(state, kind, weights):
    start = {"weights": state.weights} if weights == "free" else {}
    if isinstance(kind, str):
        start["covariances"] = np.array(as_theirs(state.covariances, kind))
    return {name: torch.tensor(value) for name, value in start.items()}


def run(recipe, rows, state, kind, weights, n_layers=LAYERS):
    """The trace, and the parameters after each layer."""
    circuit = lf.Circuit(recipe, rows.shape[1], len(state.means))
    trace = circuit(
        torch.tensor(rows),
        torch.tensor(state.means),
        n_layers,
        names_filter=("*.decoder_next",),
        start=start_of(state, kind, weights),
    )
    tokens = [trace[f"layers.{t}.decoder_next"] for t in range(n_layers)]
    return trace, [circuit.tokens.parameters(circuit.space, t) for t in tokens]


@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize(("kind", "weights"), GAUSSIAN, ids=str)
def test_a_layer_is_an_iteration(kind, weights, of):
    shift, scale = PROBLEMS[of]
    kind = kind if isinstance(kind, str) else kind * scale**2
    reg = 1e-6 * scale**2
    rows, state = problem(kind, shift, scale)
    recipe = lf.recipes.mixture(kind, weights=weights, regularisation=reg)
    history = Mixture(kind, weights=weights, regularisation=reg).run(rows, state, LAYERS)
    trace, found = run(recipe, rows, state, kind, weights)
    for layer, (true, ours) in enumerate(zip(history, found, strict=True)):
        away = np.abs(trace.centers[layer + 1].numpy() - true.state.means).max()
        assert away <= 1e-9 * scale
        shares = trace.assignments[layer].numpy()
        np.testing.assert_allclose(shares, true.responsibilities, atol=1e-9)
        if weights == "free":
            np.testing.assert_allclose(ours["weights"], true.state.weights, atol=1e-9)
        if isinstance(kind, str):
            expected = as_theirs(true.state.covariances, kind)
            np.testing.assert_allclose(ours["covariances"], expected, atol=1e-9 * scale**2)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
@pytest.mark.parametrize("weights", ["free", "equal"])
def test_a_layer_is_an_iteration_of_other_families(family, weights):
    rng = np.random.default_rng(4)
    means = rng.uniform(0.1, 0.9, (4, 6)) * (1 if family == "bernoulli" else 7)
    true = means[rng.integers(0, 4, 150)]
    rows = rng.binomial(1, true) if family == "bernoulli" else rng.poisson(true)
    rows, state = rows.astype(float), MixtureState(rng.dirichlet(np.full(4, 4.0)), means * 0.9)
    history = Mixture(family=family, weights=weights).run(rows, state, LAYERS)
    recipe = lf.recipes.mixture(family=family, weights=weights)
    trace, found = run(recipe, rows, state, 0.0, weights)
    for layer, (true, ours) in enumerate(zip(history, found, strict=True)):
        np.testing.assert_allclose(trace.centers[layer + 1], true.state.means, atol=1e-10)
        np.testing.assert_allclose(trace.assignments[layer], true.responsibilities, atol=1e-9)
        if weights == "free":
            np.testing.assert_allclose(ours["weights"], true.state.weights, atol=1e-10)


def compared(recipe, other, seed=5):
    """The largest difference of the centers of two recipes, layer by layer, in spreads."""
    rows, state = problem("full", seed=seed)
    points, centers = torch.tensor(rows), torch.tensor(state.means)
    one, two = (lf.Circuit(r, 3, 4)(points, centers, LAYERS).centers for r in (recipe, other))
    return ((one - two).abs().max() / points.std()).item()


@pytest.mark.parametrize("gamma", [0.05, 1.0, 30.0])
def test_a_fixed_variance_and_equal_weights_are_soft_kmeans(gamma):
    recipe = lf.recipes.mixture(1 / (2 * gamma), weights="equal")
    assert compared(recipe, lf.recipes.soft(gamma)) <= 1e-9


def test_variance_zero_is_lloyd():
    assert compared(lf.recipes.mixture(0.0, weights="equal"), lf.recipes.lloyd()) <= 1e-12


def test_smaller_and_smaller_variances_approach_lloyd():
    away = [
        compared(lf.recipes.mixture(variance, weights="equal"), lf.recipes.lloyd())
        for variance in (1.0, 1e-1, 1e-2, 1e-4)
    ]
    assert away == sorted(away, reverse=True)
    assert away[-1] <= 1e-9


def test_the_network_computes_the_natural_parameters_of_their_definition():
    """`decoder` inverts matrices and `N` has products, reciprocals and logarithms alone."""
    for covariance in ("full", "tied", "diag", "spherical", "shared"):
        recipe = lf.recipes.mixture(covariance)
        _, state = problem(covariance)
        circuit = lf.Circuit(recipe, 3, 4)
        token = circuit.tokens.decoder(
            torch.tensor(state.means), start_of(state, covariance, "free")
        )
        blank = token.clone()
        written = (COVARIANCE, WEIGHT, *recipe.tokens.kind.natural)
        for subspace in written:
            blank[..., circuit.space.span(subspace)] = 0.0
        found = blank + circuit.layers[0].feedforward(blank)
        torch.testing.assert_close(found, token, atol=1e-9, rtol=1e-9)


def test_scores_are_the_logarithms_of_weight_times_density():
    rows, state = problem("full")
    circuit = lf.Circuit(lf.recipes.mixture(), 3, 4)
    trace = circuit(
        torch.tensor(rows),
        torch.tensor(state.means),
        1,
        names_filter="layers.0.encoder_cross.scores",
        start=start_of(state, "full", "free"),
    )
    expected = Mixture().log_joint(rows, state)
    np.testing.assert_allclose(trace["layers.0.encoder_cross.scores"], expected, atol=1e-9)


@pytest.mark.parametrize(("kind", "weights"), GAUSSIAN, ids=str)
def test_a_component_without_points_stays_finite(kind, weights):
    """Its shares are too small for a float; the logarithms are not."""
    rows, state = problem(kind, n=40)
    means = state.means.copy()
    means[3] += 1e3
    state = MixtureState(state.weights, means, state.covariances)
    oracle = Mixture(kind, weights=weights).run(rows, state, 1)[0].state
    trace, found = run(lf.recipes.mixture(kind, weights=weights), rows, state, kind, weights, 1)
    assert trace.assignments[0, :, 3].max() == 0
    assert trace.outside[0].log_shares
    np.testing.assert_allclose(trace.centers[1], oracle.means, atol=1e-8)
    assert all(torch.isfinite(value).all() for value in found[0].values())


def test_as_printed_there_is_neither_an_origin_nor_a_logarithm():
    rows, state = problem("diag", n=40)
    points, far = torch.tensor(rows), torch.tensor(state.means)
    far[3] += 1e3
    circuit = lf.Circuit(lf.recipes.mixture("diag"), 3, 4, as_in_paper=True)
    with pytest.warns(RuntimeWarning, match="a center is not a number"):
        trace = circuit(points, far, 1)
    assert not trace.origin.any()
    assert not trace.outside[0].log_shares


def test_the_data_are_centered_if_results_move_along():
    assert lf.recipes.mixture("tied").translation_invariant
    assert not lf.recipes.mixture(family="poisson").translation_invariant


def test_sizes_of_tokens():
    dims = {
        kind: lf.Circuit(lf.recipes.mixture(kind), n_features=5, n_clusters=4).space.dim
        for kind in ("shared", "spherical", "diag", "tied", "full")
    }
    assert dims == {"shared": 24, "spherical": 24, "diag": 36, "tied": 66, "full": 66}


def networks(recipe, d=5):
    feedforward = lf.Circuit(recipe, d, 4).layers[0].feedforward
    assert isinstance(feedforward, MixtureNetwork)
    return [*feedforward.before, *feedforward.after]


def test_units_are_named_for_what_they_are():
    assert [network.extra_repr() for network in networks(lf.recipes.mixture("diag"))] == [
        "product: 19",  # 4 of the weight, 3 times 5 of the variances
        "reciprocal: 10, logarithm: 5",
        "product: 6, logarithm: 1",
    ]
    deep = networks(lf.recipes.mixture("full"))
    assert len(deep) == 19  # moments, a copy, three layers for each of 5 sweeps, two more
    assert set(GATES) == {"product", "reciprocal", "logarithm"}
    units = NaturalParameters().units(lf.Circuit(lf.recipes.mixture(), 2, 2).space)
    assert {unit.gate for layers in units for layer in layers for unit in layer} == set(GATES)


EQUATIONS = {
    "diag": """\
X ← X + A⟨⟩[1](X, C; I[η←x Λ←M κ←1], I[η Λ κ], I[y]) + A₂[∞](X, X; I[x], I[x], −I[y])
C ← C + A⟨⟩[lin](C, X; I[y], I[y], I[x M]) + A⟨⟩[lin](C, X; I[1], I[1], I[ρ←y]) \
+ A⟨⟩[∞](C, C; I[y], I[y], −I[x M ρ w S η Λ κ])
C ← C + N[w ← ρ·y, S ← M − x∘x + 1e-06](C)
C ← C + N[η ← x/S, Λ ← −½/S, κ ← log w − ½(Σ log S + x·η + d log 2π)](C)""",
    "tied": """\
C ← C + N[w ← ρ·y, S ← M − x⊗x + 1e-06](C)
C ← C + A⟨⟩[lin](C, C; I[1], I[1←w], I[S]) + A⟨⟩[∞](C, C; I[y], I[y], −I[S])
C ← C + N[η ← S⁻¹x, Λ ← −½S⁻¹, κ ← log w − ½(log|S| + x·η + d log 2π)](C)""",
}


def test_the_equation_says_what_the_network_computes():
    for covariance, expected in EQUATIONS.items():
        assert lf.recipes.mixture(covariance).equation().endswith(expected)
    assert r"\eta\leftarrow x" in lf.recipes.mixture().equation(latex=True)
    assert lf.recipes.mixture(0.5, weights="equal").equation().count("\n") == 2


@pytest.mark.parametrize(("kind", "weights"), [*GAUSSIAN, (0.0, "equal")], ids=str)
def test_recipes_are_restored_from_json(kind, weights):
    recipe = lf.recipes.mixture(kind, weights=weights, regularisation=0.25)
    again = deserialise(json.loads(json.dumps(serialise(recipe), allow_nan=False)))
    assert again == recipe
    assert str(again) == str(recipe)


def test_a_batch_is_its_problems():
    recipe = lf.recipes.mixture("tied")
    both = [problem("tied", seed=seed) for seed in (1, 2)]
    points = torch.tensor(np.stack([rows for rows, _ in both]))
    centers = torch.tensor(np.stack([state.means for _, state in both]))
    starts = [start_of(state, "tied", "free") for _, state in both]
    start = {name: torch.stack([each[name] for each in starts]) for name in starts[0]}
    circuit = lf.Circuit(recipe, 3, 4)
    together = circuit(points, centers, 3, start=start).centers
    for i in range(2):
        alone = circuit(points[i], centers[i], 3, start=starts[i]).centers
        torch.testing.assert_close(together[i], alone, atol=1e-12, rtol=1e-12)


def test_names_of_the_trace():
    circuit = lf.Circuit(lf.recipes.mixture("tied"), 2, 2)
    points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.5]], dtype=torch.float64)
    trace = circuit(points, points[[0, 3]], 1, names_filter="*")
    network = "layers.0.feedforward"
    assert {f"{network}.before.0.hidden", f"{network}.pooling.0.attention"} < set(trace.names)
    pooled = trace[f"{network}.pooling.0.attention"]
    weights = circuit.tokens.parameters(circuit.space, trace["layers.0.decoder_next"])["weights"]
    torch.testing.assert_close(pooled, weights.expand(2, 2))
    shares = circuit.space.read(trace["layers.0.decoder_cross_1.values"], ASSIGNMENT)
    assert not shares.any()  # it writes SHARES
    tokens = trace["layers.0.encoder_tokens"]
    assert circuit.space.read(tokens, ONE).flatten().tolist() == [1.0] * 4


def test_gradients_reach_every_parameter_that_is_not_a_choice():
    points = torch.tensor(problem("diag", n=30)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        circuit = lf.Circuit(lf.recipes.mixture("diag"), 3, 2, trainable=True)
    circuit(points, points[:2], 3).centers[-1].square().sum().backward()
    for name, weight in circuit.named_parameters():
        if "_self" not in name and "_1" not in name:
            assert weight.grad is not None, name
            assert weight.grad.isfinite().all(), name


WRONG = {
    "a variance": ((-1.0,), "covariance: found -1.0"),
    "no covariance": (("diag", "poisson"), "covariance: found 'diag'; a poisson component has"),
    "the limit": ((0.0,), "weights: found 'free'; they have no effect in the limit"),
    "regularisation": (("full", "gaussian", "free", -1.0), r"regularisation: found -1\.0"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_members_are_refused(fault):
    arguments, words = WRONG[fault]
    with pytest.raises(ValueError, match=words):
        lf.recipes.mixture(*arguments)


def test_wrong_starts_are_refused():
    points = torch.zeros(5, 2, dtype=torch.float64) + torch.arange(5)[:, None]
    circuit = lf.Circuit(lf.recipes.mixture("diag"), 2, 3)
    with pytest.raises(ValueError, match=r"start: found 'means'; components .* weights and cov"):
        circuit(points, points[:3], 1, start={"means": points})
    with pytest.raises(
        ValueError, match=r"start\['weights'\]: found \(2,\); pass the shape \(3,\)"
    ):
        circuit(points, points[:3], 1, start={"weights": torch.ones(2)})
    with pytest.raises(ValueError, match="start: found 'weights'; centers of this recipe have a"):
        lf.Circuit(lf.recipes.lloyd(), 2, 3)(points, points[:3], 1, start={"weights": points})


def test_positions_and_natural_parameters_have_their_places():
    space = lf.Circuit(lf.recipes.mixture("full"), 2, 3).space
    assert [space.size(s) for s in (POSITION, LINEAR, QUADRATIC)] == [2, 2, 3]
