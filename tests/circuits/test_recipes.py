"""The recipes by name, with their parameters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lloydformer as lf
from lloydformer.circuits.activations import Softmax, Sparsemax, TopK

ROOT = Path(__file__).parents[2]
TEX = ROOT.parent / "shared" / "paper" / "paper.tex"
MAKERS = (
    *(*lf.recipes.IN_TABLE, *lf.recipes.BEYOND_TABLE, *lf.recipes.TRAINED),
    *lf.recipes.MIXTURES,
    *lf.recipes.BOUNDED,
    *lf.recipes.OF_TABLES,
)


def test_the_table_has_seven_rows_in_the_papers_order():
    names = [r.name for r in lf.recipes.table()]
    assert names == ["lloyd", "lloyd_dot", "spherical", "soft", "trimmed", "robust", "medoids"]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_recipe_has_the_name_of_its_function(make):
    assert make().name == make.__name__
    assert getattr(lf.recipes, make.__name__) is make


def test_all_lists_every_recipe():
    assert sorted(lf.recipes.__all__) == sorted(
        [
            *(m.__name__ for m in (*MAKERS, *lf.recipes.OF_PAIRS, *lf.recipes.OF_POINTS)),
            *(m.__name__ for m in lf.recipes.CHANGES),
            "table",
        ]
    )


APPENDICES = {
    "soft_dot": "sec:methods:icll:dp",  # stated after thm:l2-clus ip
    "robust_lifted": "sec:methods:new:robust",
    "lloyd_binary": "",  # a later result, not in the paper
    "relocating": "docs/relocating-circuit.md",
    "medoids_swap": "docs/medoids.md",
    "symmetric": "docs/symmetric.md",
    "learned": "asec:trf-train",
    "mixture": "docs/mixtures.md",
    "constrained": "docs/cluster-sizes.md",
    "missing": "docs/missing-values.md",
    "prototypes": "docs/categories.md",
}


def test_where_the_recipes_beyond_the_table_are_constructed():
    """tests/test_table.py compares those of the table with the paper."""
    beyond = MAKERS[len(lf.recipes.IN_TABLE) :]
    assert {make.__name__: make().appendix for make in beyond} == APPENDICES
    for page in APPENDICES.values():
        assert not page.startswith("docs/") or (ROOT / page).exists()


@pytest.mark.skipif(not TEX.exists(), reason="the paper is not at hand")
def test_appendices_are_labels_of_the_paper():
    tex = TEX.read_text(encoding="utf-8")
    places = {make().appendix for make in MAKERS}
    labels = [place for place in places if place and not place.startswith("docs/")]
    assert len(labels) == 7
    assert [label for label in labels if rf"\label{{{label}}}" not in tex] == []


def test_parameters_reach_the_parts():
    assert lf.recipes.soft(3.0).encoder_cross.activation == Softmax(3.0)
    assert lf.recipes.trimmed(0.7, 5.0).decoder_cross.activation.keep == 0.7
    assert lf.recipes.trimmed(0.7, 5.0).decoder_cross.separation == 5.0
    assert lf.recipes.robust(2.0).decoder_cross.activation == Sparsemax(2.0)
    assert lf.recipes.robust(2.0, TopK(3)).decoder_cross.activation == TopK(3, 2.0)
    assert lf.recipes.robust_lifted(2.0, "softmax", 4.0).affinity.separation == 4.0


@pytest.mark.parametrize("keep", [0.0, -0.5, 1.5])
def test_bad_parameters_are_refused_by_the_part(keep):
    with pytest.raises(ValueError, match=f"keep: found {keep}; pass a fraction"):
        lf.recipes.trimmed(keep)


WRONG_WORDS = {  # parts check these values without a type checker
    "lf.recipes.lloyd('last')": 'ties: found \'last\'; pass "first" or "average"',
    "lf.recipes.spherical('max')": 'norm: found \'max\'; pass "rms" or "layer"',
    "lf.recipes.on_sphere(lf.recipes.soft(), 'max')": "norm: found 'max'; pass \"rms\"",
    "lf.recipes.learned(decoder='cosine')": "decoder: found 'cosine'; pass \"euclidean\"",
    "Perceptron(0)": "hidden: found 0; pass an integer above 0",
    "NormMax(1.0, alpha=1.0)": "alpha: found 1.0; pass a finite number above 1",
    "lf.recipes.robust(1.0, 'tanh')": 'activation: found \'tanh\'; pass "sparsemax", "softmax"',
    "lf.recipes.mixture('round')": 'covariance: found \'round\'; pass one of "full", "tied"',
    "lf.recipes.mixture(family='gamma')": "family: found 'gamma'; pass one of gaussian, bernoulli",
    "lf.recipes.mixture(weights='none')": 'weights: found \'none\'; pass "free" or "equal"',
    "Quadratic('cube')": 'unit: found \'cube\'; pass "square" or "rectified"',
    "Softmax('hot')": "inverse_temperature: found 'hot'; pass a positive finite number",
    "TopK(2.5)": "m: found 2.5; pass an integer above 0",
    "lf.Circuit(lf.recipes.lloyd(), 2.5, 3)": "n_features: found 2.5; pass an integer, 1 or more",
}
TRY = f"""
import json, lloydformer as lf
from lloydformer.circuits.activations import NormMax, Softmax, TopK
from lloydformer.circuits.feedforward import Perceptron, Quadratic
def complaint(text):
    try: return repr(eval(text))
    except ValueError as error: return str(error)
print(json.dumps([complaint(text) for text in {list(WRONG_WORDS)}]))
"""


def test_wrong_values_are_refused_without_type_checks():
    found = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, check=True)
    for complaint, expected in zip(json.loads(found.stdout), WRONG_WORDS.values(), strict=True):
        assert complaint.startswith(expected)
