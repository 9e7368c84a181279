"""What CUDA graphs need: a step uses only the device, and changes only the state."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lloydformer.learning import Run, Settings, Tasks
from lloydformer.learning.trainer import Trainer

SETTINGS = {
    "as in the paper": {},
    "without codes": {"codes": None, "clip": 1.0, "schedule": "cosine"},
    "sparse": {"codes": "binary", "activation": "sparsemax", "smoothing": "sparsemax"},
    "unrolled": {"n_unrolled": 2, "smoothing": "exact", "bias": False, "scaled": False},
}
SMALL = {"batch_size": 2, "n_validation": 4}
RUNS = [Run(0), Run(1, 0.2, "cauchy")]


class HostTouched(TorchDispatchMode):
    """Records every operation that reads, creates or waits for a tensor on the host."""

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
    """Device `meta` stands for CUDA: an operation on the host would break a capture."""
    tasks = Tasks(3, 4, 20, weights="random", scales="random", n_components=(2, 5))
    trainer = Trainer(Settings(tasks, **SMALL, **SETTINGS[name]), RUNS, "meta")
    trainer.step()  # as a warm-up does: fills the caches
    with HostTouched() as watch:
        trainer.step()
        trainer.evaluate()
    assert watch.found == []


def test_an_operation_on_the_host_is_recorded():
    with HostTouched() as watch:
        torch.ones(2, device="meta") + torch.ones(2).to("meta")
    assert watch.found != []


def test_steps_change_only_the_state():
    """Training from a restored state gives the same weights, in the same memory."""
    trainer = Trainer(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cpu")
    before = {name: t.clone() for name, t in trainer.state.tensors().items()}
    places = {name: t.data_ptr() for name, t in trainer.state.tensors().items()}

    def weights_after_three():
        for _ in range(3):
            trainer.step()
        trainer.evaluate()
        return trainer.state.weights.clone()

    first = weights_after_three()
    trainer.state.assign(before)
    assert torch.equal(weights_after_three(), first)
    assert {name: t.data_ptr() for name, t in trainer.state.tensors().items()} == places


def test_on_the_cpu_nothing_is_captured():
    trainer = Trainer(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cpu")
    trainer.capture()
    assert (trainer.run_step, trainer.run_evaluation) == (trainer.step, trainer.evaluate)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_graphs_train_like_eager_steps():
    eager, captured = (Trainer(Settings(Tasks(2, 3, 20), **SMALL), RUNS, "cuda") for _ in range(2))
    captured.capture()
    assert captured.run_step != captured.step
    for _ in range(20):
        eager.step()
        captured.run_step()
    eager.evaluate()
    captured.run_evaluation()
    torch.testing.assert_close(captured.state.weights, eager.state.weights, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(captured.measured, eager.measured, rtol=1e-4, atol=1e-4)
