"""The four attentions as the paper numbers them, constructed [Thm] and learned [Lrn]."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipes import lloyd
from lloydformer.learning.pretrained import Pretrained

HEADS = ("encoder_cross", "encoder_self", "decoder_cross", "decoder_self")
"""In the order of eq:l2-trf-updates: 1 to 4."""
MATRICES = ("Q", "K", "V", "QtK")
Maps = dict[str, Float[Tensor, "q m"]]


def constructed(like: Pretrained) -> Circuit:
    """The circuit of thm:l2-clus-eu for as many dimensions and clusters."""
    return Circuit(lloyd(), like.settings.n_features, like.settings.n_clusters)


def matrices(circuit: Circuit) -> dict[str, dict[str, Float[Tensor, "e e"]]]:
    """Query, key and value matrix of each head, and what of the first two soft-max sees."""
    return {head: _of(circuit, head) for head in HEADS}


def _of(circuit: Circuit, head: str) -> dict[str, Tensor]:
    attention, like = getattr(circuit.layers[0], head), torch.empty(0, dtype=torch.float64)
    names = ("query", "key", "value")
    q, k, v = (attention.weight(name, like).detach() for name in names)
    return {"Q": q, "K": k, "V": v, "QtK": q.T @ k}


@torch.no_grad()
def maps(
    circuit: Circuit, points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> Maps:  # fmt: skip
    """What each head attends to in one update: a row for each query."""
    trace = circuit(points, centers, n_layers=1, keep=("layers.0.*.attention",))
    return {head: trace[f"layers.0.{head}.attention"].double().cpu() for head in HEADS}
