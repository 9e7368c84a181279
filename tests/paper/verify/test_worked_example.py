"""The paper's worked example, cell by cell, as its LaTeX prints it.

Once with the activation on the printed scores, once in the trace of a circuit on points.
"""

import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor

import lloydformer as lf
from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.paper.verify import worked_example
from lloydformer.paper.verify.statements import STATEMENTS
from lloydformer.paper.verify.worked_example import MEMBERS, SCORES, WORKED_EXAMPLE, locate_points

SCORES_AS_PRINTED = r"""
-0.1 & -0.2 & -0.7 & -0.2 & -0.8 & -0.3 & -0.8 & -0.2 & -0.1 \\
-0.5 & -0.1 & -0.1 & -0.4 & -0.7 & -0.2 & -0.9 & -0.3 & -0.2 \\
-0.7 & -0.3 & -0.2 & -0.6 & -0.1 & -0.3 & -0.1 & -0.7 & -0.7
"""
ASSIGNMENT_AS_PRINTED = r"""
1 & 0 & 0 & 1 & 0 & 0 & 0 & 1 & 1 \\
0 & 1 & 1 & 0 & 0 & 1 & 0 & 0 & 0 \\
0 & 0 & 0 & 0 & 1 & 0 & 1 & 0 & 0
"""
TRANSPOSE_AS_PRINTED = r"""
1 & 0 & 0 \\ 0 & 1 & 0 \\ 0 & 1 & 0 \\ 1 & 0 & 0 \\ 0 & 0 & 1 \\ 0 & 1 & 0 \\ 0 & 0 & 1 \\
1 & 0 & 0 \\ 1 & 0 & 0
"""
WEIGHTS_AS_PRINTED = r"""
\nicefrac{1}{4} & 0 & 0 \\ 0 & \nicefrac{1}{3} & 0 \\ 0 & \nicefrac{1}{3} & 0 \\
\nicefrac{1}{4} & 0 & 0 \\ 0 & 0 & \nicefrac{1}{2} \\ 0 & \nicefrac{1}{3} & 0 \\
0 & 0 & \nicefrac{1}{2} \\ \nicefrac{1}{4} & 0 & 0 \\ \nicefrac{1}{4} & 0 & 0
"""


def matrix(latex: str) -> Tensor:
    """The entries of a LaTeX array."""
    plain = re.sub(r"\\nicefrac{(\d)}{(\d)}", r"\1/\2", latex)
    rows = [
        [float(Fraction(cell.strip())) for cell in row.split("&")] for row in plain.split(r"\\")
    ]
    return torch.tensor(rows, dtype=torch.float64)


def limit(scores: Tensor) -> Tensor:
    """Limiting soft-max of each column, as the paper writes it."""
    return LimitingSoftmax()(scores.mT).mT


@pytest.fixture(scope="module")
def trace() -> lf.Trace:
    points, centers = locate_points()
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=3, n_clusters=3)
    return circuit(points, centers, n_layers=1, names_filter="*_cross.*")


def test_eq_clus_assign_ex_pre_lsa(trace):
    printed = matrix(SCORES_AS_PRINTED)
    assert printed.shape == (3, 9)
    assert torch.equal(SCORES, printed)
    assert (trace["layers.0.encoder_cross.scores"].mT - printed).abs().max() < 1e-15


def test_eq_clus_assign_ex_post_lsa(trace):
    printed = matrix(ASSIGNMENT_AS_PRINTED)
    assert torch.equal(limit(matrix(SCORES_AS_PRINTED)), printed)
    assert torch.equal(trace["layers.0.encoder_cross.attention"].mT, printed)
    columns = [printed[j].nonzero().ravel() + 1 for j in range(3)]
    assert [c.tolist() for c in columns] == [
        [1, 4, 8, 9],
        [2, 3, 6],
        [5, 7],
    ]  # the sentence after it
    assert [[i + 1 for i in rows] for rows in MEMBERS] == [c.tolist() for c in columns]


def test_eq_clus_center_lsa(trace):
    transpose, weights = matrix(TRANSPOSE_AS_PRINTED), matrix(WEIGHTS_AS_PRINTED)
    assert torch.equal(matrix(ASSIGNMENT_AS_PRINTED).mT, transpose)
    assert torch.equal(limit(transpose), weights)
    assert torch.equal(trace["layers.0.decoder_cross.scores"].mT, transpose)
    assert torch.equal(trace["layers.0.decoder_cross.attention"].mT, weights)


def test_eq_clus_center_comp(trace):
    x = locate_points()[0]
    printed = torch.stack(
        [
            (x[0] + x[3] + x[7] + x[8]) / 4,
            (x[1] + x[2] + x[5]) / 3,
            (x[4] + x[6]) / 2,
        ]
    )
    assert torch.allclose(x.mT @ matrix(WEIGHTS_AS_PRINTED), printed.mT, rtol=0, atol=1e-15)
    assert torch.allclose(trace.centers[-1], printed, rtol=0, atol=1e-15)


def test_the_four_labels_are_among_the_statements():
    findings = [statement(np.random.default_rng(0)) for statement in WORKED_EXAMPLE]
    assert [finding.label for finding in findings] == [
        "eq:clus-assign-ex-pre-lsa",
        "eq:clus-assign-ex-post-lsa",
        "eq:clus-center-lsa",
        "eq:clus-center-comp",
    ]
    assert all(finding.holds for finding in findings)
    assert set(WORKED_EXAMPLE) <= set(STATEMENTS)


@pytest.mark.parametrize("number", range(4))
def test_other_points_are_noticed(number, monkeypatch):
    points, centers = locate_points()
    points[1], points[4] = points[4].clone(), points[1].clone()
    monkeypatch.setattr(worked_example, "locate_points", lambda: (points, centers))
    assert not WORKED_EXAMPLE[number](np.random.default_rng(0)).holds
