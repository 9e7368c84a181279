"""Copy as Python: the code makes the circuit and the trace of the page, for any parts."""

import contextlib
import io
import warnings
from dataclasses import replace

import numpy as np
import pytest
from golden_traces import live_variants, random_recipes, with_random_parameters
from javascript import evaluate, needs_node

from lloydformer.circuits.serialise import deserialise
from lloydformer.paper.verify.problems import draw

pytestmark = needs_node

CODE = """
const answer = ({ recipe, points, centers, interventions }) => {
  const options = { nLayers: 2, seed: 7 };
  const circuit = new interpreter.Circuit(recipe,
    { nFeatures: points[0].length, nClusters: centers.length });
  const plain = () => circuit.run(points, centers, options);
  const hooks = interpreter.hooksOf(interventions, circuit, plain);
  const trace = circuit.run(points, centers, { ...options, hooks });
  return {
    code: interpreter.asPython({ recipe, points, centers, interventions, ...options }),
    centers: trace.centers.map((rows) => rows.map((row) => Array.from(row, String))),
  };
};
say(given.map((state) => {
  try {
    return answer(state);
  } catch (error) {
    if (error instanceof interpreter.Refusal) return null; // a rank above the number of keys
    throw error;
  }
}));
"""
INTERVENTIONS = (
    [],
    [{"kind": "ablate", "name": "layers.*.decoder_self.output"}],
    [{"kind": "freeze", "name": "layers.*.decoder_cross.attention", "layer": 0}],
    [
        {"kind": "ablate", "name": "layers.1.decoder_tokens", "subspace": "assignment"},
        {"kind": "set", "name": "layers.0.decoder_self.attention", "rows": np.eye(3).tolist()},
    ],
)


def accepted(recipe):
    try:
        return deserialise(recipe).norm is None
    except ValueError:
        return False


@pytest.fixture(scope="module")
def states():
    """Shipped recipes with other parameters, and recipes with parts of the menu."""
    rng = np.random.default_rng(4)
    shipped = [with_random_parameters(rng, recipe, but="ties") for _, recipe in live_variants()]
    mixed = [golden.recipe for golden in random_recipes(rng, 40)]
    found = []
    for i, recipe in enumerate(filter(accepted, [*shipped, *mixed])):
        problem = draw(rng, "uniform", n=(8, 14), d=(2, 3), k=(3, 3))
        found.append(
            {
                "recipe": recipe,
                "points": problem.points.tolist(),
                "centers": problem.centers.tolist(),
                "interventions": INTERVENTIONS[i % len(INTERVENTIONS)],
            }
        )
    return found


@pytest.fixture(scope="module")
def answers(states):
    return evaluate(CODE, states)


def test_the_code_makes_the_same_recipe_and_trace(states, answers):
    ran = [(s, a) for s, a in zip(states, answers, strict=True) if a is not None]
    assert len(ran) > 35
    for state, answer in ran:
        names: dict[str, object] = {}
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as said:
            warnings.simplefilter("ignore", RuntimeWarning)  # a center that is no number
            exec(answer["code"], names)
        wanted = deserialise(state["recipe"])
        assert replace(names["recipe"], name="") == replace(wanted, name=""), answer["code"]
        found = names["trace"].centers
        np.testing.assert_allclose(
            found, np.array(answer["centers"], float), atol=1e-9 * found.nan_to_num().abs().max()
        )
        assert said.getvalue().startswith("[")


def test_shipped_recipes_are_calls_of_their_makers(answers):
    calls = [answer["code"].count("recipe = lf.recipes.") for answer in filter(None, answers)]
    assert sum(calls) >= len(live_variants()) / 2
