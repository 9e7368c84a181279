"""Rows drawn in proportion to their mass: first the leaf, along the tree, then the row in it."""

from collections.abc import Callable

import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.numerics.tree import find_leaves, find_rows, tree_levels

RowMasses = Callable[[int, int], Tensor]
"""The masses of rows [start, stop), not negative, in float64."""


def draw_independently(
    layout: Layout, leaf_masses: Tensor, row_masses: RowMasses, fractions: Tensor
) -> Tensor:
    """Rows (t,) at these fractions of the total mass; rows may repeat."""
    levels = tree_levels(leaf_masses)
    leaves, rest = find_leaves(levels, fractions * levels[-1])
    rows = torch.empty_like(leaves)
    for leaf in set(leaves.tolist()):
        start, here = leaf * layout.leaf, leaves == leaf
        masses = row_masses(start, min(start + layout.leaf, layout.n_rows))
        rows[here] = start + find_rows(masses, rest[here])
    return rows


def draw_successively(
    layout: Layout, leaf_masses: Tensor, row_masses: RowMasses, fractions: Tensor
) -> Tensor:
    """Different rows (t,), each at a fraction of the mass that is left by those before it."""
    drawn: list[int] = []

    def left(start: int, stop: int) -> Tensor:
        masses = row_masses(start, stop).clone()
        masses[[row - start for row in drawn if start <= row < stop]] = 0.0
        return masses

    leaf_masses = leaf_masses.clone()
    for fraction in fractions:
        row = int(draw_independently(layout, leaf_masses, left, fraction[None]))
        drawn.append(row)
        leaf = row // layout.leaf
        start = leaf * layout.leaf
        leaf_masses[leaf] = left(start, min(start + layout.leaf, layout.n_rows)).sum()
    return torch.tensor(drawn, device=leaf_masses.device)
