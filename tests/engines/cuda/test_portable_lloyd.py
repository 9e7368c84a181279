"""Iterations of the portable kernels against Lloyd's algorithm in float64."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="needs Triton: pip install lloydformer[gpu-test]")

from portable_problems import Sizes, Truth

from lloydformer.engines.cuda.portable.lloyd import PortableLloyd
from lloydformer.engines.cuda.work import EMPTY, GOING, SETTLED

WIDE = torch.float64
PROBLEMS = {
    "one point": Sizes(1, 1, 1),
    "one feature": Sizes(65, 1, 2),
    "one center": Sizes(7, 17, 1),
    "sums in registers": Sizes(130, 3, 5),
    "sums in registers, weights": Sizes(130, 17, 5, weighted=True),
    "many centers": Sizes(130, 40, 33),
    "chunks of features": Sizes(65, 70, 33, weighted=True),
    "a center each": Sizes(130, 3, 130),
    "ties": Sizes(130, 3, 5, whole_numbers=True),
    "ties of many centers": Sizes(65, 17, 33, whole_numbers=True),
    "far from zero": Sizes(65, 17, 5, shift=1e4),
    "tiny": Sizes(65, 3, 5, scale=1e-20),
    "huge": Sizes(65, 17, 5, scale=1e20),
    "float64": Sizes(65, 40, 5, WIDE, weighted=True),
    "float64, far from zero": Sizes(65, 3, 5, WIDE, shift=1e4),
    "directions": Sizes(65, 17, 5, directions=True, weighted=True),
}


def start(sizes: Sizes, **settings):
    points = sizes.points()
    work = sizes.work(points, **settings)
    truth = Truth(points, work.centers.cpu().numpy().copy(), sizes.directions)
    return points, work, truth, PortableLloyd(points, work)


@pytest.mark.parametrize("sizes", PROBLEMS.values(), ids=PROBLEMS)
def test_iterations_are_those_of_float64(sizes):
    points, work, truth, lloyd = start(sizes)
    if sizes.whole_numbers:
        differing = np.unique(truth.x, axis=0)[: sizes.k]
        truth.centers = np.resize(differing, (sizes.k, sizes.d))
        work.begin(torch.from_numpy(truth.centers), 0.0)
    for iteration in range(2):
        objective, shift, changed = truth.step()
        lloyd.step()
        assert work.assigned.tolist() == truth.labels.tolist()
        assert work.sums.tolist() == truth.sums.tolist()
        assert work.masses.tolist() == truth.masses.tolist()
        if min(truth.masses) == 0:
            assert work.status.tolist() == [EMPTY, iteration]
            return
        unit = points.reach**2 * points.heaviest * points.n_rows
        found = work.record[iteration].cpu().numpy() / [unit, unit, 1, 1]
        assert found == pytest.approx([objective / unit, shift / unit, changed, 0], abs=1e-13)
        assert work.centers.cpu().numpy() == pytest.approx(truth.centers, rel=1e-14)
        truth.centers = work.centers.cpu().numpy().copy()
        assert torch.equal(work.seen, work.centers.to(sizes.dtype))
        settled = changed == 0 or shift <= 0
        assert work.status.tolist() == [SETTLED if settled else GOING, iteration + 1]
        if settled:
            return
