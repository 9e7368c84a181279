"""One binary tree over a sequence of leaves: the same additions for any cut into parts.

A node of level h covers the leaves [j 2^h, (j + 1) 2^h) and is the sum of its two children; where
the number of leaves is not a power of two, a missing right child is skipped. Threads, partitions or
ranks that hold aligned subtrees give the same sums, bit for bit, as one process with all leaves.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

S = TypeVar("S")


def merge_tree(merge: Callable[[S, S], S], leaves: Iterable[S]) -> S:
    """Merge summaries along the tree, holding at most one for each level.

    Parameters
    ----------
    merge : callable
        Joins two neighbours, the left one first.
    leaves : iterable
        Summaries in order, at least one; all of one level of the tree.

    Returns
    -------
    object
        The summary of the root.
    """
    stack: list[tuple[int, S]] = []  # (level, summary), levels decrease
    for leaf in leaves:
        level, node = 0, leaf
        while stack and stack[-1][0] == level:
            node = merge(stack.pop()[1], node)
            level += 1
        stack.append((level, node))
    root = stack.pop()[1]
    while stack:
        root = merge(stack.pop()[1], root)
    return root


def tree_levels(masses: Float[Tensor, " n"]) -> list[Tensor]:
    """Return the sums of all nodes, level by level: the leaves first, the root last."""
    levels = [masses]
    while len(levels[-1]) > 1:
        below = levels[-1]
        above = below[::2].clone()
        above[: len(below) // 2] += below[1::2]
        levels.append(above)
    return levels


def find_leaves(
    levels: list[Tensor], targets: Float[Tensor, " t"]
) -> tuple[Int[Tensor, " t"], Float[Tensor, " t"]]:
    """Descend from the root to the leaf where the running mass exceeds each target.

    Parameters
    ----------
    levels : list of Tensor
        From `tree_levels`; masses are not negative.
    targets : Tensor of shape (t,)
        Between 0 and the mass of the root.

    Returns
    -------
    leaves : Tensor of shape (t,)
        Never a leaf without mass, unless none has any.
    rest : Tensor of shape (t,)
        What is left of each target within its leaf.
    """
    place, rest = torch.zeros_like(targets, dtype=torch.long), targets.clone()
    for level in reversed(levels[:-1]):
        place = 2 * place
        right = (place + 1).clamp(max=len(level) - 1)
        left_mass = level[place]
        right_mass = torch.where(right > place, level[right], 0.0)
        goes_right = (right_mass > 0) & ((rest >= left_mass) | (left_mass == 0))
        rest = torch.where(goes_right, rest - left_mass, rest)
        place = torch.where(goes_right, right, place)
    return place, rest


def find_rows(masses: Float[Tensor, " n"], targets: Float[Tensor, " t"]) -> Int[Tensor, " t"]:
    """Return the first places where the running sum of masses exceeds each target.

    Targets that rounding has moved beyond the total give the last place with mass.
    """
    reached = masses.cumsum(0)
    last = torch.searchsorted(reached, reached[-1:])
    return torch.minimum(torch.searchsorted(reached, targets, right=True), last)
