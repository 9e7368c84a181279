"""Mutation of a solution: a center is dropped, and a point becomes a center instead."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.numerics.noise import gumbel
from lloydformer.plans.session import Session, Task
from lloydformer.plans.splitting import Drawn, Draws, Errors


@dataclass(frozen=True)
class Mutation(Task):
    """A mutation in one call; a tensor (k, d). Centers are in float64."""

    centers: Tensor
    seed: int
    number: int


def mutated(session: Session, centers: Tensor, seed: int, number: int) -> Tensor:
    """The centers (k, d) with one of them, drawn at random, moved to a point.

    The point is drawn in proportion to weight times squared distance to the other centers. number:
    of the mutation; it enters the noise.
    """
    done = session.run(Mutation(centers, seed, number))
    return _by_folds(session, centers, seed, number) if done is None else done


def _by_folds(session: Session, centers: Tensor, seed: int, number: int) -> Tensor:
    k, rows = len(centers), torch.zeros(1, dtype=torch.long)
    dropped = int(gumbel(seed, number, "dropped", k, rows)[:, 0].argmax())
    others = torch.cat([centers[:dropped], centers[dropped + 1 :]])
    session.fold(Errors(others.to(session.layout.dtype)))
    everywhere = torch.zeros(k - 1, dtype=torch.long, device=centers.device)
    point = session.fold(Drawn(everywhere, 1, Draws(seed, number, 1), "planted"))[2]
    mutant = centers.clone()
    mutant[dropped] = point[0, 0].double()
    return mutant
