"""What a graph on CUDA needs: that a step touches nothing but the device and the state."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lloydformer.learning import Run, Settings, Tasks
from lloydformer.learning.captured import Captured
from lloydformer.learning.program import stack

SETTINGS = {
    "as in the paper": {},
    "without scratch dimensions": {"codes": None, "clip": 1.0, "schedule": "cosine"},
    "sparse": {"codes": "binary", "activation": "sparsemax", "smoothing": "sparsemax"},
    "unrolled": {"n_unrolled": 2, "smoothing": "exact", "bias": False, "scaled": False},
}
SMALL = {"batch_size": 2, "n_validation": 4}
RUNS = [Run(0), Run(1, 0.2, "cauchy")]


class HostTouched(TorchDispatchMode):
    """Notes every operation that reads, makes or waits for something outside of the device."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        tensors = [t for t in (*args, result) if isinstance(t, torch.Tensor)]
        if "_local_scalar" in str(function) or any(t.device.type == "cpu" for t in tensors):
            self.found.append(str(function))
        return result


@pytest.mark.parametrize("name", SETTINGS)
def test_a_step_and_an_evaluation_stay_on_the_device(name):
    """The device `meta` stands for any: what meets the host there would break a capture."""
    tasks = Tasks(3, 4, 20, weights="random", scales="random", n_components=(2, 5))
    program = stack(Settings(tasks, **SMALL, **SETTINGS[name]), RUNS, "meta")
    program.step()  # as warm-ups do: what is kept is made
    with HostTouched() as watch:
        program.step()
        program.evaluate()
    assert watch.found == []


def test_a_touch_of_the_host_is_noticed():
    with HostTouched() as watch:
        torch.ones(2, device="meta") + torch.ones(2).to("meta")
    assert watch.found != []


def test_only_the_state_changes():
    """So that a state put back goes on as if nothing had happened."""
    program = stack(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cpu")
    before = {name: t.clone() for name, t in program.state.tensors().items()}
    places = {name: t.data_ptr() for name, t in program.state.tensors().items()}

    def weights_after_three():
        for _ in range(3):
            program.step()
        program.evaluate()
        return program.state.weights.clone()

    first = weights_after_three()
    program.state.assign(before)
    assert torch.equal(weights_after_three(), first)
    assert {name: t.data_ptr() for name, t in program.state.tensors().items()} == places


def test_on_the_cpu_nothing_is_captured():
    program = stack(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cpu")
    work = Captured(program)
    assert (work.step, work.evaluate) == (program.step, program.evaluate)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_captured_program_trains_as_an_eager_one():
    eager, captured = (stack(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cuda") for _ in range(2))
    work = Captured(captured)
    for _ in range(20):
        eager.step()
        work.step()
    eager.evaluate()
    work.evaluate()
    torch.testing.assert_close(captured.state.weights, eager.state.weights, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(captured.measured, eager.measured, rtol=1e-4, atol=1e-4)
