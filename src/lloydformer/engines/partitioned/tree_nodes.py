"""Nodes of the one tree over all leaves: the sums that a partition can compute on its own.

The node (level, place) covers the leaves [place 2^level, (place + 1) 2^level), as far as there are
any. A range of whole leaves consists of a few complete nodes; summaries of nodes are merged in
pairs, left before right, up to the root. So any cut gives the bits of one process
(`numerics/tree.py`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

S = TypeVar("S")


class Node(NamedTuple):
    """A node of the tree: 2^level leaves from leaf `place` 2^level on."""

    level: int
    place: int

    @property
    def first_leaf(self) -> int:
        return self.place << self.level

    @property
    def parent(self) -> "Node":
        return Node(self.level + 1, self.place // 2)

    @property
    def children(self) -> "tuple[Node, Node]":
        left = Node(self.level - 1, 2 * self.place)
        return left, Node(left.level, left.place + 1)

    def stop_leaf(self, n_leaves: int) -> int:
        """Return the leaf after the last one."""
        return min((self.place + 1) << self.level, n_leaves)


def root(n_leaves: int) -> Node:
    """Return the node of all leaves."""
    return Node((n_leaves - 1).bit_length(), 0)


def split_into_nodes(
    first: int, stop: int, n_leaves: int, max_leaves: int | None = None
) -> list[Node]:
    """Return the fewest complete nodes that make up the leaves [first, stop), in their order.

    max_leaves: leaves of a node at most, a power of two; None: any number.
    """
    top = root(n_leaves).level
    if max_leaves is not None:
        top = min(top, max_leaves.bit_length() - 1)
    nodes = []
    while first < stop:
        node = Node(0, first)
        while node.level < top:
            parent = node.parent
            if parent.first_leaf != first or parent.stop_leaf(n_leaves) > stop:
                break
            node = parent
        nodes.append(node)
        first = node.stop_leaf(n_leaves)
    return nodes


def merge_ancestors(
    merge: Callable[[S, S], S], summaries: Mapping[Node, S], n_leaves: int
) -> dict[Node, S]:
    """Return the summaries of these nodes and of all nodes above them whose children are there."""
    every = dict(summaries)
    for level in range(root(n_leaves).level):
        for node in sorted(n for n in every if n.level == level and n.place % 2 == 0):
            right = Node(level, node.place + 1)
            if right in every:
                every[node.parent] = merge(every[node], every[right])
            elif right.first_leaf >= n_leaves:  # there is no right child
                every[node.parent] = every[node]
    return every


def merge_nodes(
    merge: Callable[[S, S], S], summaries: Mapping[Node, S], n_leaves: int
) -> dict[Node, S]:
    """Merge summaries as far as possible; return the fewest nodes."""
    every = merge_ancestors(merge, summaries, n_leaves)
    return {node: summary for node, summary in every.items() if node.parent not in every}


def merge_to_root(merge: Callable[[S, S], S], summaries: Mapping[Node, S], n_leaves: int) -> S:
    """Return the summary of the root. Precondition: the nodes make up all leaves."""
    return merge_ancestors(merge, summaries, n_leaves)[root(n_leaves)]


def find_node(
    masses: Mapping[Node, float], own: Collection[Node], target: float, n_leaves: int
) -> tuple[Node, float]:
    """Descend from the root to the node of `own` where the running mass exceeds the target.

    The comparisons are those of `numerics.tree.find_leaves`, which continues within that node: a
    draw finds the same row for every cut.

    Parameters
    ----------
    masses : mapping
        Mass of each node of `own` and of all nodes above them, from `merge_ancestors`.
    own : collection of Node
        The nodes at which the descent ends.
    target : float
        Between 0 and the mass of the root.

    Returns
    -------
    node : Node
        One of `own`.
    rest : float
        What is left of the target within it.
    """
    node, rest = root(n_leaves), target
    while node not in own:
        left, right = node.children
        left_mass, right_mass = masses[left], masses.get(right, 0.0)
        if right_mass > 0 and (rest >= left_mass or left_mass == 0):
            node, rest = right, rest - left_mass
        else:
            node = left
    return node, rest
