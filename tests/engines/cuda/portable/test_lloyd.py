"""Iterations of the portable kernels against Lloyd's algorithm in float64."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="needs Triton: pip install lloydformer[gpu-test]")

from portable_problems import Sizes, Truth
from triton_interpreter import DEVICE

from lloydformer.engines.cuda.lloyd_state import EMPTY, RUNNING, SETTLED, LloydState
from lloydformer.engines.cuda.points import DevicePoints
from lloydformer.engines.cuda.portable.lloyd import PortableLloyd

WIDE = torch.float64
PROBLEMS = {
    "one point": Sizes(1, 1, 1),
    "one feature": Sizes(65, 1, 2),
    "one center": Sizes(7, 17, 1),
    "sums in registers": Sizes(130, 3, 5),
    "sums in registers, weights": Sizes(130, 12, 5, weighted=True),
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
    state = sizes.state(points, **settings)
    truth = Truth(points, state.centers.cpu().numpy().copy(), sizes.directions)
    return points, state, truth, PortableLloyd(points, state)


PARTS = (
    "centers",
    "rounded",
    "assigned",
    "sums",
    "masses",
    "changed",
    "tolerance",
    "record",
    "status",
)


def snapshot(state: LloydState) -> dict[str, torch.Tensor]:
    return {name: getattr(state, name).clone() for name in PARTS}


def differing(before: dict[str, torch.Tensor], state: LloydState) -> set[str]:
    return {name for name, value in snapshot(state).items() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("sizes", PROBLEMS.values(), ids=PROBLEMS)
def test_iterations_are_those_of_float64(sizes):
    points, state, truth, lloyd = start(sizes)
    if sizes.whole_numbers:
        unlike = np.unique(truth.x, axis=0)[: sizes.k]
        truth.centers = np.resize(unlike, (sizes.k, sizes.d))
        state.begin(torch.from_numpy(truth.centers), 0.0)
    for iteration in range(2):
        objective, shift, changed = truth.step()
        lloyd.step()
        assert state.assigned.tolist() == truth.labels.tolist()
        assert state.sums.tolist() == truth.sums.tolist()
        assert state.masses.tolist() == truth.masses.tolist()
        if min(truth.masses) == 0:
            assert state.status[:2].tolist() == [EMPTY, iteration]
            return
        unit = points.reach**2 * points.heaviest * points.n_rows
        found = state.record[iteration].cpu().numpy() / [unit, unit, 1, 1]
        assert found == pytest.approx([objective / unit, shift / unit, changed, 0], abs=1e-13)
        assert state.centers.cpu().numpy() == pytest.approx(truth.centers, rel=1e-14)
        truth.centers = state.centers.cpu().numpy().copy()
        assert torch.equal(state.rounded, state.centers.to(sizes.dtype))
        settled = changed == 0 or shift <= 0
        assert state.status[:2].tolist() == [SETTLED if settled else RUNNING, iteration + 1]
        if settled:
            return


def test_most_problems_have_no_empty_cluster():
    emptied = []
    for name, sizes in PROBLEMS.items():
        points = sizes.points()
        truth = Truth(points, sizes.state(points).centers.cpu().numpy().copy(), sizes.directions)
        truth.step()
        emptied += [name] if min(truth.masses) == 0 else []
    assert set(emptied) <= {"ties", "ties of many centers", "a center each"}


def test_an_empty_cluster_stops_and_no_center_moves():
    sizes = Sizes(65, 3, 5)
    _, state, _, lloyd = start(sizes)
    centers = state.centers.clone()
    centers[3] = centers[1]  # the first of equal centers gets all points
    state.begin(centers, 0.0)
    before = snapshot(state)
    lloyd.step()
    assert state.status[:2].tolist() == [EMPTY, 0]
    assert state.masses[3].item() == 0
    assert differing(before, state) == {"assigned", "sums", "masses", "changed", "status"}
    stopped = snapshot(state)
    state.rounded.mul_(2)
    lloyd.step()
    assert differing(stopped, state) == {"rounded"}


def test_iterations_settle_and_then_nothing_changes():
    _, state, truth, lloyd = start(Sizes(65, 2, 2))
    n_iter = 0
    while truth.step()[2] > 0:
        n_iter += 1
    for _ in range(n_iter + 1):
        lloyd.step()
    assert state.status[:2].tolist() == [SETTLED, n_iter + 1]
    assert state.record[: n_iter + 2, 2].cpu().ne(0).tolist() == [True] * n_iter + [False] * 2
    settled = snapshot(state)
    lloyd.step()
    assert differing(settled, state) == set()


def test_a_shift_within_the_tolerance_settles():
    for tolerance, status in ((0.0, RUNNING), (1e6, SETTLED)):
        _, state, _, lloyd = start(Sizes(65, 3, 5), tolerance=tolerance)
        lloyd.step()
        assert state.status[:2].tolist() == [status, 1]


@pytest.mark.parametrize("sizes", [Sizes(130, 12, 5, weighted=True), Sizes(130, 40, 33)])
def test_the_same_bits_twice(sizes):
    _, first, _, lloyd = start(sizes)
    _, second, _, again = start(sizes)
    for _ in range(2):
        lloyd.step()
        again.step()
    assert differing(snapshot(first), second) == set()


@pytest.mark.parametrize("sizes", [Sizes(65, 3, 5, weighted=True), Sizes(65, 40, 33)])
def test_assign_leaves_the_centers_and_new_centers_move_the_sums(sizes):
    _, state, truth, lloyd = start(sizes)
    before = snapshot(state)
    lloyd.assign()
    truth.step()
    assert differing(before, state) == {"assigned", "sums", "masses", "changed"}
    truth.centers = truth.x[-sizes.k :].copy()
    state.begin(torch.from_numpy(truth.centers), 0.0)
    lloyd.assign()
    changed = truth.step()[2]
    assert state.changed.tolist() == [changed]
    assert state.assigned.tolist() == truth.labels.tolist()
    assert state.sums.tolist() == truth.sums.tolist()
    assert state.masses.tolist() == truth.masses.tolist()


def test_rows_of_weight_0_get_a_label_and_are_not_counted():
    rows = torch.tensor([[0.0], [1.0], [10.0], [11.0]], device=DEVICE)
    weights = torch.tensor([1.0, 0.0, 0.5, 0.0], dtype=WIDE, device=DEVICE)
    points = DevicePoints(rows, torch.zeros(1, device=DEVICE), weights, 11.0)
    state = LloydState(points, 2)
    state.begin(torch.tensor([[0.0], [9.0]]), 0.0)
    lloyd = PortableLloyd(points, state)
    lloyd.step()
    assert state.assigned.tolist() == [0, 0, 1, 1]
    assert state.record[0].tolist() == [0.5 * 81 - 2 * 5 * 9, 1, 2, 0]
    assert state.centers.tolist() == [[0], [10]]
    lloyd.step()
    assert state.status[:2].tolist() == [SETTLED, 2]


def test_a_direction_without_a_sum_stays():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], device=DEVICE)
    points = DevicePoints(rows, torch.zeros(2, device=DEVICE), None, 1.0)
    state = LloydState(points, 1, directions=True)
    state.begin(torch.tensor([[0.0, 1.0]]), 0.0)
    PortableLloyd(points, state).step()
    assert state.centers.tolist() == [[0, 1]]
    assert state.status[:2].tolist() == [SETTLED, 1]


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("far", [1e6, 1.45e19 / 2**13, 1e25, 1e37])
@pytest.mark.parametrize("k", [1, 17])
def test_centers_out_of_the_range_of_float16(k, far):
    sizes = Sizes(33, 3, k)
    points, state, truth, lloyd = start(sizes)
    assert points.half_unit == 2**13
    truth.centers[0] = far
    state.begin(torch.from_numpy(truth.centers), 0.0)
    lloyd.assign()
    assert state.assigned.tolist() == truth.squares().argmin(1).tolist()


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(1, 1, 1),
        Sizes(130, 17, 5, weighted=True),
        Sizes(65, 70, 33, shift=1e4),
        Sizes(130, 3, 70, WIDE, weighted=True),
    ],
    ids=str,
)
def test_measure(sizes):
    _, state, truth, lloyd = start(sizes)
    state.status.fill_(SETTLED)
    before = snapshot(state)
    distances = torch.empty(sizes.n, dtype=sizes.dtype, device=DEVICE)
    total = lloyd.measure(distances)
    labels = lloyd._arguments["labels"]
    assert differing(before, state) == set()
    squares = truth.squares()
    assert labels.dtype == torch.int32
    assert labels.tolist() == squares.argmin(1).tolist()
    epsilon = torch.finfo(sizes.dtype).eps
    assert distances.cpu().numpy() == pytest.approx(squares.min(1), rel=epsilon)
    assert total.shape == ()
    assert total.item() == pytest.approx((truth.weights * squares.min(1)).sum(), rel=1e-14)


def test_memory_for_a_point():
    sizes = Sizes(130, 40, 5)
    points, _, _, lloyd = start(sizes)
    arrays = [v for v in lloyd._arguments.values() if isinstance(v, torch.Tensor)]
    of_points = [v for v in arrays if len(v) == 130 and v is not points.rows]
    assert sum(v.nbytes for v in of_points) == 130 * (2 * 48 + 20)
