"""What LearnedKMeans runs from each start: learned steps and then Lloyd's, and Lloyd's alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lloydformer.data.scaling import scaling_of
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained
from lloydformer.learning.symmetric.model import SymmetricModel
from lloydformer.learning.symmetric.plan import plan_of
from lloydformer.plans.session import Session
from lloydformer.plans.symmetric import Spread, spread_of
from lloydformer.solving.descent import Callback, Descent, Outcome, Progress

Rough = Callable[[Descent, int, Tensor], Outcome]
"""Learned steps from a start with this number; returns centers and the objective of each step."""


@dataclass(frozen=True)
class Learned:
    """`n_steps` of a learned layer, then at most `polish` iterations of Lloyd's algorithm.

    `beside_lloyd`: also run n_steps + polish iterations of Lloyd's algorithm from the same start,
    and keep the better result.
    """

    rough: Rough
    n_steps: int
    polish: int
    beside_lloyd: bool

    def __call__(self, descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
        rough = self.rough(descent, number, centers) if self.n_steps else None
        if self.polish or rough is None:
            later = replace(descent, callback=_later(descent.callback, self.n_steps))
            begun = centers if rough is None else rough.centers
            yield _joined(rough, _lloyd(later, number, begun, self.polish))
        else:
            yield rough
        if self.beside_lloyd:
            quiet = replace(descent, callback=None)
            yield _lloyd(quiet, number, centers, self.n_steps + self.polish)


def _lloyd(descent: Descent, number: int, centers: Tensor, max_iter: int) -> Outcome:
    rules = replace(descent.rules, max_iter=max_iter)
    return replace(descent, rules=rules).from_start(number, centers)


def _later(callback: Callback | None, n_steps: int) -> Callback | None:
    """The same callback, with `n_steps` added to the iteration."""
    if callback is None:
        return None

    def heard(progress: Progress) -> None:
        callback(replace(progress, iteration=progress.iteration + n_steps))

    return heard


def _joined(first: Outcome | None, then: Outcome) -> Outcome:
    """The second outcome, with the history of both."""
    return then if first is None else replace(then, history=(*first.history[:-1], *then.history))


def symmetric_steps(model: SymmetricModel, n_steps: int) -> Rough:
    """Steps of the symmetric layer, as a plan on the same engine as Lloyd's iterations."""

    known: list[Spread] = []  # the same from every start

    def steps(descent: Descent, number: int, centers: Tensor) -> Outcome:
        if not known:
            known.append(spread_of(descent.session))
        plan = replace(plan_of(model, n_steps), spread=known[0])
        rules = replace(descent.rules, max_iter=n_steps)
        return replace(descent, plan=plan, rules=rules).from_start(number, centers)

    return steps


def dense_steps(trained: Pretrained, session: Session, n_steps: int) -> Rough:
    """Steps of a layer for one d and k, with columns scaled to [0, 1]."""
    layout = session.layout
    points = session.gather(torch.arange(layout.n_rows, device=layout.device))
    scaling = scaling_of(points.cpu(), "minmax")
    weights, scaled = trained.weights.to(points), scaling.apply(points)[None, None]
    layer = trained.layer

    @torch.no_grad()
    def steps(descent: Descent, number: int, centers: Tensor) -> Outcome:
        history, now = list[float](), centers.double()
        for step in range(n_steps):
            history.append(float(smoothed_objective(points, now.to(points), smoothing="exact")))
            seen = scaling.apply(now.to(points))[None, None]
            moved = scaling.undo(layer(weights, scaled, seen)[0, 0].double())
            if descent.callback is not None:
                shift = (moved - now).square().sum().item()
                descent.callback(Progress(number, step, history[-1], shift))
            now = moved
        last = _lloyd(replace(descent, callback=None), number, now, 0)
        return replace(last, history=(*history, *last.history))

    return steps
