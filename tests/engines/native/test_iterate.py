"""Whole loops in one call: where the stop rule fired, and calls that go on from the last one."""

import numpy as np
import pytest

from lloydformer.engines import instruction_set
from lloydformer.engines.native.installed import kernels

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
N, D, K = 3000, 3, 12
POINTS = np.random.default_rng(0).normal(size=(N, D))


class Loop:
    """A session with its state; `run` goes on from where the last call ended."""

    def __init__(self) -> None:
        self.session = kernels().Folds(
            POINTS, None, None, None, None, False, 100.0, False, 1, 1 << 40, 512
        )
        self.centers, self.history = POINTS[:K].copy(), []
        self.labels = np.zeros(N, dtype=np.int32)
        self.previous = np.full(N, np.iinfo(np.int32).min, dtype=np.int32)

    def run(self, max_iter: int, tolerance: float = 0.0) -> tuple[int, bool]:
        history = np.zeros(max_iter)
        count, settled = self.session.run(
            "lloyd_iterations", centers=self.centers, labels=self.labels, previous=self.previous,
            fresh=not self.history, tolerance=tolerance, history=history,
        )  # fmt: skip
        self.history += history[:count].tolist()
        return count, settled


def test_the_stop_rule_is_told_from_the_limit():
    count, settled = Loop().run(1000)
    assert settled
    assert count < 1000
    assert Loop().run(count) == (count, True)
    assert Loop().run(count - 1) == (count - 1, False)
    assert Loop().run(1000, tolerance=1e9) == (1, True)


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_several_calls_give_the_bits_of_one(at_once):
    whole, parts = Loop(), Loop()
    count, _ = whole.run(1000)
    while not parts.run(at_once)[1]:
        pass
    assert len(parts.history) == count
    assert parts.history == whole.history
    np.testing.assert_array_equal(parts.centers, whole.centers)
    np.testing.assert_array_equal(parts.labels, whole.labels)


def test_more_clusters_than_points_are_refused():
    """There is no point for every empty cluster, and refilling would read past the last one."""
    points = np.arange(3.0)[:, None]
    session = kernels().Folds(points, None, None, None, None, False, 9.0, False, 1, 0, 512)
    labels, previous = np.zeros(3, dtype=np.int32), np.full(3, -1, dtype=np.int32)
    with pytest.raises(ValueError, match="centers: found 4 for 3 points; pass at most one"):
        session.run(
            "lloyd_iterations", centers=np.full((4, 1), 9.0), labels=labels, previous=previous,
            fresh=True, tolerance=0.0, history=np.zeros(5),
        )  # fmt: skip
    with pytest.raises(ValueError, match="centers: found 4 for 3 points"):
        kernels().solve(
            points[None], None, None, 0.0, 5, False, np.full((1, 4, 1), 9.0), labels[None],
            np.zeros(1), np.zeros(1, dtype=np.int64), 2,
        )  # fmt: skip


def test_a_seed_without_a_first_one_is_refused():
    """Labels would name seeds that the kernel does not know."""
    points = np.arange(3.0)[:, None]
    session = kernels().Folds(points, None, None, None, None, False, 9.0, False, 1, 0, 512)
    with pytest.raises(ValueError, match="first: pass True: there is no seed yet"):
        session.run(
            "new_seed", seed=np.zeros(1), first=False, labels=np.zeros(3, dtype=np.int32),
            distances=np.zeros(3), masses=np.zeros(1),
        )  # fmt: skip
