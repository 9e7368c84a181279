"""Nodes of the one tree over all leaves: what a part of the rows can add up on its own.

The node (level, place) covers the leaves [place 2^level, (place + 1) 2^level), as far as there are
any. Rows that are cut at leaves are a few complete nodes; summaries of nodes are merged in pairs,
left before right, up to the root. So any cut gives the bits of one process (`numerics.tree`).
"""

from collections.abc import Callable, Mapping
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
        """The leaf after the last one."""
        return min((self.place + 1) << self.level, n_leaves)


def root(n_leaves: int) -> Node:
    return Node((n_leaves - 1).bit_length(), 0)


def nodes_of(first: int, stop: int, n_leaves: int, most: int | None = None) -> list[Node]:
    """The fewest complete nodes that make up the leaves [first, stop), in their order.

    most: leaves of a node at most; a power of two.
    """
    top = root(n_leaves).level if most is None else most.bit_length() - 1
    found = []
    while first < stop:
        level = 0
        while level < top and _complete(
            Node(level + 1, first >> (level + 1)), first, stop, n_leaves
        ):
            level += 1
        found.append(Node(level, first >> level))
        first = found[-1].stop_leaf(n_leaves)
    return found


def _complete(node: Node, first: int, stop: int, n_leaves: int) -> bool:
    return node.first_leaf == first and node.stop_leaf(n_leaves) <= stop


def joined(merge: Callable[[S, S], S], summaries: Mapping[Node, S], n_leaves: int) -> dict[Node, S]:
    """Merge summaries as far as both children of a node are there: the fewest nodes."""
    left = dict(summaries)
    for level in range(root(n_leaves).level):
        for node in sorted(node for node in left if node.level == level and node.place % 2 == 0):
            right = Node(level, node.place + 1)
            if right in left:
                left[node.parent] = merge(left.pop(node), left.pop(right))
            elif right.first_leaf >= n_leaves:  # there is no right child
                left[node.parent] = left.pop(node)
    return left


def whole(merge: Callable[[S, S], S], summaries: Mapping[Node, S], n_leaves: int) -> S:
    """The summary of the root. Precondition: the nodes make up all leaves."""
    (summary,) = joined(merge, summaries, n_leaves).values()
    return summary


def all_masses(masses: Mapping[Node, float], n_leaves: int) -> dict[Node, float]:
    """The masses of these nodes and of all nodes above them."""
    found, level = dict(masses), 0
    while level < root(n_leaves).level:
        for node in sorted(node for node in found if node.level == level and node.place % 2 == 0):
            right = found.get(Node(level, node.place + 1))
            found[node.parent] = found[node] if right is None else found[node] + right
        level += 1
    return found


def find_node(
    masses: Mapping[Node, float], own: Mapping[Node, float], target: float, n_leaves: int
) -> tuple[Node, float]:
    """Descend from the root to the node of `own` where the running mass exceeds the target.

    The same comparisons as in `numerics.tree.find_leaves`, which goes on within that node.

    Parameters
    ----------
    masses : mapping
        From `all_masses`.
    own : mapping
        Its keys are the nodes at which the descent ends.
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
