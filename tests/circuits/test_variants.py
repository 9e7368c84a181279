"""The stars of tab:comp-alg, and constructions that the text words but its table does not list."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import lloydformer as lf
from lloydformer import algorithms
from lloydformer.circuits.activations import Linear, NormMax
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.projections import on
from lloydformer.circuits.scores import Euclidean
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, SQUARED_NORM
from lloydformer.plans.lower import LoweringError, lower

RECIPES = lf.recipes
GENERATOR = torch.Generator().manual_seed(0)
POINTS = torch.randn(60, 3, dtype=torch.float64, generator=GENERATOR)
UNIT = torch.nn.functional.normalize(POINTS, dim=-1)


def run(recipe, points, centers, n_layers=6, **options):
    circuit = lf.Circuit(recipe, points.shape[1], len(centers))
    return circuit(points, centers, n_layers, **options)


def plain(algorithm, points, centers, n_layers=6):
    history = algorithms.run(algorithm, points.numpy(), centers.numpy(), n_layers)
    return torch.tensor(history.centers)


DOT = [
    (RECIPES.lloyd(), algorithms.Lloyd()),
    (RECIPES.soft(3.0), algorithms.Soft(3.0)),
    (RECIPES.trimmed(0.8), algorithms.Trimmed(keep=0.8)),
    (RECIPES.robust(0.5), algorithms.Robust(inverse_temperature=0.5)),
    (RECIPES.medoids(1.0), algorithms.Medoids(separation=1.0, seed=4)),
]
SPHERE = [
    (RECIPES.lloyd(), algorithms.Spherical()),
    (RECIPES.soft(3.0), algorithms.SphericalSoft(3.0)),
    (RECIPES.trimmed(0.8), algorithms.SphericalTrimmed(keep=0.8)),
    (RECIPES.robust(0.5), algorithms.SphericalRobust(inverse_temperature=0.5)),
    (RECIPES.medoids(1.0), algorithms.SphericalMedoids(separation=1.0, seed=4)),
]


def named(case):
    return getattr(case, "name", "")


@pytest.mark.parametrize(("recipe", "algorithm"), DOT, ids=named)
def test_with_dot_products_a_circuit_is_the_same_algorithm(recipe, algorithm):
    changed = RECIPES.with_dot_products(recipe)
    found = run(changed, POINTS, POINTS[:4], seed=4).centers
    torch.testing.assert_close(found, plain(algorithm, POINTS, POINTS[:4]), rtol=0, atol=1e-11)
    assert changed.name == f"{recipe.name}_dot"
    assert all(head.score.symbol == "⟨,⟩" for head in changed.heads.values())


@pytest.mark.parametrize(("recipe", "algorithm"), SPHERE, ids=named)
def test_on_the_sphere_a_circuit_is_the_spherical_algorithm(recipe, algorithm):
    changed = RECIPES.on_sphere(recipe)
    found = run(changed, UNIT, UNIT[:4], seed=4).centers
    torch.testing.assert_close(found, plain(algorithm, UNIT, UNIT[:4]), rtol=0, atol=1e-11)
    torch.testing.assert_close(found.norm(dim=-1), torch.ones_like(found[..., 0]))


def test_the_named_recipes_are_variations_of_others():
    assert RECIPES.with_dot_products(RECIPES.lloyd()) == RECIPES.lloyd_dot()
    assert RECIPES.with_dot_products(RECIPES.soft(2.0)) == RECIPES.soft_dot(2.0)
    for norm in ("rms", "layer"):
        assert RECIPES.on_sphere(RECIPES.lloyd(), norm) == RECIPES.spherical(norm)


def test_a_spherical_weight_by_hand():
    """Soft: cosines 1 and 0 weigh e and 1, so the first center is the direction (e, 1)."""
    points = torch.eye(2, dtype=torch.float64)
    centers = run(RECIPES.on_sphere(RECIPES.soft(1.0)), points, points, 1).centers[-1]
    e = float(np.e)
    expected = torch.tensor([[e, 1.0], [1.0, e]], dtype=torch.float64) / (1 + e * e) ** 0.5
    torch.testing.assert_close(centers, expected)


@pytest.mark.parametrize("change", [RECIPES.with_dot_products, RECIPES.on_sphere])
@pytest.mark.parametrize(
    "recipe",
    [
        RECIPES.lloyd_dot(),
        RECIPES.spherical(),
        RECIPES.learned(),
        RECIPES.symmetric(),
        RECIPES.lloyd_binary(),
        RECIPES.relocating(),
    ],
    ids=named,
)
def test_other_recipes_have_no_variation(change, recipe):
    with pytest.raises(ValueError, match=f"recipe: found '{recipe.name}', wh.*; pass lloyd"):
        change(recipe)


def test_dot_products_lower_to_the_plan_of_the_distances():
    for recipe, _ in DOT:
        assert lower(RECIPES.with_dot_products(recipe)) == lower(recipe)
    with pytest.raises(LoweringError, match="no fold is known"):
        lower(RECIPES.on_sphere(RECIPES.soft()))


def test_any_initial_centers_are_allowed_on_the_sphere():
    """thm:sp-clus ip has C^(0) in R^{d x k}: only the points are unit vectors."""
    start = 3 * POINTS[:4]
    found = run(RECIPES.spherical(), UNIT, start).centers
    torch.testing.assert_close(found, plain(algorithms.Spherical(), UNIT, start))
    with pytest.raises(ValueError, match="points: found a row whose norm"):
        run(RECIPES.spherical(), POINTS, UNIT[:4])


# ---- d rectified units (thm:l2-clus-ip-informal) --------------------------------------------


def test_d_rectified_units_run_lloyds_algorithm_on_these_points():
    recipe = RECIPES.lloyd_rectified(POINTS)
    circuit = lf.Circuit(recipe, 3, 4)
    network = circuit.get_submodule("layers.0.feedforward")
    assert network.get_buffer("inward").shape == (3, 3 + 4 + 2)  # W_1, d x (d + k + 2)
    assert not network.get_buffer("bias").any()
    found = circuit(POINTS, POINTS[:4], 6).centers
    torch.testing.assert_close(found, plain(algorithms.Lloyd(), POINTS, POINTS[:4]))


def test_a_shift_that_is_too_small_is_wrong():
    recipe = RECIPES.lloyd_rectified(0.01 * POINTS)
    away = (
        run(recipe, POINTS, POINTS[:4]).centers - run(RECIPES.lloyd(), POINTS, POINTS[:4]).centers
    )
    assert away.abs().max() > 0.01


@pytest.mark.parametrize("points", [torch.zeros(3), torch.tensor([[float("nan")]])])
def test_the_shift_needs_a_matrix_of_finite_numbers(points):
    with pytest.raises(ValueError, match="points: found an array of shape"):
        RECIPES.lloyd_rectified(points)


# ---- Norm-max with one gamma, and with any alpha (eq:nmax) -----------------------------------


def test_trimmed_by_one_gamma_keeps_another_share_of_every_cluster():
    recipe = RECIPES.trimmed(inverse_temperature=0.2)
    oracle = algorithms.Trimmed(inverse_temperature=0.2)
    found = run(recipe, POINTS, POINTS[:4], names_filter="*.decoder_cross.attention")
    torch.testing.assert_close(found.centers, plain(oracle, POINTS, POINTS[:4]))
    kept = (found["layers.0.decoder_cross.attention"] > 0).sum(dim=1)
    shares = kept / torch.bincount(found.labels[0], minlength=4)
    assert shares.max() - shares.min() > 0.1


def test_as_printed_a_large_separation_is_enough():
    """Ties do not occur in continuous data, and the origin is 0 up to rounding."""
    recipe = RECIPES.trimmed(inverse_temperature=0.2, separation=1e3)
    circuit = lf.Circuit(recipe, 3, 4, as_in_paper=True)
    expected = run(RECIPES.trimmed(inverse_temperature=0.2), POINTS, POINTS[:4]).centers
    torch.testing.assert_close(circuit(POINTS, POINTS[:4], 6).centers, expected)


def test_a_share_and_a_gamma_exclude_each_other():
    with pytest.raises(ValueError, match=r"keep, inverse_temperature: found 0\.5 and 1\.0"):
        RECIPES.trimmed(keep=0.5, inverse_temperature=1.0)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0, 10.0])
def test_norm_max_solves_its_problem(alpha):
    """An independent optimiser finds no larger value, and the same weights."""
    scores = np.random.default_rng(1).normal(size=5)

    def value(p):
        return scores @ p - (np.abs(p) ** alpha).sum() ** (1 / alpha)

    found = NormMax(1.0, alpha=alpha)(torch.tensor(scores)[None])[0].numpy()
    sums = {"type": "eq", "fun": lambda p: p.sum() - 1}
    best = minimize(
        lambda p: -value(p), np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints=sums, tol=1e-12
    )
    assert value(found) >= -best.fun - 1e-8
    assert found == pytest.approx(best.x, abs=1e-3)
    assert found.sum() == pytest.approx(1)


def test_norm_max_tends_to_equal_weights():
    scores = torch.randn(3, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    equal = NormMax(1.0)(scores)
    assert (NormMax(1.0, alpha=1e4)(scores) - equal).abs().max() < 1e-3
    assert (NormMax(1.0, alpha=2.0)(scores) - equal).abs().max() > 0.05


def test_norm_max_with_two_keys_by_hand():
    """alpha = 2: squares of the brackets sum to 1, and the weights are proportional to them."""
    assert NormMax(1.0, alpha=2.0)(torch.tensor([[1.0, 0.0]]))[0].tolist() == [1.0, 0.0]
    half = NormMax(1.0, alpha=2.0)(torch.tensor([[0.2, 0.0]], dtype=torch.float64))[0]
    # (0.2 - t)^2 + t^2 = 1 has the root t = 0.1 - sqrt(0.49): brackets 0.8 and 0.6
    torch.testing.assert_close(half, torch.tensor([4 / 7, 3 / 7], dtype=torch.float64))


def test_norm_max_has_a_gradient():
    scores = torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert torch.autograd.gradcheck(
        NormMax(1.0, alpha=3.0), (scores.requires_grad_(),), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"inverse_temperature": 1.0, "alpha": 1.0},
            "alpha: found 1.0; pass a finite number above 1",
        ),
        ({"inverse_temperature": 1.0, "alpha": float("inf")}, "alpha: found inf"),
        ({"keep": 0.5, "alpha": 2.0}, "alpha: found 2.0; give inverse_temperature with it"),
    ],
)
def test_wrong_alphas_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        NormMax(**fields)


# ---- Linear attention with Euclidean scores (eq:attned-update) -------------------------------


def test_linear_attention_with_euclidean_scores_is_its_definition():
    """VZ sigma_lin(DP(KZ, QX)): weights are squared distances, divided by their sum."""
    base = RECIPES.lloyd()
    cross = replace(base.encoder_cross, activation=Linear())
    assert isinstance(cross.score, Euclidean)
    recipe = replace(base, name="far", encoder_cross=cross)
    found = run(recipe, POINTS, POINTS[:4] + 1, 1).assignments[0]
    squares = torch.cdist(POINTS, POINTS[:4] + 1, compute_mode="donot_use_mm_for_euclid_dist") ** 2
    torch.testing.assert_close(found, squares / squares.sum(dim=1, keepdim=True))
    with pytest.raises(LoweringError, match="no fold is known for Linear"):
        lower(recipe)


def test_linear_attention_on_affinities_is_refused():
    base = RECIPES.robust_lifted()
    cross = replace(base.decoder_cross, activation=Linear())
    with pytest.raises(ValueError, match="decoder_cross: linear attention cannot keep clusters"):
        replace(base, decoder_cross=cross)


# ---- Norm and network in the encoder (fig:gen-arch) ------------------------------------------


def lifted_by_the_network():
    """Lloyd's algorithm in which the encoder forgets its lifting and its network renews it."""
    base = RECIPES.lloyd_dot()
    forgets = replace(base.encoder_self, value=-on(ASSIGNMENT, SQUARED_NORM, HALF))
    return replace(base, name="renewed", encoder_self=forgets, encoder_feedforward=Quadratic())


def test_a_network_in_the_encoder_renews_the_lifting_of_the_points():
    found = run(lifted_by_the_network(), POINTS, POINTS[:4]).centers
    torch.testing.assert_close(found, plain(algorithms.Lloyd(), POINTS, POINTS[:4]))
    without = replace(lifted_by_the_network(), name="forgets", encoder_feedforward=None)
    away = run(without, POINTS, POINTS[:4]).centers - found
    assert not away.abs().max() < 0.1


def test_a_norm_in_the_encoder_acts_on_the_points():
    recipe = replace(RECIPES.spherical(), name="normed", encoder_norm=RMSNorm())
    trace = run(recipe, UNIT, UNIT[:4], names_filter="layers.0.encoder_next")
    torch.testing.assert_close(trace.centers, run(RECIPES.spherical(), UNIT, UNIT[:4]).centers)
    doubled = replace(RECIPES.lloyd(), name="doubled", encoder_norm=RMSNorm())
    assert not doubled.translation_invariant
    first = run(doubled, POINTS, POINTS[:4], 1, names_filter="layers.0.encoder_next")
    lengths = first["layers.0.encoder_next"][:, :3].norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_parts_of_the_encoder_are_shown_written_and_not_lowered():
    recipe = replace(lifted_by_the_network(), encoder_norm=LayerNorm())
    assert recipe.equation().splitlines()[1:3] == ["X ← LN(X)", "X ← X + N(X)"]
    assert recipe.row()["Norm"] == recipe.row()["NLT"] == "✓"
    assert deserialise(serialise(recipe)) == recipe
    assert "encoder_norm" not in serialise(RECIPES.lloyd())
    with pytest.raises(
        LoweringError, match="encoder_norm prevents lowering: it changes the points"
    ):
        lower(recipe)
    with pytest.raises(ValueError, match="encoder_feedforward: it writes half, squared_norm"):
        replace(RECIPES.lloyd(), encoder_feedforward=Quadratic())


def test_weights_behind_a_network_in_the_encoder_are_trainable():
    recipe = RECIPES.softened(lifted_by_the_network(), 5.0, self_attention=50.0)
    circuit = lf.Circuit(recipe, 3, 4, trainable=True)
    circuit(POINTS.float(), POINTS[:4].float(), 2).objective[-1].backward()
    weight = circuit.get_submodule("layers.0.encoder_feedforward").get_parameter("outward")
    assert weight.grad.abs().sum() > 0
