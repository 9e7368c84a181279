"""Symmetric circuits: their matrices commute with rotations and permutations."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.circuits.heads import Attention, Head
from lloydformer.circuits.projections import Number, Projection, average, on
from lloydformer.circuits.subspaces import ASSIGNMENT, NEAREST, POSITION, SECOND, Space
from lloydformer.circuits.symmetric import Fixed
from lloydformer.plans.lower import LoweringError, lower

SEVERAL = Fixed(
    sharpness=(1.0, 7.0),
    log_belonging=(1.0, 0.8),
    stride=(0.7, 0.6),
    nearest=(0.2, -0.1),
    belonging=(0.1, 0.2, 0.3, 0.4),
    distance=(0.1, 0.0),
    second=(0.1, 0.3),
    apart_sharpness=(2.0,),
    apart=(0.2,),
)
MEMBERS = {
    "symmetric": lf.recipes.symmetric(SEVERAL),
    "lloyd": lf.recipes.lloyd(),
    "soft": lf.recipes.soft(2.0),
}


def acting(space: Space, turn: torch.Tensor, names: torch.Tensor) -> torch.Tensor:
    """Return the matrix by which a rotation and a renumbering of clusters act on a token."""
    matrix = torch.zeros(space.dim, space.dim, dtype=torch.float64)
    for subspace in space.subspaces:
        part = names
        if subspace == POSITION:
            part = turn
        elif subspace in (NEAREST, SECOND):
            part = torch.ones(1, 1, dtype=torch.float64)
        matrix[space.span(subspace), space.span(subspace)] = part
    return matrix


@st.composite
def moves(draw):
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    d, k = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    turn = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=torch.float64)).Q
    return turn, torch.eye(k, dtype=torch.float64)[torch.randperm(k, generator=g)]


@pytest.mark.parametrize("name", MEMBERS)
@settings(max_examples=20, deadline=None)
@given(moves())
def test_every_matrix_commutes_with_rotations_and_permutations(name, move):
    turn, names = move
    recipe = MEMBERS[name]
    space = recipe.tokens.space(len(turn), len(names))
    action = acting(space, turn, names)
    for head in recipe.heads.values():
        for projection in head.projections.values():
            matrix = projection.matrix(space)
            assert torch.allclose(action @ matrix, matrix @ action, atol=1e-12)


def test_commuting_matrices_are_identity_and_average():
    """The mean of any matrix over the group has three numbers: a I, and b I + c 11^T/k.

    Reflections and permutations of the axes are a finite group of rotations that already leaves
    no plane in place, so the mean over all of O(2) is that over its 8 elements.
    """
    space = lf.recipes.lloyd().tokens.space(2, 3)
    group = [acting(space, turn, names) for turn, names in product(_axes(2), _orders(3))]
    family = [
        p.matrix(space).flatten() for p in (on(POSITION), on(ASSIGNMENT), average(ASSIGNMENT))
    ]
    basis = torch.stack(family, dim=1)
    g = torch.Generator().manual_seed(0)
    means = []
    for _ in range(8):
        matrix = torch.randn(space.dim, space.dim, generator=g, dtype=torch.float64)
        mean = torch.stack([a @ matrix @ a.T for a in group]).mean(dim=0).flatten()
        numbers = torch.linalg.lstsq(basis, mean[:, None]).solution
        assert torch.allclose(basis @ numbers, mean[:, None], atol=1e-12)
        means.append(mean)
    assert torch.linalg.matrix_rank(torch.stack(means)) == 3


def _orders(k):
    return [torch.eye(k, dtype=torch.float64)[list(order)] for order in permutations(range(k))]


def _axes(d):
    signs = [torch.tensor(s, dtype=torch.float64) for s in product((1.0, -1.0), repeat=d)]
    return [order * sign for order in _orders(d) for sign in signs]


def problem(seed, n=40, d=3, k=4):
    points = np.random.default_rng(seed).normal(size=(n, d))
    return torch.tensor(points), torch.tensor(points[:k])


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 30.0))
def test_soft_kmeans_is_a_symmetric_circuit(seed, gamma):
    points, centers = problem(seed)
    member = lf.recipes.symmetric(Fixed(sharpness=(gamma,)))
    found, wanted = (
        lf.Circuit(r, 3, 4)(points, centers, 5).centers for r in (member, lf.recipes.soft(gamma))
    )
    assert torch.allclose(found, wanted, atol=1e-9)


def test_two_heads_of_half_a_stride_equal_one_head():
    points, centers = problem(1)
    one = lf.recipes.symmetric(Fixed((2.0,), (1.0,), (1.5,)))
    two = lf.recipes.symmetric(Fixed((2.0, 2.0), (1.0, 1.0), (0.75, 0.75)))
    found = [lf.Circuit(r, 3, 4)(points, centers, 5).centers for r in (one, two)]
    assert torch.allclose(*found, atol=1e-12)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 6))
def test_lloyd_is_a_symmetric_circuit(seed, k):
    """With a sharpness that separates all distances of these points."""
    points, centers = problem(seed, k=k)
    hard = Fixed(sharpness=(1e9,), log_belonging=(), belonging=(1e3,))
    found, wanted = (
        lf.Circuit(r, 3, k)(points, centers, 6)
        for r in (lf.recipes.symmetric(hard), lf.recipes.lloyd())
    )
    assert torch.allclose(found.centers, wanted.centers, atol=1e-9)
    assert torch.equal(found.labels, wanted.labels)


def test_each_layer_can_have_its_own_numbers():
    points, centers = problem(2)
    schedule = [lf.recipes.symmetric(Fixed(sharpness=(gamma,))) for gamma in (1.0, 20.0)]
    found = lf.Circuit(schedule, 3, 4)(points, centers, 2).centers
    first = lf.Circuit(lf.recipes.soft(1.0), 3, 4)(points, centers, 1).centers[-1]
    second = lf.Circuit(lf.recipes.soft(20.0), 3, 4)(points, first, 1).centers[-1]
    assert torch.allclose(found[-1], second, atol=1e-9)


def test_trace_and_tokens_hold_the_numbers():
    points, centers = problem(3)
    circuit = lf.Circuit(lf.recipes.symmetric(SEVERAL), 3, 4)
    trace = circuit(points, centers, 2, names_filter="layers.1.*")
    assert trace["layers.1.numbers.stride"].tolist() == [[0.7, 0.6]]
    assert trace["layers.1.numbers.kept"].item() == pytest.approx(0.2 - 1.3)
    squares = (points[:, None] - trace.centers[1]).square().sum(dim=-1)
    tokens = trace["layers.1.encoder_next"]
    nearest, second = (squares.sort(dim=1).values[:, i] for i in (0, 1))
    assert torch.allclose(circuit.space.read(tokens, NEAREST)[:, 0], (nearest + 0.01).log())
    assert torch.allclose(circuit.space.read(tokens, SECOND)[:, 0], (second + 0.01).log())
    soft = trace["layers.1.encoder_cross_1.attention"]
    assert torch.allclose(soft, (-squares).softmax(dim=1))
    assert torch.equal(trace.labels[1], squares.argmin(dim=1))


def test_training_changes_only_numbers_and_keeps_symmetry():
    points, centers = problem(4)
    circuit = lf.Circuit(lf.recipes.symmetric(SEVERAL), 3, 4, trainable=True)
    assert all(name.startswith("layers.0.numbers.fixed_") for name, _ in circuit.named_parameters())
    trace = circuit(points, centers, 3)
    trace.objective[-1].backward()
    with torch.no_grad():
        for weight in circuit.parameters():
            assert weight.grad is not None
            assert weight.grad.abs().max() > 0
            weight -= 1e-3 * weight.grad.sign()
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q
    plain, turned = (
        circuit(p, c, 3).centers for p, c in ((points, centers), (points @ turn, centers @ turn))
    )
    assert torch.allclose(turned, plain @ turn, atol=1e-9)


def test_matrix_and_text_of_average():
    space = lf.recipes.lloyd().tokens.space(1, 2)
    assert average(ASSIGNMENT).matrix(space).tolist() == [[0, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    assert str(on(ASSIGNMENT) + 2.0 * average(ASSIGNMENT)) == "I[y] + 2 J[y]"
    assert str(Number("stride", 2) * -on(POSITION)) == "−stride_2 I[x]"


STRIDE = Number("stride") * on(POSITION)
REFUSED = {
    "numbers that no part sets": (
        lambda: replace(
            lf.recipes.lloyd(),
            decoder_cross=replace(lf.recipes.lloyd().decoder_cross, value=STRIDE),
        ),
        "decoder_cross: no part sets",
    ),
    "a number in a key": (
        lambda: replace(lf.recipes.lloyd().decoder_cross, key=STRIDE),
        "key: found",
    ),
    "two numbers in a place": (lambda: STRIDE + on(POSITION), "several numbers for POSITION"),
    "tokens without a place": (
        lambda: replace(lf.recipes.lloyd(), numbers=Fixed()),
        "numbers: they write nearest",
    ),
    "too many strides": (lambda: Fixed(stride=(1.0, 2.0)), "stride: found 2 numbers; pass 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unfitting_parts_are_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        make()


def test_only_the_first_head_of_a_slot_can_draw():
    drawing = lf.recipes.medoids().decoder_cross
    both: Head = replace(lf.recipes.lloyd().decoder_cross, beside=(drawing,))
    with pytest.raises(
        ValueError, match=r"decoder_cross_1: only the first head of a slot can draw"
    ):
        replace(lf.recipes.lloyd(), decoder_cross=both)


def test_a_head_with_numbers_needs_a_layer():
    recipe = lf.recipes.symmetric(SEVERAL)
    head = Attention(recipe.decoder_cross, recipe.tokens.space(2, 3))
    with pytest.raises(ValueError, match="numbers: found no belonging; run this head in a layer"):
        head(torch.zeros(3, 22), torch.zeros(9, 22))


def test_symmetric_recipes_are_not_lowered():
    with pytest.raises(LoweringError, match="numbers prevents lowering"):
        lower(lf.recipes.symmetric())


def test_numbers_of_a_projection():
    assert Projection(STRIDE.blocks).numbers == {POSITION: Number("stride")}
