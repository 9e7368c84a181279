"""A layer as a problem: its ends, its single edges by another way, and the truth in every case."""

import pytest
import torch

import lloydformer as lf
from lloydformer.interp import benchmark
from lloydformer.interp.benchmark import FindingCase, list_cases, measure_case, recipe_at
from lloydformer.interp.layer_graph import edge_names, edge_patch

CASES = [(n, g) for n in benchmark.RECIPES for g in benchmark._levels(n, (0.1, 10.0))]


def make(name, gamma, n_pairs=3, hidden=False):
    recipe = recipe_at(name, gamma)
    pairs = lf.interp.resampled_pairs(recipe, n_pairs, seed=4)
    circuit = lf.Circuit(recipe, 2, 3)
    if hidden:
        circuit = lf.interp.disguise_circuit(circuit, seed=2).circuit
    return lf.interp.LayerProblem(circuit, pairs)


@pytest.mark.parametrize(("name", "gamma"), CASES)
def test_the_metric_is_1_for_the_clean_run_and_0_for_the_corrupted_one(name, gamma):
    problem = make(name, gamma)
    ends = torch.stack([torch.zeros(3, problem.n_edges), torch.ones(3, problem.n_edges)]).double()
    clean, corrupted = problem.metric(ends)
    torch.testing.assert_close(clean, torch.ones(3).double(), rtol=0, atol=1e-9)
    # a separation that is chosen from the data, and the rows of the noise, stay those of the run
    if name not in ("trimmed", "robust", "robust_lifted", "medoids"):
        torch.testing.assert_close(corrupted, torch.zeros(3).double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "gamma"), CASES)
def test_the_truth_is_found_by_intervention(name, gamma):
    """Every edge of the truth has an effect at every temperature, and no other edge has one."""
    row = measure_case(FindingCase(name, "plain", gamma), n_pairs=4)
    assert row["area"]["activation patching"] == 1.0
    assert row["found"]["activation patching"] == 1.0


TRIMMED, ROBUST, MEDOIDS = lf.recipes.trimmed(), lf.recipes.robust(0.5), lf.recipes.medoids()
VARIANTS = [
    lf.recipes.lloyd("average"),
    lf.recipes.lloyd_dot("average"),
    lf.recipes.spherical("layer"),
    lf.recipes.robust(0.5, "softmax"),
    lf.recipes.trimmed(inverse_temperature=0.5),
    *map(lf.recipes.with_dot_products, (TRIMMED, ROBUST, MEDOIDS)),
    *map(lf.recipes.on_sphere, (lf.recipes.soft(3.0), TRIMMED, ROBUST, MEDOIDS)),
    lf.recipes.straight_through(lf.recipes.lloyd(), 1.0),
]


@pytest.mark.parametrize("recipe", VARIANTS, ids=lambda recipe: recipe.name)
def test_the_truth_about_variants_is_found_by_intervention(recipe):
    pairs = lf.interp.resampled_pairs(recipe, 4)
    circuit = lf.Circuit(recipe, pairs[0].clean[0].shape[1], 3)
    problem, inside = lf.interp.LayerProblem(circuit, pairs), lf.interp.truth(recipe).edges
    scores = lf.interp.score_edges(problem, "activation patching")
    names = [str(edge) for edge, score in zip(problem.edges, scores, strict=True) if score > 0]
    assert names == [str(edge) for edge in problem.edges if str(edge) in set(map(str, inside))]


def test_every_recipe_has_a_truth_or_is_refused():
    refused = {"relocating", "medoids_swap", "symmetric", "learned"}
    assert {*benchmark.RECIPES} | refused == {*lf.recipes.MAKERS}
    assert not {*benchmark.RECIPES} & refused


@pytest.mark.parametrize("name", ["lloyd", "spherical", "soft_dot", "robust", "robust_lifted"])
def test_one_edge_is_that_of_ablate_edge(name):
    """`edge_patch` takes the difference from one edge, without strengths and live values."""
    problem = make(name, 1.0, n_pairs=1)
    circuit, layer = problem.circuit, problem.layer
    inputs = lf.interp.resampled_pairs(recipe_at(name, 1.0), 1, seed=4)[0].clean
    ends = {node: f"layers.{layer}.{place}" for node, place in problem._state.items()}
    for number, edge in enumerate(problem.edges):
        if edge.target == "next_points":  # `edge_patch` acts in the layer after it
            continue
        names = (*edge_names(circuit, edge, layer), *ends.values())
        run = circuit(*inputs, layer + 1, names_filter=names, seed=0)
        other = problem._other[edge.source][0]
        with circuit.patch(*edge_patch(circuit, edge, layer, run, run[names[0]] - other)):
            cut = circuit(*inputs, layer + 1, names_filter=names, seed=0)
        wanted = []
        for node, place in ends.items():
            clean, corrupted = (end[0] for end in problem._ends[node])
            way = clean - corrupted
            wanted.append(((cut[place] - corrupted) * way).sum() / way.square().sum())
        strengths = torch.zeros(1, 1, problem.n_edges, dtype=torch.float64)
        strengths[..., number] = 1
        found = problem.metric(strengths)[0, 0]
        assert found.item() == pytest.approx(torch.stack(wanted).mean().item(), abs=1e-9), edge


@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "disguised"])
def test_slopes_along_the_way_add_up_to_the_difference(hidden):
    """The sum of integrated gradients is the metric's difference, with many points on the way."""
    problem = make("lloyd", 0.3, hidden=hidden)
    way = (torch.arange(30).double() + 0.5) / 30
    strengths = way[:, None, None].repeat(1, 3, problem.n_edges).requires_grad_()
    (slope,) = torch.autograd.grad(problem.metric(strengths).sum(), strengths)
    total = slope.sum(dim=-1).mean(dim=0)
    torch.testing.assert_close(total, -torch.ones(3).double(), rtol=0, atol=0.02)


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("name", benchmark.RECIPES)
def test_a_disguised_circuit_computes_the_same(name, rotation):
    recipe = recipe_at(name, None)
    circuit = lf.Circuit(recipe, 2, 3)
    for seed, pair in enumerate(lf.interp.resampled_pairs(recipe, 3)):
        hidden = lf.interp.disguise_circuit(circuit, rotation, extra_heads=4, seed=seed)
        one, two = (c(*pair.clean, 5, seed=7) for c in (circuit, hidden.circuit))
        torch.testing.assert_close(one.centers, two.centers, rtol=0, atol=1e-9)
        torch.testing.assert_close(one.assignments, two.assignments, rtol=0, atol=1e-9)


@pytest.mark.parametrize("role", ["idle", "encoder_cross", "decoder_cross", "decoder_self"])
def test_the_key_to_a_circuit_is_true_by_ablation(role):
    recipe = lf.recipes.lloyd()
    hidden = lf.interp.disguise_circuit(lf.Circuit(recipe, 2, 3), seed=3)
    circuit, pair = hidden.circuit, lf.interp.resampled_pairs(recipe, 1)[0]
    before = circuit(*pair.clean, 3).centers
    for head, found in hidden.roles.items():
        if found == role:
            circuit.layers[0].get_submodule(head).value.zero_()
    moved = (circuit(*pair.clean, 3).centers - before).abs().max().item()
    assert (moved < 1e-9) == (role == "idle")
    names = {node.name for node in hidden.truth().nodes}
    assert {*hidden.roles, "points", "centers", "next_points", "next_centers"} == names
    idle = {head for head, found in hidden.roles.items() if found == "idle"}
    assert not any({edge.source, edge.target} & idle for edge in hidden.truth().edges)


def test_weights_of_a_disguised_circuit_do_not_show_the_heads():
    plain = lf.Circuit(lf.recipes.lloyd(), 2, 3)
    hidden = lf.interp.disguise_circuit(plain).circuit
    for name, head in hidden.layers[0].named_children():
        if name.startswith(("encoder_", "decoder_")) and hasattr(head, "query"):
            assert head.query.count_nonzero() >= 4 > 0
            assert not torch.equal(head.query, plain.layers[0].get_submodule("encoder_self").query)


def test_the_dial():
    """Gradients find soft circuits as patching does, and half of the edges of hard ones."""
    soft, hard = (measure_case(FindingCase("lloyd", "plain", g), 2) for g in (1.0, None))
    for method in ("edge attribution", "integrated gradients"):
        assert (soft["found"][method], soft["area"][method]) == (1.0, 1.0)
        assert (hard["found"][method], hard["area"][method]) == (0.5, 0.75)
    assert hard["area"]["ACDC"] == 1.0
    recipe = lf.recipes.lloyd()
    hidden = lf.interp.disguise_circuit(lf.Circuit(recipe, 2, 3))
    problem = lf.interp.LayerProblem(hidden.circuit, lf.interp.resampled_pairs(recipe, 2))
    inside = set(map(str, hidden.truth().edges))
    areas = [
        lf.interp.area_under_curve(
            lf.interp.score_edges(problem, method), [str(edge) in inside for edge in problem.edges]
        )
        for method in ("activation patching", "edge attribution")
    ]
    assert areas[0] > areas[1] + 0.1


def test_trained_layers_have_a_row():
    (case,) = list_cases([], trained=["d4-k6"])
    row = measure_case(case, n_pairs=2)
    assert row["area"]["activation patching"] == 1.0  # which stands for the truth here
    assert 0.5 < row["area"]["integrated gradients"] <= 1
    assert row["n_edges"] == 2 * row["n_in_circuit"] + 1


def test_wrong_arguments():
    recipe = lf.recipes.lloyd()
    circuit, pairs = lf.Circuit(recipe, 2, 3), lf.interp.resampled_pairs(recipe, 1)
    staged = lf.Circuit(lf.recipes.relocating(), 2, 3)
    with pytest.raises(ValueError, match="circuit: found 'relocating'; pass a circuit of one"):
        lf.interp.LayerProblem(staged, pairs)
    with pytest.raises(ValueError, match=r"pairs: found \[\]; pass one pair or more"):
        lf.interp.LayerProblem(circuit, [])
    apart = lf.interp.InputPair(
        pairs[0].clean, (pairs[0].clean[0] + 9, pairs[0].clean[1]), "", 0, 0, 0
    )
    with pytest.raises(ValueError, match="pairs: the inputs of a pair have different origins"):
        lf.interp.LayerProblem(circuit, [apart])
    with pytest.raises(ValueError, match="extra_heads: found 1; pass an even number"):
        lf.interp.disguise_circuit(circuit, extra_heads=1)
    with pytest.raises(ValueError, match="recipe: found 'relocating'"):
        lf.interp.disguise_circuit(staged)
    with pytest.raises(ValueError, match="n_points: found 5; pass 6 or more"):
        lf.interp.resampled_pairs(recipe, n_points=5)
    with pytest.raises(ValueError, match="recipes: found 'x'; there are lloyd"):
        list_cases(["x"])
    with pytest.raises(ValueError, match="trained: found 'x'; there are d4-k6"):
        list_cases([], trained=["x"])
