"""When the host looks at iterations on a GPU, and what Ctrl-C keeps; no GPU is needed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.tasks import _Run
from lloydformer.engines.cuda.work import (
    EMPTY,
    GOING,
    NOT_LANDED,
    PAUSED,
    RECORDS,
    SETTLED,
    Report,
    Work,
)
from lloydformer.plans.means import Iterations


class Device:
    """Plays kernels and memory: `settles` iterations until the stop rule holds."""

    at_once = 32

    def __init__(self, settles, empty_at=None, interrupt=None):
        self.settles, self.empty_at, self.interrupt = settles, empty_at, interrupt
        self.done, self.seen, self.status, self.ended = 0, 0, GOING, NOT_LANDED
        self.launched = 0

    def begin(self, centers, tolerance):
        pass

    def step(self):
        self.launched += 1
        if self.interrupt == self.launched:
            raise KeyboardInterrupt
        if self.status != GOING:
            return
        if self.done == self.empty_at:
            self.status, self.empty_at = EMPTY, None
            return
        self.done += 1
        self.status = SETTLED if self.done == self.settles else GOING

    def land(self, *, last):
        if self.status == SETTLED or (self.status == GOING and last):
            self.ended, self.status = self.status, GOING
        elif self.status == GOING:
            self.status = PAUSED
        if self.interrupt == "land":
            raise KeyboardInterrupt

    def refill(self, masses, distances):
        self.done += 1
        self.status = SETTLED if self.done == self.settles else GOING
        return True

    def resume(self):
        assert self.status == PAUSED
        self.status = GOING

    def report(self):
        if self.interrupt == "report":
            self.interrupt = None
            raise KeyboardInterrupt
        new = range(self.seen, self.done)
        assert len(new) <= RECORDS
        self.seen = self.done
        return Report(self.status, self.ended, [float(i) for i in new], 7.0, np.array([3, 4]))

    def assign(self):
        raise NotImplementedError

    measure = assign


class Memory(Work):
    """The work of a played device."""

    def __init__(self, device):
        self.device, self.centers, self.changed = device, torch.zeros(2, 1), torch.zeros(1)

    def report(self):
        return self.device.report()

    def resume(self):
        self.device.resume()

    def hand_over(self):
        return torch.zeros(7, dtype=torch.int32)


def run(device, max_iter):
    points = PointsOnGpu.__new__(PointsOnGpu)
    points.blocks = SimpleNamespace(directions=False, scaling=None)
    points.state = SimpleNamespace(column=lambda name: None, set_labels=lambda labels: None)
    points.exact, points.points = True, SimpleNamespace(mass_unit=1.0)
    task = Iterations(torch.zeros(2, 1, dtype=torch.float64), 0.0, max_iter, 0.0, 1.0)
    return _Run(points, Memory(device), device, task).result()


@pytest.mark.parametrize("settles", [1, 2, 7, 8, 9, 63, 64, 200, 10_000])
@pytest.mark.parametrize("max_iter", [1, 2, 20, 32, 33, 64, 300])
@pytest.mark.parametrize("empty_at", [None, 0, 1, 19, 31])
def test_iterations_are_counted_once(settles, max_iter, empty_at):
    ran = run(Device(settles, empty_at), max_iter)
    assert ran.history == [float(i) for i in range(min(settles, max_iter))]
    assert ran.settled == (settles <= max_iter)
    assert not ran.empty
    assert ran.final is not None
    assert (ran.final.inertia, ran.final.masses) == (7.0, (3.0, 4.0))


@pytest.mark.parametrize("interrupt", [1, 5, "land", "report"])
def test_ctrl_c_keeps_the_iterations_that_are_done(interrupt):
    device = Device(100, interrupt=interrupt)
    ran = run(device, 20)
    assert ran.interrupted
    assert ran.final is None  # labels may be missing: the loop asks for them again
    assert not ran.settled
    assert len(ran.history) == device.done
