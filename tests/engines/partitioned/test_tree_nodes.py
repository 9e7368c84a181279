"""Nodes of the tree: any cut of the leaves into parts gives the sums of one process."""

import operator
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.engines.partitioned.tree_nodes import (
    Node,
    find_node,
    merge_ancestors,
    merge_nodes,
    merge_to_root,
    root,
    split_into_nodes,
)
from lloydformer.numerics.tree import find_leaves, merge_tree, tree_levels


@st.composite
def cut_leaves(draw):
    """A number of leaves, and where they are cut."""
    n_leaves = draw(st.integers(1, 40))
    return n_leaves, sorted({0, n_leaves, *draw(st.lists(st.integers(0, n_leaves), max_size=6))})


def bracketed(first: str, second: str) -> str:
    return f"({first}{second})"


def summary(node: Node, n_leaves: int) -> str:
    """What one process merges the leaves of a node to."""
    return merge_tree(bracketed, map(str, range(node.first_leaf, node.stop_leaf(n_leaves))))


@given(cut_leaves())
def test_parts_merge_as_one_process_does(case):
    n_leaves, ends = case
    parts = [split_into_nodes(*ends[i : i + 2], n_leaves) for i in range(len(ends) - 1)]
    held = [
        merge_nodes(bracketed, {n: summary(n, n_leaves) for n in part}, n_leaves) for part in parts
    ]
    found = merge_to_root(
        bracketed, {node: text for some in held for node, text in some.items()}, n_leaves
    )
    assert found == merge_tree(bracketed, map(str, range(n_leaves)))


def test_a_range_is_made_of_few_nodes_and_all_leaves_are_the_root():
    assert split_into_nodes(3, 9, 16) == [Node(0, 3), Node(2, 1), Node(0, 8)]
    assert split_into_nodes(4, 7, 7) == [Node(2, 1)]  # the last node has no more leaves
    assert split_into_nodes(0, 7, 7) == [root(7)] == [Node(3, 0)]
    assert split_into_nodes(0, 8, 8, max_leaves=4) == [Node(2, 0), Node(2, 1)]
    assert split_into_nodes(0, 7, 7, max_leaves=64) == [root(7)]  # not above the root
    assert split_into_nodes(0, 1, 1) == [root(1)] == [Node(0, 0)]


@given(cut_leaves(), st.lists(st.floats(0, 0.999), min_size=1, max_size=5), st.randoms())
def test_the_descent_ends_in_the_leaf_of_one_process(case, fractions, random):
    n_leaves, ends = case
    masses = torch.tensor([random.choice([0.0, 1.0, random.random()]) for _ in range(n_leaves)])
    masses = masses.double()
    levels = tree_levels(masses)
    total = levels[-1].item()
    own = {}
    for first, stop in pairwise(ends):
        for node in split_into_nodes(first, stop, n_leaves):
            here = masses[node.first_leaf : node.stop_leaf(n_leaves)]
            own[node] = tree_levels(here)[-1].item()
    every = merge_ancestors(operator.add, own, n_leaves)
    assert every[root(n_leaves)] == total
    for fraction in fractions:
        wanted, wanted_rest = find_leaves(
            levels, torch.tensor([fraction * total], dtype=torch.float64)
        )
        node, rest = find_node(every, own, fraction * total, n_leaves)
        here = tree_levels(masses[node.first_leaf : node.stop_leaf(n_leaves)])
        leaf, rest = find_leaves(here, torch.tensor([rest], dtype=torch.float64))
        assert node.first_leaf + leaf == wanted
        assert rest == wanted_rest


@pytest.mark.parametrize("fewest", [1, 300, 10_000])
def test_cuts_hold_every_row_once_and_move_at_most_half_a_leaf(fewest):
    from lloydformer.engines.partitioned.partitions import cut_partitions

    lengths, leaf = [0, 100, 3, 64, 1, 700, 0, 32, 31], 64
    found = cut_partitions(lengths, leaf, fewest)
    ends = torch.tensor(lengths).cumsum(0).tolist()
    assert [cut.start for cut in found] == [0, *(cut.stop for cut in found[:-1])]
    assert found[-1].stop == sum(lengths)
    assert all(cut.start % leaf == 0 for cut in found)
    assert all(min(abs(cut.stop - end) for end in ends) <= leaf // 2 for cut in found)
    assert all(cut.stop - cut.start >= fewest for cut in found) or len(found) == 1
    rows = [(number, row) for cut in found for number, a, b in cut.sources for row in range(a, b)]
    assert rows == [(i, row) for i, length in enumerate(lengths) for row in range(length)]
