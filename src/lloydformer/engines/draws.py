"""Rows drawn in proportion to their mass: first the leaf, along the tree, then the row in it."""

from collections.abc import Callable

import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.numerics.tree import find_leaves, find_rows, tree_levels

# Takes the ends of a range of rows [start, stop); returns their masses, not negative, in float64.
RowMasses = Callable[[int, int], Tensor]


def draw_independently(
    layout: Layout, leaf_masses: Tensor, row_masses: RowMasses, fractions: Tensor
) -> Tensor:
    """Return the rows (t,) at these fractions of the total mass; rows may repeat."""
    levels = tree_levels(leaf_masses)
    return locate_rows(layout, levels, row_masses, fractions * levels[-1])


def locate_rows(
    layout: Layout, levels: list[Tensor], row_masses: RowMasses, targets: Tensor
) -> Tensor:
    """Return the rows (t,) where the running mass exceeds these targets.

    levels: the tree of the leaves' masses. Masses of rows are computed for the leaves that are
    found only.
    """
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
    """Return different rows (t,), each at a fraction of the mass without those before it."""
    drawn: list[int] = []
    others, leaf_masses = leave_out(drawn, row_masses), leaf_masses.clone()
    for fraction in fractions:
        drawn.append(int(draw_independently(layout, leaf_masses, others, fraction[None])))
        update_leaf_masses(layout, leaf_masses, others, drawn[-1:])
    return torch.tensor(drawn, device=leaf_masses.device)


def leave_out(drawn: list[int], row_masses: RowMasses) -> RowMasses:
    """Return the masses of rows, 0 for those drawn so far: the list may grow."""

    def masses_of_others(start: int, stop: int) -> Tensor:
        masses = row_masses(start, stop).clone()
        masses[[row - start for row in drawn if start <= row < stop]] = 0.0
        return masses

    return masses_of_others


def update_leaf_masses(
    layout: Layout, leaf_masses: Tensor, row_masses: RowMasses, rows: list[int]
) -> None:
    """Replace the masses of the leaves that some rows are in."""
    # Summed again: a difference would round, and a leaf whose rows are all drawn must have mass 0.
    for leaf in {row // layout.leaf for row in rows}:
        start = leaf * layout.leaf
        leaf_masses[leaf] = row_masses(start, min(start + layout.leaf, layout.n_rows)).sum()
