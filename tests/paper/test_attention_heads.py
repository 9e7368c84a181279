"""Matrices and attention maps of learned and constructed layers, computed again by hand."""

import numpy as np
import pytest
import torch

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.pretrained import load
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.attention_heads import (
    HEADS,
    attention_maps,
    construct_like,
    format_matrix,
    head_matrices,
    parse_matrix,
)


def test_matrices_are_the_weights_and_a_rotation_does_not_change_their_product():
    layer = load("d32-k10")
    named = {name: part[0].double() for name, part in layer.layer.named(layer.weights).items()}
    found = head_matrices(layer.circuit())
    for head in HEADS:
        q, k = (named[f"layers.0.{head}.{name}"] for name in ("query", "key"))
        assert torch.equal(found[head]["Q"], q)
        assert torch.equal(found[head]["K"], k)
        turn = torch.linalg.qr(torch.randn(42, 42, dtype=torch.float64)).Q
        product = (turn @ q).T @ (turn @ k)  # rem:inf-params
        torch.testing.assert_close(found[head]["QtK"], product)


def test_constructed_matrices_are_those_of_the_theorem():
    """Q and K read position in the encoder, codes in the decoder; V the other, once negated."""
    found = head_matrices(construct_like(load("d32-k10")))
    position = torch.diag(torch.tensor([1.0] * 32 + [0.0] * 10)).double()
    codes = torch.eye(42).double() - position
    expected = {
        "encoder_cross": (position, position, codes),
        "encoder_self": (position, position, -codes),
        "decoder_cross": (codes, codes, position),
        "decoder_self": (codes, codes, -position),
    }
    for head, three in expected.items():
        for name, wanted in zip("QKV", three, strict=True):
            assert torch.equal(found[head][name], wanted)
        assert torch.equal(found[head]["QtK"], three[0])


def test_matrices_as_text():
    values = torch.tensor([[0.123456, -2.0], [0.0, 1e-9]])
    assert format_matrix(values) == ["0.123 -2", "0 1e-09"]
    torch.testing.assert_close(
        parse_matrix(format_matrix(values)), values.double(), atol=1e-3, rtol=0
    )


@pytest.fixture(scope="module")
def task():
    points, centers = draw_unseen(Tasks(), n_tasks=2)
    return points[0, 1], centers[0, 1]


def test_a_learned_map_is_the_softmax_of_scaled_distances(task):
    """The encoder's cross-attention in plain numpy, from the weights."""
    layer = load("d32-k10")
    named = {name: part[0].numpy() for name, part in layer.layer.named(layer.weights).items()}
    x = np.pad(task[0].numpy(), ((0, 0), (0, 10)))
    c = np.hstack([task[1].numpy(), np.eye(10)])
    of = "layers.0.encoder_cross"
    q = x @ named[f"{of}.query"].T + named[f"{of}.query_bias"]
    k = c @ named[f"{of}.key"].T + named[f"{of}.key_bias"]
    scores = -np.square(q[:, None] - k).sum(axis=2) / np.sqrt(42)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    known = weights / weights.sum(axis=1, keepdims=True)
    found = attention_maps(layer.circuit(), *task)["encoder_cross"]
    np.testing.assert_allclose(found.numpy(), known, atol=2e-4)


def test_the_constructed_maps_are_the_steps_of_lloyds_algorithm(task):
    x, c = (part.double() for part in task)
    found = attention_maps(construct_like(load("d32-k10")), x, c)
    labels = (x[:, None] - c).square().sum(dim=2).argmin(dim=1)
    members = torch.nn.functional.one_hot(labels, 10).double()
    torch.testing.assert_close(found["encoder_cross"], members)
    torch.testing.assert_close(found["encoder_self"], torch.eye(512).double())
    torch.testing.assert_close(found["decoder_cross"], (members / members.sum(dim=0)).T)
    torch.testing.assert_close(found["decoder_self"], torch.eye(10).double())
