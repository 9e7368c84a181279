"""The four attention heads of a layer, constructed or learned: their matrices and their maps."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipes import lloyd
from lloydformer.learning.pretrained import Pretrained

HEADS = ("encoder_cross", "encoder_self", "decoder_cross", "decoder_self")
"""Heads 1 to 4 of eq:l2-trf-updates."""
MATRICES = ("Q", "K", "V", "QtK")
Maps = dict[str, Float[Tensor, "q m"]]
"""Attention maps by head: one row for each query, one column for each key."""


def constructed(like: Pretrained) -> Circuit:
    """The circuit of thm:l2-clus-eu, for the dimensions and clusters of a trained layer."""
    return Circuit(lloyd(), like.settings.n_features, like.settings.n_clusters)


def matrices(circuit: Circuit) -> dict[str, dict[str, Float[Tensor, "e e"]]]:
    """Q, K, V and Q^T K of each head, in float64."""
    return {head: _matrices_of(circuit, head) for head in HEADS}


def _matrices_of(circuit: Circuit, head: str) -> dict[str, Tensor]:
    attention, like = getattr(circuit.layers[0], head), torch.empty(0, dtype=torch.float64)
    names = ("query", "key", "value")
    q, k, v = (attention.weight(name, like).detach() for name in names)
    return {"Q": q, "K": k, "V": v, "QtK": q.T @ k}


@torch.no_grad()
def maps(
    circuit: Circuit, points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> Maps:  # fmt: skip
    """The attention map of each head in one update from these centers."""
    trace = circuit(points, centers, n_layers=1, keep=("layers.0.*.attention",))
    return {head: trace[f"layers.0.{head}.attention"].double().cpu() for head in HEADS}
