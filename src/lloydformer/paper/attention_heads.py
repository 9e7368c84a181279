"""The four attention heads of a layer, constructed or learned: matrices, maps, and their text."""

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipes import lloyd
from lloydformer.learning.pretrained import Pretrained

# Heads 1 to 4 of eq:l2-trf-updates.
HEADS = ("encoder_cross", "encoder_self", "decoder_cross", "decoder_self")
MATRICES = ("Q", "K", "V", "QtK")
# Attention maps by head: one row for each query, one column for each key.
Maps = dict[str, Float[Tensor, "q m"]]


def construct_like(layer: Pretrained) -> Circuit:
    """Return the circuit of thm:l2-clus-eu, for the dimensions and clusters of a trained layer."""
    return Circuit(lloyd(), layer.settings.n_features, layer.settings.n_clusters)


def head_matrices(circuit: Circuit) -> dict[str, dict[str, Float[Tensor, "e e"]]]:
    """Return Q, K, V and Q^T K of each head, in float64."""
    # in float64, so that Q^T K of a layer in float32 is not rounded once more
    like = torch.empty(0, dtype=torch.float64)
    matrices = {}
    for head in HEADS:
        attention = getattr(circuit.layers[0], head)
        q, k, v = (attention.weight(name, like).detach() for name in ("query", "key", "value"))
        matrices[head] = {"Q": q, "K": k, "V": v, "QtK": q.T @ k}
    return matrices


@torch.no_grad()
def attention_maps(
    circuit: Circuit, points: Float[Tensor, "n d"], centers: Float[Tensor, "k d"]
) -> Maps:
    """Return the attention map of each head in one update from these centers."""
    trace = circuit(points, centers, n_layers=1, names_filter=("layers.0.*.attention",))
    return {head: trace[f"layers.0.{head}.attention"].double().cpu() for head in HEADS}


def format_matrix(matrix: Float[Tensor, "m n"], digits: int = 3) -> list[str]:
    """Return each row as text with `digits` significant digits, which keeps JSON files small."""
    return [" ".join(f"{v:.{digits}g}" for v in row) for row in matrix.detach().cpu().tolist()]


def parse_matrix(rows: list[str]) -> Float[Tensor, "m n"]:
    """Return the matrix from the output of `format_matrix`, in float64."""
    numbers = [[float(v) for v in row.split()] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)
