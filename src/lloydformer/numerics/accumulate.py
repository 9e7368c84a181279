"""Sums by label, in an order that does not depend on chance."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

_FEW = 4096
"""So few labels are added up by a product with their indicators on a GPU."""


def add_by_label(
    values: Float[Tensor, "m *rest"], labels: Int[Tensor, " m"], n_labels: int
) -> Float[Tensor, "k *rest"]:
    """The sum of the values with each label.

    On a GPU `index_add_` adds in whatever order its threads come, and the last bits change from
    call to call. A product does not, nor does `index_put_`, which sorts first.
    """
    if values.device.type != "cpu" and n_labels <= _FEW:
        every = torch.arange(n_labels, device=labels.device)
        return (labels == every[:, None]).to(values.dtype) @ values
    total = values.new_zeros(n_labels, *values.shape[1:])
    if values.device.type == "cpu":
        return total.index_add_(0, labels, values)
    return total.index_put_((labels,), values, accumulate=True)
