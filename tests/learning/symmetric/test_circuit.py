"""Three versions of the learned layer agree: fast, literal circuit, and plain loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.learning.symmetric.circuit import LearnedModulation
from lloydformer.learning.symmetric.layer import INVARIANTS, RANGES, Frame
from lloydformer.learning.symmetric.model import load_symmetric
from lloydformer.learning.symmetric.training import step_times

MODEL = load_symmetric()


def fast(points, centers, n_steps, theta=None):
    """Centers after each step of the fast layer, (s + 1, k, d)."""
    frame = Frame.of(points[None])
    theta = MODEL.weights.double() if theta is None else theta
    now, found = frame.inside(centers[None]).unsqueeze(1), [centers]
    for time in step_times(n_steps):
        now = MODEL.layer(theta, frame.inside(points[None]), now, time)
        found.append(frame.outside(now[:, 0])[0])
    return torch.stack(found)


@st.composite
def problems(draw):
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    k, d = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    n = draw(st.integers(max(k, 2), 60))
    shift, scale = draw(st.floats(-100, 100)), 10 ** draw(st.floats(-2, 2))
    points = scale * torch.randn(n, d, generator=g, dtype=torch.float64) + shift
    return points, points[torch.randperm(n, generator=g)[:k]]


@settings(max_examples=8, deadline=None)
@given(problems(), st.integers(1, 4))
def test_the_circuit_is_the_fast_layer(problem, n_steps):
    points, centers = problem
    (_, d), k = points.shape, len(centers)
    found = MODEL.circuit(d, k)(points, centers, n_steps).centers
    wanted, spread = fast(points, centers, n_steps), Frame.of(points[None]).unit.item()
    assert (found - wanted).abs().max() / spread < 1e-9


def test_problems_of_a_batch_are_independent():
    g = torch.Generator().manual_seed(0)
    points = torch.rand(3, 30, 2, generator=g, dtype=torch.float64)
    circuit = MODEL.circuit(2, 4)
    together = circuit(points, points[:, :4], 3, names_filter="layers.2.numbers.*")
    alone = circuit(points[1], points[1, :4], 3, names_filter="layers.2.numbers.*")
    assert torch.allclose(together.centers[1], alone.centers, atol=1e-12)
    for name, numbers in alone.kept.items():
        assert torch.allclose(together[name][1], numbers, atol=1e-9)


def test_gradients_are_those_of_the_fast_layer():
    g = torch.Generator().manual_seed(1)
    points = torch.randn(40, 3, generator=g, dtype=torch.float64)
    theta = MODEL.weights.double().requires_grad_()
    fast(points, points[:5], 2, theta)[-1].square().sum().backward()
    circuit = MODEL.circuit(3, 5)
    numbers = circuit.layers[0].numbers
    numbers.weights.requires_grad_()
    circuit(points, points[:5], 2).centers[-1].square().sum().backward()
    assert torch.allclose(numbers.weights.grad.flatten(), theta.grad[0], rtol=1e-6, atol=1e-9)
    assert theta.grad.abs().max() > 0.1


def plain_step(x, c, time):
    """One step as docs/symmetric.md writes it, center by center, in the frame of the points."""
    n, k = len(x), len(c)
    squares = [[sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for q in c] for p in x]
    ranked = [sorted(row) for row in squares]
    own = [row.index(min(row)) for row in squares]
    r, s = [row[0] for row in ranked], [row[min(1, k - 1)] for row in ranked]
    unit = sum(r) / n + 1e-6
    raw = {
        "cost": math.log(unit),
        "clusters": math.log(k / 10),
        "margin": math.log((sum(s) / n + 1e-6) / unit),
        "gap": math.log((sum(b - a for a, b in zip(r, s, strict=True)) / n + 1e-6) / unit),
        "time": time,
        "tail": math.log(sum(sum(a * a for a in p) ** 2 for p in x) / n),
    }
    return np.array([_moved(x, c, j, squares, r, s, own, unit, raw) for j in range(k)])


def _moved(x, c, j, squares, r, s, own, unit, raw):
    n, k = len(x), len(c)
    mine = [i for i in range(n) if own[i] == j]
    cost = sum(r[i] for i in mine)
    raw = {
        **raw,
        "members": math.log(k * len(mine) / n + 0.05),
        "share": math.log(k / n * cost / unit + 0.05),
    }
    z = {"one": 1.0} | {
        name: min(1.0, max(-1.0, (2 * raw[name] - low - high) / (high - low)))
        for name, (low, high) in RANGES.items()
    }

    def number(kind, index, without=()):
        weights = MODEL.card["numbers"][kind][index]  # decimals of numbers in float32
        known = [name for name in INVARIANTS if name not in without]
        return sum(float(np.float32(weights[name])) * z[name] for name in known)

    def soft(scores):
        top = max(scores)
        weights = [math.exp(score - top) for score in scores]
        return [w / sum(weights) for w in weights]

    gammas = [math.exp(number("sharpness", h, ("members", "share"))) for h in range(4)]
    p = [
        [soft([-gamma * square / unit for square in row])[j] for row in squares] for gamma in gammas
    ]

    def log_soft(row, gamma):
        return -gamma * row[j] / unit - math.log(sum(math.exp(-gamma * v / unit) for v in row))

    logs = [[log_soft(row, gamma) for row in squares] for gamma in gammas]
    new = np.array(c[j])
    for g in range(4):
        scores = [
            sum(number("belonging", 4 * g + h) * p[h][i] for h in range(4))
            + number("log_belonging", g) * logs[g][i]
            - number("distance", g) * squares[i][j] / unit
            + number("nearest", g) * math.log(r[i] / unit + 0.01)
            + number("second", g) * math.log(s[i] / unit + 0.01)
            for i in range(n)
        ]
        mean = np.array(soft(scores)) @ np.array(x)
        new = new + number("stride", g) * (mean - np.array(c[j]))
    for a in range(2):
        between = [sum((u - v) ** 2 for u, v in zip(c[j], q, strict=True)) for q in c]
        gamma = math.exp(number("apart_sharpness", a)) / unit
        around = np.array(soft([-gamma * b for b in between])) @ np.array(c)
        new = new + number("apart", a) * (np.array(c[j]) - around)
    return new


@pytest.mark.parametrize(("k", "time"), [(1, 0.0), (2, 1.0), (5, 0.4)])
def test_the_fast_layer_is_the_one_in_docs_symmetric(k, time):
    points = np.random.default_rng(k).normal(size=(25, 3))
    points -= points.mean(axis=0)
    points /= math.sqrt((points**2).sum(axis=1).mean())
    wanted = plain_step(points.tolist(), points[:k].tolist(), time)
    x = torch.tensor(points)[None]
    found = MODEL.layer(MODEL.weights.double(), x, x[:, None, :k], time)[0, 0].numpy()
    assert np.abs(found - wanted).max() < 1e-9


def test_hooks_can_replace_numbers():
    """Without strides and without self-attention, centers stay."""
    g = torch.Generator().manual_seed(2)
    points = torch.randn(30, 2, generator=g, dtype=torch.float64)
    circuit = MODEL.circuit(2, 3)
    numbers = circuit.layers[0].numbers
    for kind in ("stride", "apart", "kept"):
        getattr(numbers, kind).register_forward_hook(lambda m, i, output: torch.zeros_like(output))
    trace = circuit(points, points[:3], 3, names_filter="layers.1.numbers.*")
    assert torch.equal(trace.centers[-1], trace.centers[0])
    assert trace["layers.1.numbers.invariants"].shape == (3, len(INVARIANTS))
    assert trace["layers.1.numbers.belonging"].shape == (3, 16)


def test_only_the_temperatures_of_repulsion_differ_between_centers():
    g = torch.Generator().manual_seed(3)
    points = torch.randn(60, 2, generator=g, dtype=torch.float64)
    kept = MODEL.circuit(2, 4)(points, points[:4], 2, names_filter="layers.1.numbers.*")
    assert kept["layers.1.numbers.sharpness"].shape == (1, 4)  # one row for all centers
    own = kept["layers.1.numbers.apart_sharpness"]
    assert own.shape == (4, 2)
    assert (own.amax(dim=0) > 1.01 * own.amin(dim=0)).all()
    for row in MODEL.card["numbers"]["sharpness"]:
        assert row["members"] == row["share"] == 0


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="weights: found 2; 4 heads and 2 apart need 396"):
        LearnedModulation((0.0, 1.0))
