"""CUDA graphs of training: step and evaluation are captured once and replayed.

A training step is some hundreds of small kernels. Launching them one by one takes longer than
running them.
"""

from collections.abc import Callable

import torch

from lloydformer.learning.trainer import Trainer

_WARM_UPS = 2


class GraphedTrainer:
    """`step` and `evaluate` of a trainer: CUDA graphs where possible, else the plain methods.

    Graphs need a CUDA device, tasks that have the same shape in every step, and a layer that can
    be captured. The capture leaves the state of the trainer unchanged.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.step: Callable[[], None] = trainer.step
        self.evaluate: Callable[[], None] = trainer.evaluate
        regular = trainer.settings.tasks.of_one_shape and trainer.layer.capturable
        if trainer.device.type == "cuda" and regular:
            before = {name: t.clone() for name, t in trainer.state.tensors().items()}
            (self.step,) = capture_graphs(trainer.step)
            (self.evaluate,) = capture_graphs(trainer.evaluate)
            trainer.state.assign(before)


def capture_graphs(*functions: Callable[[], None]) -> list[Callable[[], None]]:
    """Capture each function as a CUDA graph; return the functions that replay them.

    Graphs captured in one call share a memory pool, so no two of them may run at the same time.
    """
    graphs: list[torch.cuda.CUDAGraph] = []
    for function in functions:
        _warm_up(function)
        pool = graphs[0].pool() if graphs else None
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            function()
    return [graph.replay for graph in graphs]


def _warm_up(function: Callable[[], None]) -> None:
    """Run on a side stream, which torch requires before a capture."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            function()
    torch.cuda.current_stream().wait_stream(stream)
