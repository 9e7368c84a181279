"""A program on CUDA, its step and its evaluation each captured as one graph and replayed.

A step is some hundreds of small kernels: launched one by one they would take longer to launch
than to run.
"""

from collections.abc import Callable

import torch

from lloydformer.learning.program import Program

_WARM_UPS = 2


class Captured:
    """`step` and `evaluate` of a program, replayed where that is possible."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.step: Callable[[], None] = program.step
        self.evaluate: Callable[[], None] = program.evaluate
        if program.device.type == "cuda" and program.settings.tasks.of_one_shape:
            before = {name: t.clone() for name, t in program.state.tensors().items()}
            (self.step,) = captured(program.step)
            (self.evaluate,) = captured(program.evaluate)
            program.state.assign(before)


def captured(*works: Callable[[], None]) -> list[Callable[[], None]]:
    """Warmed up beside the main stream, as captures ask for, then recorded.

    Works that are captured together share their memory: none is replayed while another runs.
    """
    graphs: list[torch.cuda.CUDAGraph] = []
    for work in works:
        _warm_up(work)
        pool = graphs[0].pool() if graphs else None
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            work()
    return [graph.replay for graph in graphs]


def _warm_up(work: Callable[[], None]) -> None:
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            work()
    torch.cuda.current_stream().wait_stream(stream)
