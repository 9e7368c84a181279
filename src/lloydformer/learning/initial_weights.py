r"""The weights that training starts from: drawn at random, or constructed.

The construction of a learned layer is that of Lloyd's algorithm (thm:l2-clus-eu) with finite
temperatures. Its scores are divided by $\sqrt{d_{emb}}$, and soft-max has the temperature 1, so the
inverse temperature is in the weights: queries and keys are multiplied by
$\sqrt{\gamma \sqrt{d_{emb}}}$. The decoder compares names by distance or by dot product, which
has the same order: codes of one kind have the same length.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations import Sparsemax
from lloydformer.circuits.projections import Projection
from lloydformer.circuits.recipes import lloyd
from lloydformer.circuits.scores import Scaled
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.stacked_layer import FlatLayer, is_dot_product

# Inverse temperature of the assignment, for data in [0, 1]: a step that starts somewhat softer
# than Lloyd's is better than it (0.87 to 1.01 of its objective on normal mixtures; 0.98 with d 4
# and k 6 in benchmarks/results/starts.json).
ASSIGN = 30.0

# Inverse temperature of encoder self-attention. Its value is zero at first, as no point has an
# assignment yet. A wide neighbourhood gives it something to learn; the limit would not.
NEIGHBOURS = 5.0

# The scores of other names are this much lower: soft-max leaves them exp(-10) of the weight,
# sparsemax none.
APART = {"softmax": 10.0, "sparsemax": 2.0}


def initial_weights(settings: Settings, runs: Sequence[Run]) -> Float[Tensor, "r p"]:
    """Return the weights before the first step, a row for each run."""
    layer, seeds = settings.layer, [run.seed for run in runs]
    if settings.start == "random":
        return layer.begin(seeds)
    row = construct_weights(layer) if settings.recipe.free else layer.begin([0])[0]
    noise = [torch.randn(len(row), generator=torch.Generator().manual_seed(s)) for s in seeds]
    return row + settings.start_noise * torch.stack(noise).to(row)


def construct_weights(layer: FlatLayer) -> Float[Tensor, " p"]:
    """Return weights of a learned layer with names, with which it does nearly a Lloyd step."""
    recipe, k = layer.recipe, layer.n_clusters
    head, codes = recipe.encoder_cross, recipe.tokens.codes.table(k).double()
    # The nearest other code decides how sharp the heads must be that compare names.
    squares = torch.cdist(codes, codes).square()
    nearest = squares[squares > 0.5].min().item() if k > 1 else 1.0
    apart = APART["sparsemax" if isinstance(head.activation, Sparsemax) else "softmax"] / nearest
    if is_dot_product(recipe.decoder_cross.score):
        # |a - b|^2 of codes of one length is twice as much as their products differ
        apart *= 2
    gammas = {
        "encoder_cross": ASSIGN,
        "encoder_self": NEIGHBOURS,
        "decoder_cross": apart,
        "decoder_self": apart,
    }
    divided_by = math.sqrt(layer.dim) if isinstance(head.score, Scaled) else 1.0
    space = recipe.tokens.space(layer.n_features, k)
    weights = {name: torch.zeros(shape) for name, shape in layer.shapes.items()}  # biases stay 0
    for slot, lloyd_head in lloyd().heads.items():
        for part, projection in lloyd_head.projections.items():
            assert isinstance(projection, Projection)
            scale = 1.0 if part == "value" else math.sqrt(gammas[slot] * divided_by)
            weights[f"layers.0.{slot}.{part}"] = scale * projection.matrix(space)
    return torch.cat([w.flatten() for w in weights.values()]).to(torch.get_default_dtype())
