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
    return rows_at(layout, levels, row_masses, fractions * levels[-1])


def rows_at(layout: Layout, levels: list[Tensor], row_masses: RowMasses, targets: Tensor) -> Tensor:
    """Rows (t,) where the running mass exceeds these targets; `levels`: of the leaves' masses."""
    leaves, rest = find_leaves(levels, targets)
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
    left, leaf_masses = without(drawn, row_masses), leaf_masses.clone()
    for fraction in fractions:
        row = int(draw_independently(layout, leaf_masses, left, fraction[None]))
        drawn.append(row)
        weigh_leaf_again(layout, leaf_masses, left, row)
    return torch.tensor(drawn, device=leaf_masses.device)


def without(drawn: list[int], row_masses: RowMasses) -> RowMasses:
    """The masses of rows, 0 for those drawn so far: the list may grow."""

    def left(start: int, stop: int) -> Tensor:
        masses = row_masses(start, stop).clone()
        masses[[row - start for row in drawn if start <= row < stop]] = 0.0
        return masses

    return left


def weigh_leaf_again(layout: Layout, leaf_masses: Tensor, row_masses: RowMasses, row: int) -> None:
    """Replace the mass of the leaf that a row is in."""
    leaf = row // layout.leaf
    start = leaf * layout.leaf
    leaf_masses[leaf] = row_masses(start, min(start + layout.leaf, layout.n_rows)).sum()
