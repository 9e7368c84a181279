"""Modulation: numbers of a layer that the state of its problem decides."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.heads import Numbers
from lloydformer.circuits.subspaces import Space, Subspace


@runtime_checkable
class Modulation(Protocol):
    """Decides the numbers that heads leave open, as a value.

    kinds: how many numbers there are of each kind. subspaces: what it writes into the tokens of
    the points, for heads to read.
    """

    @property
    def kinds(self) -> dict[str, int]: ...

    @property
    def subspaces(self) -> frozenset[Subspace]: ...

    def build(self, space: Space) -> "Modulator": ...


class Modulator(nn.Module, ABC):
    """A modulation at work: it looks at the tokens before the heads do.

    Each kind of numbers passes through a point that has its name, so an ordinary forward hook
    can read or replace it.
    """

    def __init__(self, kinds: dict[str, int], space: Space) -> None:
        super().__init__()
        self.space = space
        for kind in kinds:
            self.add_module(kind, nn.Identity())

    def forward(
        self,
        encoder: Float[Tensor, "*b n dim"],
        decoder: Float[Tensor, "*b k dim"],
        time: float,
    ) -> tuple[Float[Tensor, "*b n dim"], Numbers]:
        """The tokens with what it writes, and the numbers; time goes from 0 to 1."""
        encoder, numbers = self.decide(encoder, decoder, time)
        return encoder, {kind: getattr(self, kind)(value) for kind, value in numbers.items()}

    @abstractmethod
    def decide(self, encoder: Tensor, decoder: Tensor, time: float) -> tuple[Tensor, Numbers]:
        """The same, before the numbers pass through their points."""
