"""The interpreter's parts, noise, patches, lines and code in Python, in small cases."""

import numpy as np
import pytest
import torch
from javascript import PAGE, evaluate, needs_node

import lloydformer as lf
from explorer_catalogue import build_menu
from lloydformer.circuits.serialise import PARTS, serialise
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.numerics import noise

pytestmark = needs_node

SHARED = """
const points = given.points;
const run = (recipe, options = {}) => {
  const circuit = new interpreter.Circuit(recipe, { nFeatures: points[0].length, nClusters: 3 });
  const first = points.slice(0, 3);
  const plain = () => circuit.run(points, first, { nLayers: 3, seed: 5 });
  const hooks = interpreter.hooksOf(options.interventions ?? [], circuit, plain);
  return [circuit, circuit.run(points, first, { nLayers: 3, seed: 5, hooks })];
};
const refused = (act) => {
  try { act(); return null; } catch (error) {
    if (!(error instanceof interpreter.Refusal)) throw error;
    return error.message;
  }
};
"""


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).normal(size=(17, 2)).tolist()


def test_it_knows_every_part_of_python():
    live, not_live = evaluate("say([interpreter.LIVE, interpreter.NOT_LIVE])")
    assert sorted([*live, *not_live]) == sorted(PARTS)


def test_noise_is_pythons_draw_for_draw():
    code = f"""
    const {{ uniform, gumbel }} = await import("{PAGE.as_uri()}/interpreter/noise.js");
    say([uniform(...given), gumbel(...given)].map((each) => [...each.data]));
    """
    for seed, layer, head in [
        (0, 0, "decoder_cross"),
        (2**32 + 7, 300, "affinity"),
        (2**53 - 1, 3, "encoder_self"),
    ]:
        uniform, gumbel = evaluate(code, [seed, layer, head, 5, 40])
        rows = torch.arange(40)
        wanted = noise.uniform(seed, layer, head, 5, rows).flatten().tolist()
        assert uniform == wanted
        np.testing.assert_allclose(
            gumbel, noise.gumbel(seed, layer, head, 5, rows).flatten(), rtol=1e-13
        )


def test_patches_have_the_meaning_of_pythons(points):
    interventions = [
        {"kind": "ablate", "name": "layers.1.decoder_self.output"},
        {"kind": "ablate", "name": "layers.2.encoder_tokens", "subspace": "assignment"},
        {"kind": "freeze", "name": "layers.*.encoder_cross.attention", "layer": 0},
        {
            "kind": "set",
            "name": "layers.2.decoder_cross.attention",
            "rows": np.full((3, 17), 1 / 17).tolist(),
        },
    ]
    code = """
    const [, trace] = run(recipes.lloyd, given);
    const rows = (matrix) => matrix.map((row) => [...row]);
    say([trace.centers.map(rows), rows(trace.labels)]);
    """
    centers, labels = evaluate(SHARED + code, {"points": points, "interventions": interventions})
    x = torch.tensor(points, dtype=torch.float64)
    circuit = lf.Circuit(lf.recipes.lloyd(), 2, 3)
    before = circuit(x, x[:3], 3, names_filter="*")["layers.0.encoder_cross.attention"]
    erase = lambda t: circuit.space.write(  # noqa: E731
        t, ASSIGNMENT, 0 * circuit.space.read(t, ASSIGNMENT)
    )
    with (
        circuit.patch("layers.1.decoder_self.output", torch.zeros_like),
        circuit.patch("layers.2.encoder_tokens", erase),
        circuit.patch("layers.*.encoder_cross.attention", before),
        circuit.patch("layers.2.decoder_cross.attention", torch.full((3, 17), 1 / 17)),
    ):
        trace = circuit(x, x[:3], 3)
    np.testing.assert_allclose(centers, trace.centers, atol=1e-6)
    assert labels == trace.labels.tolist()


def test_wrong_patches_are_refused_in_pythons_words(points):
    code = """
    const wide = new interpreter.Matrix(2, 2);
    const circuit = new interpreter.Circuit(recipes.lloyd, { nFeatures: 2, nClusters: 3 });
    const tried = (hooks) => refused(() => circuit.run(points, points.slice(0, 3), { hooks }));
    say([tried({ "layers.0.encoder_cross.scores": wide }), tried({ "layers.99.*": wide })]);
    """
    shape, pattern = evaluate(SHARED + code, {"points": points})
    x = torch.tensor(points, dtype=torch.float64)
    circuit = lf.Circuit(lf.recipes.lloyd(), 2, 3)
    with (
        circuit.patch("layers.0.encoder_cross.scores", torch.zeros(2, 2)),
        pytest.raises(ValueError) as error,
    ):
        circuit(x, x[:3])
    assert shape == str(error.value)
    assert pattern.startswith("patch: found 'layers.99.*', which matches none of 320 intermediates")


def test_an_unknown_part_and_wrong_data_are_refused_in_pythons_words(points):
    code = """
    const odd = { ...recipes.lloyd, norm: { part: "BatchNorm" } };
    const { recipeFromJson, withPart } = interpreter;
    const soft = withPart(recipes.soft, "encoder_cross.activation.inverse_temperature", -2);
    const circuit = new interpreter.Circuit(recipes.lloyd, { nFeatures: 2, nClusters: 3 });
    say([refused(() => recipeFromJson(odd)), refused(() => recipeFromJson(soft)),
      refused(() => circuit.run([[0, NaN], ...points], points.slice(0, 3))),
      refused(() => circuit.run(points, points.slice(0, 2)))]);
    """
    unknown, negative, missing, few = evaluate(SHARED + code, {"points": points})
    assert unknown == f"found part 'BatchNorm'; known parts are {', '.join(PARTS)}"
    assert negative == "inverse_temperature: found -2.0; pass a positive finite number"
    x = torch.tensor(points, dtype=torch.float64)
    circuit = lf.Circuit(lf.recipes.lloyd(), 2, 3)
    for rows, first, words in (
        (torch.cat([torch.tensor([[0.0, np.nan]], dtype=x.dtype), x]), x[:3], missing),
        (x, x[:2], few),
    ):
        with pytest.raises(ValueError) as error:
            circuit(rows, first)
        assert words == str(error.value)


def test_parts_name_the_algorithm():
    heads = {slot["slot"]: slot["heads"] for slot in build_menu() if "heads" in slot}
    (trim,) = (c["part"] for c in heads["decoder_cross"] if c["title"] == "trimmed")
    code = """
    const { identify, withPart } = interpreter;
    const trimmed = withPart(recipes.lloyd, "decoder_cross", given);
    const soft = withPart(recipes.lloyd, "encoder_cross.activation",
      { part: "Softmax", inverse_temperature: 9 });
    say([identify(recipes.lloyd), identify(trimmed), identify(soft),
      identify(withPart(soft, "decoder_cross.activation", { part: "Linear" })),
      identify(withPart(trimmed, "decoder_cross.activation.keep", 0.5)),
      identify(withPart(recipes.lloyd, "norm", { part: "RMSNorm", epsilon: 0 }))]);
    """
    assert evaluate(code, trim) == ["lloyd", "trimmed", "new", "soft", "trimmed", "new"]
    assert trim == serialise(lf.recipes.trimmed().decoder_cross)


BREAKS = {
    "encoder_self": {"forget_code", "write_code"},
    "encoder_cross": {"write_code"},
    "decoder_self": {"forget_place", "move"},
    "decoder_cross": {"move"},
}


def test_lines_hold_until_a_head_is_switched_off(points):
    code = """
    const { algorithmOf, linesOf } = interpreter;
    const unit = points.map((row) => row.map((x) => x / Math.hypot(...row)));
    const found = {};
    for (const { name, recipe, needsUnitVectors } of RECIPES.filter((each) => each.live)) {
      const rows = needsUnitVectors ? unit : points;
      const circuit = new interpreter.Circuit(recipe, { nFeatures: 2, nClusters: 3 });
      const broken = (hooks) => linesOf(circuit, circuit.run(rows, rows.slice(0, 3),
        { nLayers: 1, seed: 2, hooks }), 0, algorithmOf(recipe, 2))
        .filter((line) => !line.holds).map((line) => line.id);
      found[name] = { "": broken({}) };
      for (const head of given.heads) {
        const off = (value) => new interpreter.Matrix(value.rows, value.cols);
        found[name][head] = broken({ [`layers.0.${head}.output`]: off });
      }
    }
    say(found);
    """
    found = evaluate(SHARED + code, {"points": points, "heads": list(BREAKS)})
    assert set(found) >= {"lloyd", "spherical", "medoids", "symmetric"}
    for name, broken in found.items():
        assert broken[""] == [], name
        for head, lines in BREAKS.items():
            # in the first layer there is no old code yet
            assert set(broken[head]) >= (set() if head == "encoder_self" else lines), (name, head)


def test_erased_codes_are_noticed_in_the_second_layer(points):
    code = """
    const off = [{ kind: "ablate", name: "layers.*.encoder_self.output" }];
    const [circuit, trace] = run(recipes.lloyd, { interventions: off });
    const lines = interpreter.linesOf(circuit, trace, 1, interpreter.algorithmOf(recipes.lloyd));
    say(lines.filter((line) => !line.holds).map((line) => line.id));
    """
    assert set(evaluate(SHARED + code, {"points": points})) == BREAKS["encoder_self"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,5;2,5\n3;4,25", [[1.5, 2.5], [3, 4.25]]),
        ("x\ty\n1,5\t2\n3\t4", [[1.5, 2], [3, 4]]),
        ("x,y\n1.5,2\n3,4", [[1.5, 2], [3, 4]]),
        ('"1","2"\n3,4', [[1, 2], [3, 4]]),
        ("1 2\n3 4", [[1, 2], [3, 4]]),
    ],
)
def test_pasted_points(text, found):
    code = f"""
    const {{ parsePoints }} = await import("{PAGE.as_uri()}/sandbox/csv.js");
    say(parsePoints(given.text));
    """
    assert evaluate(code, {"text": text}) == found
