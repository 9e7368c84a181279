"""Methods that find circuits are tested on small networks whose answer is worked by hand."""

from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import lloydformer as lf
from lloydformer.interp import finders

METHODS = ("activation patching", "edge attribution", "integrated gradients", "ACDC")


class Toy:
    """A function of strengths in place of a network."""

    def __init__(self, function, n_edges, n_pairs=1):
        self.metric, self.n_edges, self.n_pairs = function, n_edges, n_pairs
        self.order = range(n_edges)


def multiply_and_add(strengths):
    """A network with clean inputs 1, 1, 1 and corrupted ones 0: out = x0 x1 + 0 x2.

    Edges: x0 -> product, x1 -> product, x2 -> decoy, product -> out, decoy -> out.
    """
    a, b, c, d, e = strengths.unbind(-1)
    product, decoy = (1 - a) * (1 - b), 1 - c
    return product + d * (0 - product) + 0 * (decoy + e * (0 - decoy))


def not_a_number(strengths):
    """The last edge breaks the network."""
    return torch.where(strengths[..., -1] > 0.9, torch.nan, 1 - 0.5 * strengths[..., 0])


# For each network: its function, its edges, and the scores of the four methods.
TOYS = {
    # all methods are exact where the metric is linear; ACDC keeps 0.05 at 1e-6 to 1e-2
    "linear": (
        lambda s: 1 - s @ torch.tensor([0.5, 0.05, 0.0]).double(),
        3,
        ([0.5, 0.05, 0], [0.5, 0.05, 0], [0.5, 0.05, 0], [6 / 7, 5 / 7, 0]),
    ),
    # together above the threshold 0.1, but ACDC compares each with the network as it is by then
    "crowd": (
        lambda s: 1 - 0.06 * s.sum(dim=-1),
        3,
        ([0.06] * 3, [0.06] * 3, [0.06] * 3, [5 / 7] * 3),
    ),
    # either edge is enough: one alone changes nothing, and ACDC must keep one of them
    "or": (
        lambda s: 1 - s[..., 0] * s[..., 1],
        2,
        ([0, 0], [0, 0], [0.5, 0.5], [0, 1]),
    ),
    # both are needed
    "and": (
        lambda s: (1 - s[..., 0]) * (1 - s[..., 1]),
        2,
        ([1, 1], [1, 1], [0.5, 0.5], [1, 1]),
    ),
    # a hard choice: no derivative anywhere
    "step": (
        lambda s: (s[..., 0] < 0.5).double() + 0 * s[..., 1],
        2,
        ([1, 0], [0, 0], [0, 0], [1, 0]),
    ),
    # a saturated one: no derivative at the clean run. Midpoints of ten parts give 1 - 1/400
    "square": (lambda s: 1 - s[..., 0] ** 3, 1, ([1], [0], [0.9975], [1])),
    "network": (
        multiply_and_add,
        5,
        ([1, 1, 0, 1, 0], [1, 1, 0, 1, 0], [1 / 3, 1 / 3, 0, 1 / 3, 0], [1, 1, 0, 1, 0]),
    ),
    "broken": (not_a_number, 2, ([0.5, 1], [0.5, 0], [0.45, 0], [6 / 7, 1])),
}


def check_toys(module):
    """Compare every score with the one worked by hand."""
    for name, (function, n_edges, wanted) in TOYS.items():
        for method, scores in zip(METHODS, wanted, strict=True):
            found = module.score_edges(Toy(function, n_edges), method)
            here = f"{name}, {method}"
            np.testing.assert_allclose(found.tolist(), scores, atol=0.003, err_msg=here)
    # effects of opposite sign in two pairs do not cancel
    signs = torch.tensor([1.0, -1.0]).double()
    toy = Toy(lambda s: 1 - signs * s[..., 0], 1, n_pairs=2)
    for method in METHODS[:3]:
        assert module.score_edges(toy, method).tolist() == pytest.approx([1.0])
    # many edges, in several calls
    weights = torch.linspace(0, 1, 700).double()
    found = module.score_edges(Toy(lambda s: 1 - s @ weights, 700), "activation patching")
    np.testing.assert_allclose(found, weights, atol=1e-12)
    # rounding is no effect
    toy = Toy(lambda s: 1 - 1e-9 * s[..., 0], 1)
    assert all(module.score_edges(toy, method).tolist() == [0] for method in METHODS)
    assert module.area_under_curve(torch.tensor([0.9, 0.5, 0.5, 0.1]), [True, True, False, False])


def test_scores_are_those_worked_by_hand():
    check_toys(finders)


MUTANTS = {
    "half of the strength": ("torch.eye(problem.n_edges", "0.5 * torch.eye(problem.n_edges"),
    "signs cancel": ("_slopes(problem, clean)[0].abs().mean", "_slopes(problem, clean)[0].mean"),
    "slope of the corrupted run": ("clean = torch.zeros(1", "clean = torch.ones(1"),
    "path from 0": ("+ 0.5) / STEPS", ") / STEPS"),
    "half of the path": ("+ 0.5) / STEPS", "+ 0.5) / STEPS / 2"),
    "a broken network counts as whole": ("nan_to_num(1.0)", "nan_to_num(0.0)"),
    "a broken network is accepted": ("nan_to_num(torch.inf)", "nan_to_num(0.0)"),
    "ACDC keeps what does not matter": ("change < limits", "change > limits"),
    "ACDC compares with the clean run": ("torch.where(goes, value, metric)", "metric"),
    "ACDC forgets": ("removed = torch.where(goes[..., None], tried, removed)", "removed = tried"),
    "no floor": ("scores < FLOOR", "scores < 0"),
    "parts in another order": ("torch.cat([problem", "torch.cat([*reversed([problem"),
}


@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_planted_mistake_is_found(mistake):
    old, new = MUTANTS[mistake]
    text = Path(finders.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1
    text = text.replace(old, new)
    if mistake == "parts in another order":
        text = text.replace("split(strengths, size)])", "split(strengths, size)])])")
    module = module_from_spec(spec_from_loader("mutant", loader=None))
    exec(compile(text, "mutant", "exec"), vars(module))
    with pytest.raises(AssertionError):
        check_toys(module)


def test_the_area_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, inside = rng.integers(0, 5, size=30) / 4, rng.random(30) < 0.4
        found = lf.interp.area_under_curve(torch.from_numpy(scores), inside.tolist())
        assert found == pytest.approx(roc_auc_score(inside, scores))


def test_an_area_without_other_edges_is_none():
    assert lf.interp.area_under_curve(torch.ones(2), [True, True]) is None
    assert lf.interp.area_under_curve(torch.ones(2), [False, False]) is None


def test_an_unknown_method():
    with pytest.raises(ValueError, match="method: found 'x'; there are 'activation patching'"):
        lf.interp.score_edges(Toy(lambda s: s[..., 0], 1), "x")
