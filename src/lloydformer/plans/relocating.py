"""One relocation: clusters with large error are split, and the cheapest centers are removed."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lloydformer.numerics.means import means_or
from lloydformer.plans.assign import Nearest
from lloydformer.plans.pruning import prune
from lloydformer.plans.session import Columns, Session, Task
from lloydformer.plans.splitting import TIE, Draws, Errors, split


@dataclass(frozen=True)
class Relocated:
    """Relocated centers (k, d) in float64, and the objectives before and after."""

    centers: Tensor
    before: float
    after: float


@dataclass(frozen=True)
class Relocation(Task):
    """A whole relocation in one call; a `Relocated`.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In float64.
    n_moved : int
        Number of clusters that are split, and of centers that are removed.
    draws : Draws
        The noise.
    """

    centers: Tensor
    n_moved: int
    draws: Draws
    writes: ClassVar[Columns] = ()


@dataclass(frozen=True)
class Walks(Task):
    """Lloyd's iterations and relocations from several starts in one call; a list of `Walked`.

    Attributes
    ----------
    starts : Tensor of shape (b, k, d)
        In float64.
    seeds : tuple of int
        Of the noise of each start.
    layer : int
        Of the first layer, for its noise.
    n_moved, n_draws, patience, rest
        As in `lloydformer.solving.relocations.Relocations`.
    max_layers : int
        Of each start.
    tolerance : float
        Centers have settled if the sum of their squared shifts is not above it.
    """

    starts: Tensor
    seeds: tuple[int, ...]
    layer: int
    n_moved: int
    n_draws: int
    patience: int
    rest: int | None
    max_layers: int
    tolerance: float


@dataclass(frozen=True)
class Walked:
    """Where a start led.

    centers (k, d) in float64, the masses of their clusters, their objective, the objective
    before each layer, and whether Ctrl-C was pressed meanwhile.
    """

    centers: Tensor
    masses: tuple[float, ...]
    objective: float
    history: list[float]
    interrupted: bool = False


def relocate(session: Session, centers: Tensor, n_moved: int, draws: Draws) -> Relocated:
    """Relocate `n_moved` centers: by the engine's task, or by folds if it has none."""
    done = session.run(Relocation(centers, n_moved, draws))
    return by_folds(session, centers, n_moved, draws) if done is None else done


def by_folds(session: Session, centers: Tensor, n_moved: int, draws: Draws) -> Relocated:
    """The same by folds alone, which write the labels of the session."""
    k, dtype = len(centers), session.layout.dtype
    known = session.fold(Errors(centers.to(dtype)))
    before = known[2].sum().item()
    grown = split(session, known, n_moved, draws, centers.to(dtype))
    sums, masses, _ = session.fold(Nearest(grown.to(dtype)))
    grown = means_or(sums, masses, grown)
    while len(grown) > k:
        grown = prune(session, grown, TIE * before)
    sums, masses, errors = session.fold(Errors(grown.to(dtype)))
    means = means_or(sums, masses, grown)
    less = masses * (means - grown).square().sum(dim=1)
    return Relocated(means, before, (errors.sum() - less.sum()).item())
