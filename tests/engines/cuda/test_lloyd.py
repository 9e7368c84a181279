"""When the host looks at iterations on a GPU, and what Ctrl-C keeps; no GPU is needed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydformer.engines.cuda.lloyd import LloydRun
from lloydformer.engines.cuda.lloyd_state import (
    EMPTY,
    NOT_FINAL,
    PAUSED,
    RECORD_LENGTH,
    RUNNING,
    SETTLED,
    LloydReport,
    LloydState,
)
from lloydformer.engines.cuda.point_arrays import CudaPointArrays
from lloydformer.plans.means import LloydIterations


class Device:
    """Plays kernels and memory: `settles` iterations until the stop rule holds."""

    first_batch = 32

    def __init__(self, settles, empty_at=None, interrupt=None):
        self.settles, self.empty_at, self.interrupt = settles, empty_at, interrupt
        self.done, self.seen, self.status, self.final = 0, 0, RUNNING, NOT_FINAL
        self.launched = 0

    def begin(self, centers, tolerance):
        pass

    def step(self):
        self.launched += 1
        if self.interrupt == self.launched:
            raise KeyboardInterrupt
        if self.status != RUNNING:
            return
        if self.done == self.empty_at:
            self.status, self.empty_at = EMPTY, None
            return
        self.done += 1
        self.status = SETTLED if self.done == self.settles else RUNNING

    def assign_final(self, *, last):
        if self.status == SETTLED or (self.status == RUNNING and last):
            self.final, self.status = self.status, RUNNING
        elif self.status == RUNNING:
            self.status = PAUSED
        if self.interrupt == "assign_final":
            raise KeyboardInterrupt

    def fill_empty(self, masses, distances):
        self.done += 1
        self.status = SETTLED if self.done == self.settles else RUNNING
        return True

    def resume(self):
        assert self.status == PAUSED
        self.status = RUNNING

    def read_report(self):
        if self.interrupt == "report":
            self.interrupt = None
            raise KeyboardInterrupt
        new = range(self.seen, self.done)
        assert len(new) <= RECORD_LENGTH
        self.seen = self.done
        return LloydReport(self.status, self.final, [float(i) for i in new], 7.0, np.array([3, 4]))

    def assign(self):
        raise NotImplementedError

    measure = assign


class Memory(LloydState):
    """The work of a played device."""

    def __init__(self, device):
        self.device, self.centers, self.changed = device, torch.zeros(2, 1), torch.zeros(1)

    def read_report(self):
        return self.device.read_report()

    def resume(self):
        self.device.resume()

    def release_labels(self):
        return torch.zeros(7, dtype=torch.int32)


def run(device, max_iter):
    arrays = CudaPointArrays.__new__(CudaPointArrays)
    arrays.blocks = SimpleNamespace(directions=False, scaling=None)
    arrays.state = SimpleNamespace(column=lambda name: None, set_labels=lambda labels: None)
    arrays.sums_are_precise, arrays.points = True, SimpleNamespace(mass_unit=1.0)
    task = LloydIterations(torch.zeros(2, 1, dtype=torch.float64), 0.0, max_iter, 0.0, 1.0)
    device.state = Memory(device)
    return LloydRun(arrays, device, task).run()


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


@pytest.mark.parametrize("interrupt", [1, 5, "assign_final", "report"])
def test_ctrl_c_keeps_the_iterations_that_are_done(interrupt):
    device = Device(100, interrupt=interrupt)
    ran = run(device, 20)
    assert ran.interrupted
    assert ran.final is None  # labels may be missing: the loop asks for them again
    assert not ran.settled
    assert len(ran.history) == device.done
