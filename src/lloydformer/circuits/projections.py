r"""Query, key and value matrices: sums of blocks between named subspaces, or free ones.

The paper's $I^{:d}$ is `on(POSITION)`, its $I^{d+1:}$ is `on(ASSIGNMENT)`, and its
$\pi^{d+2}_{d+2}$ (def:perm-mat) is `lifting(...)`. Projections add, negate and scale.
"""

from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.subspaces import HALF, SQUARED_NORM, Space, Subspace


@dataclass(frozen=True)
class Number:
    """A factor that a layer computes for each query, such as a sharpness.

    Attributes
    ----------
    kind : str
        Its name, which several numbers may share.
    index : int
        Its place among the numbers of this kind.
    """

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}_{self.index}"


@dataclass(frozen=True)
class Block:
    """Copies `source` into `target`, times coefficient * separation ** power * number.

    Attributes
    ----------
    source, target : Subspace
        The subspaces that the block reads and writes.
    coefficient : float
        A fixed factor.
    power : float
        Power of the separation, the paper's delta; 0 if the block does not depend on it.
    number : Number or None
        A factor that the layer computes; None is 1.
    letter : str
        The sign of the matrix in equations.
    """

    source: Subspace
    target: Subspace
    coefficient: float = 1.0
    power: float = 0.0
    number: Number | None = None
    letter: ClassVar[str] = "I"

    def entries(self, n_rows: int, n_columns: int) -> Float[Tensor, "m n"]:
        """Return the entries of the block before it is scaled."""
        return torch.eye(n_rows, n_columns, dtype=torch.float64)

    def __str__(self) -> str:
        source, target = self.source.symbol, self.target.symbol
        return source if source == target else f"{target}←{source}"


@dataclass(frozen=True)
class Average(Block):
    r"""Writes the mean of `source` everywhere in `target`: $\mathbf 1 \mathbf 1^\top / k$."""

    letter: ClassVar[str] = "J"

    def entries(self, n_rows: int, n_columns: int) -> Float[Tensor, "m n"]:
        """Return the entries of the block before it is scaled."""
        return torch.full((n_rows, n_columns), 1 / n_columns, dtype=torch.float64)


@dataclass(frozen=True)
class Projection:
    """A square matrix on tokens, as a sum of blocks."""

    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        # a head stores the blocks with a power as one matrix, which it multiplies by delta**power
        powers = {b.power for b in self.blocks if b.power}
        if len(powers) > 1:
            raise ValueError(f"blocks: found powers {sorted(powers)} of the separation; use one")
        # a number multiplies its subspace after the projection, so a subspace has one at most
        for target, number in self.numbers.items():
            if any(b.number != number for b in self.blocks if b.target == target):
                raise ValueError(f"blocks: found several numbers for {target!r}; use one")

    def __add__(self, other: "Projection") -> "Projection":
        return Projection(self.blocks + other.blocks)

    def __rmul__(self, factor: float | Number) -> "Projection":
        if isinstance(factor, Number):
            return Projection(tuple(replace(b, number=factor) for b in self.blocks))
        return Projection(
            tuple(replace(b, coefficient=factor * b.coefficient) for b in self.blocks)
        )

    def __neg__(self) -> "Projection":
        return -1.0 * self

    @property
    def subspaces(self) -> frozenset[Subspace]:
        """The subspaces that the projection reads or writes."""
        return frozenset(s for b in self.blocks for s in (b.source, b.target))

    @property
    def power(self) -> float:
        """The power of the separation in its blocks; 0 if there is none."""
        return max((b.power for b in self.blocks), default=0.0)

    @property
    def numbers(self) -> dict[Subspace, Number]:
        """The numbers of a modulation, by the subspace that they multiply."""
        return {b.target: b.number for b in self.blocks if b.number}

    def matrix(self, space: Space, separation: float = 1.0) -> Float[Tensor, "dim dim"]:
        """Return the matrix as the paper prints it; numbers of a modulation are taken as 1.

        Tokens are rows: apply it with `F.linear`.
        """
        matrix = torch.zeros(space.dim, space.dim, dtype=torch.float64)
        for b in self.blocks:
            block = matrix[space.span(b.target), space.span(b.source)]
            block.add_(b.entries(*block.shape), alpha=b.coefficient * separation**b.power)
        return matrix

    def __str__(self) -> str:
        """Return, for example, `I[x q]`, `−I[y]`, `I[x] + √δ I[y]`, `I[c←x]` or `π`."""
        # the paper writes the whole lifted matrix as one letter; what else is added is listed
        swaps = any({b.source, b.target} == {SQUARED_NORM, HALF} for b in self.blocks)
        blocks = [b for b in self.blocks if b.power] if swaps else self.blocks
        groups = groupby(blocks, key=lambda b: (b.coefficient, b.power, b.number, b.letter))
        terms = ["π"] if swaps else []
        for (coefficient, power, number, letter), group in groups:
            named = f"{letter}[{' '.join(map(str, group))}]"
            terms.append(_factor(coefficient, power, number) + named)
        return " + ".join(terms).replace("+ −", "− ")


@dataclass(frozen=True)
class Dense:
    """A square matrix on tokens that is learned; `bias` adds a vector."""

    bias: bool = True
    subspaces: ClassVar[frozenset[Subspace]] = frozenset()
    power: ClassVar[float] = 0.0
    numbers: ClassVar[dict[Subspace, Number]] = {}

    def draw(self, space: Space, generator: torch.Generator) -> dict[str, Tensor]:
        """Draw the weights before training, uniform within 1/sqrt(dim), by suffix of their name.

        This is the default of `torch.nn.Linear`.
        """
        sizes = {"": (space.dim, space.dim)} | ({"_bias": (space.dim,)} if self.bias else {})
        bound = space.dim**-0.5
        return {
            suffix: torch.empty(size, dtype=torch.float64).uniform_(
                -bound, bound, generator=generator
            )
            for suffix, size in sizes.items()
        }

    def __str__(self) -> str:
        return "W+b" if self.bias else "W"


def _factor(coefficient: float, power: float, number: Number | None = None) -> str:
    root = {0.0: "", 0.5: "√δ ", 1.0: "δ "}.get(power, f"δ^{power:g} ")
    size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g} "
    return ("−" if coefficient < 0 else "") + size + root + (f"{number} " if number else "")


def on(*subspaces: Subspace) -> Projection:
    """Return the identity on these subspaces, zero elsewhere (def:lin-op)."""
    return Projection(tuple(Block(s, s) for s in subspaces))


def copy(source: Subspace, target: Subspace, power: float = 0.0) -> Projection:
    r"""Return the copy of one subspace to another of the same size, times $\delta$**power."""
    return Projection((Block(source, target, power=power),))


def average(*subspaces: Subspace) -> Projection:
    """Return the mean of each subspace, written to all of its dimensions.

    It and the identity span the matrices that commute with renumbering the clusters.
    """
    return Projection(tuple(Average(s, s) for s in subspaces))


def separated(*subspaces: Subspace, coefficient: float = 1.0, power: float = 0.5) -> Projection:
    r"""Return the identity on these subspaces times coefficient * $\delta$**power.

    With $\sqrt\delta$ in both query and key, Euclidean scores between different one-hot codes
    are lowered by $2\delta$, as the paper states (docs/errata.md, 2).
    """
    return Projection(tuple(Block(s, s, coefficient, power) for s in subspaces))


def lifting(*subspaces: Subspace) -> Projection:
    r"""Return $\pi$ of def:perm-mat: twice the identity, `SQUARED_NORM` and `HALF` swapped.

    Then $\ell(x)^\top \pi \ell(z) = 2 (x^\top z - |z|^2/2 - |x|^2/2) = -|x - z|^2$ (lem perm).
    """
    swap = Projection((Block(SQUARED_NORM, HALF), Block(HALF, SQUARED_NORM)))
    return 2.0 * (on(*subspaces) + swap)
