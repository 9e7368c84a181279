"""Heads: a score, an activation, and what is projected into query, key and value."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.activations import NOTHING, Activation, Context
from lloydformer.circuits.activations.contract import require
from lloydformer.circuits.projections import Block, Dense, Number, Projection
from lloydformer.circuits.scores import Score
from lloydformer.circuits.subspaces import Space, Subspace

Numbers = Mapping[str, Tensor]
"""What a state decides: by kind, (*b, q, count), with q the tokens that ask, or 1 for all."""

_EXAMPLES = {"score": "Euclidean()", "activation": "LimitingSoftmax()"}


@dataclass(frozen=True)
class Head:
    r"""One attention head as a value: $V Z\, \sigma(\mathrm{score}(K Z, Q X))$ (eq:attn-update).

    separation is the paper's delta, for projections that use it: scores of points in other
    clusters are lowered by 2 * separation. None leaves it to the circuit, which chooses it
    from the data when it embeds them. dropout is the share of the weights that are set to zero
    while a circuit is trained; the others grow to keep their mean.

    sharpness is a number that multiplies the scores of each token that asks: an inverse
    temperature that the state of the problem decides. beside are further heads of the same slot,
    whose outputs are added (`together` makes one slot of several heads).
    """

    score: Score
    activation: Activation
    query: Projection | Dense
    key: Projection | Dense
    value: Projection | Dense
    separation: float | None = None
    dropout: float = 0.0
    sharpness: Number | None = None
    beside: tuple["Head", ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("score", Score), ("activation", Activation)):
            part = getattr(self, name)
            require(isinstance(part, kind), name, part, f"pass a part such as {_EXAMPLES[name]}")
        given = self.separation
        require(
            given is None or (isinstance(given, Real) and 0 <= given < math.inf),
            "separation",
            given,
            "pass None (chosen from the data) or a finite number that is not negative",
        )
        share = isinstance(self.dropout, Real) and 0 <= self.dropout < 1
        require(share, "dropout", self.dropout, "pass a share from 0 to below 1")
        # a number is that of the token that asks, and a key answers all of them
        require(not self.key.numbers, "key", self.key, "numbers stand in query and value")

    @property
    def projections(self) -> dict[str, Projection | Dense]:
        return {"query": self.query, "key": self.key, "value": self.value}

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset().union(*(p.subspaces for p in self.projections.values()))

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Every number that the state of a problem decides for it."""
        own = (self.sharpness,) if self.sharpness else ()
        return own + tuple(n for p in self.projections.values() for n in p.numbers.values())

    @property
    def separated(self) -> bool:
        return any(p.power for p in self.projections.values())

    @property
    def cell(self) -> str:
        """Its entry in the table tab:comp-alg."""
        return f"{self.score.symbol}-{self.activation.short}"

    def __str__(self) -> str:
        parts = ", ".join(f"{name[0].upper()} = {p}" for name, p in self.projections.items())
        return f"{self.cell} ({self.activation.symbol}; {parts})"


def together(*heads: Head) -> Head:
    """A slot that holds several heads: their outputs are added."""
    return replace(heads[0], beside=heads[1:])


class Attention(nn.Module):
    """A head at work, with constructed weights, or with free ones that the generator draws.

    Every intermediate passes through a named point (`queries`, `keys`, `scores`, `attention`,
    `values`, `output`), so an ordinary forward hook can read or replace it. The matrices are
    buffers named `query`, `key` and `value`; the part of one that is multiplied by a power of
    the separation is kept beside it, as in `query_separated`, and so is a bias, as in
    `query_bias`. What a state's numbers multiply are the queries and the output.
    """

    def __init__(self, head: Head, space: Space, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.head, self.space = head, space
        for name, projection in head.projections.items():
            for suffix, weight in _weights(projection, space, generator):
                self.register_buffer(name + suffix, weight)
        self.queries, self.keys, self.values = nn.Identity(), nn.Identity(), nn.Identity()
        self.scores, self.attention, self.output = nn.Identity(), nn.Identity(), nn.Identity()

    def forward(
        self,
        tokens: Float[Tensor, "*b q dim"],
        sources: Float[Tensor, "*b m dim"],
        context: Context = NOTHING,
        separation: float = 0.0,
        numbers: Numbers | None = None,
    ) -> Float[Tensor, "*b q dim"]:
        queries = self._projected("query", tokens, separation)
        queries = self.queries(self._multiplied("query", queries, numbers))
        keys = self.keys(self._projected("key", sources, separation))
        values = self.values(self._projected("value", sources, separation))
        scores = self._sharpened(self.head.score(queries, keys), numbers)
        scores = self.scores(scores)  # (q, m)
        attention = self.attention(self.head.activation(scores, context))  # (q, m)
        if self.head.dropout:
            attention = F.dropout(attention, self.head.dropout, self.training)
        return self.output(self._multiplied("value", attention @ values, numbers))  # (q, dim)

    def _projected(self, name: str, tokens: Tensor, separation: float) -> Tensor:
        bias: Tensor | None = getattr(self, f"{name}_bias", None)
        return F.linear(
            tokens, self.weight(name, tokens, separation), None if bias is None else bias.to(tokens)
        )

    def _multiplied(self, name: str, tokens: Tensor, numbers: Numbers | None) -> Tensor:
        """Each subspace times its number; for a value the same as if it were in the matrix."""
        for subspace, number in self.head.projections[name].numbers.items():
            part = self.space.read(tokens, subspace) * _of(number, numbers)
            tokens = self.space.write(tokens, subspace, part)
        return tokens

    def _sharpened(self, scores: Tensor, numbers: Numbers | None) -> Tensor:
        sharpness = self.head.sharpness
        return scores if sharpness is None else scores * _of(sharpness, numbers)

    def weight(self, name: str, like: Tensor, separation: float = 0.0) -> Float[Tensor, "e dim"]:
        """The matrix `name`, in the dtype and on the device of `like`."""
        matrix: Tensor = getattr(self, name)
        if power := self.head.projections[name].power:
            matrix = matrix + separation**power * getattr(self, f"{name}_separated")
        return matrix.to(like)


def _of(number: Number, numbers: Numbers | None) -> Float[Tensor, "*b q 1"]:
    if numbers is None or number.kind not in numbers:
        raise ValueError(f"numbers: found no {number.kind}; run this head in a layer")
    return numbers[number.kind][..., number.index : number.index + 1]


def _weights(
    projection: Projection | Dense, space: Space, generator: torch.Generator | None
) -> Iterator[tuple[str, Tensor]]:
    """What a projection is made of, by suffix of its name."""
    if isinstance(projection, Dense):
        yield from projection.drawn(space, generator or torch.Generator().manual_seed(0)).items()
        return
    for suffix, blocks in _parts(projection):
        yield suffix, Projection(blocks).matrix(space)


def _parts(projection: Projection) -> Iterator[tuple[str, tuple[Block, ...]]]:
    """Its fixed blocks, and those that the separation multiplies if there are any."""
    yield "", tuple(b for b in projection.blocks if not b.power)
    if projection.power:
        yield "_separated", tuple(b for b in projection.blocks if b.power)
