"""Sums by label, in a deterministic order."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

_FEW = 4096
"""On a GPU, up to this many labels are summed by a product with one-hot labels."""


def add_by_label(
    values: Float[Tensor, "m *rest"], labels: Int[Tensor, " m"], n_labels: int
) -> Float[Tensor, "k *rest"]:
    """Return the sum of the values of each label.

    On a GPU `index_add_` adds in an arbitrary order, so the last bits change from call to call.
    A product is deterministic, and so is `index_put_`, which sorts first.
    """
    if values.device.type != "cpu" and n_labels <= _FEW:
        every = torch.arange(n_labels, device=labels.device)
        return (labels == every[:, None]).to(values.dtype) @ values
    total = values.new_zeros(n_labels, *values.shape[1:])
    if values.device.type == "cpu":
        return total.index_add_(0, labels, values)
    return total.index_put_((labels,), values, accumulate=True)
