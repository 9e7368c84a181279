"""Modulation: numbers of a layer that are computed from the points and centers."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.heads import Numbers
from lloydformer.circuits.subspaces import Space, Subspace


@runtime_checkable
class Modulation(Protocol):
    """Protocol of a part that sets the numbers that heads leave open.

    Attributes
    ----------
    kinds : dict of str to int
        How many numbers of each kind it sets.
    subspaces : frozenset of Subspace
        Those that it writes in the tokens of the points.
    """

    @property
    def kinds(self) -> dict[str, int]: ...

    @property
    def subspaces(self) -> frozenset[Subspace]: ...

    def build(self, space: Space) -> "Modulator":
        """Return the module for tokens of this space."""
        ...


class Modulator(nn.Module, ABC):
    """The module of a modulation; it runs before the heads of a layer.

    Each kind of numbers passes through a hook point of its name, so an ordinary forward hook can
    read or replace it.
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
        """Return the encoder tokens with the subspaces it writes, and the numbers.

        time: from 0 in the first layer to 1 in the last.
        """
        encoder, numbers = self.decide(encoder, decoder, time)
        return encoder, {kind: getattr(self, kind)(value) for kind, value in numbers.items()}

    @abstractmethod
    def decide(self, encoder: Tensor, decoder: Tensor, time: float) -> tuple[Tensor, Numbers]:
        """Compute what `forward` returns, before the numbers pass through their hook points."""
