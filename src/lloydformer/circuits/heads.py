"""Heads: a score, an activation, and the projections to query, key and value."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.activations import NOTHING, Context
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.projections import Dense, Number, Projection
from lloydformer.circuits.scores import Euclidean, Score
from lloydformer.circuits.subspaces import Space, Subspace
from lloydformer.numerics.checks import require

# Numbers of a modulation by kind, (*b, q, count); q is the number of queries, or 1 for all.
Numbers = Mapping[str, Tensor]

# The columns of queries and keys that a score sees.
ALL_COLUMNS = slice(None)

_EXAMPLES = {"score": "Euclidean()", "activation": "LimitingSoftmax()"}
# The members that a score and an activation must have, each with its use.
_MEMBERS = {
    "score": {
        "symbol": "its sign in tables and equations, a text",
        "__call__": "(queries, keys) -> scores, larger is better",
    },
    "activation": {
        "short": "its name in tables, a text",
        "symbol": "its sign in equations, a text",
        "__call__": "(scores, context) -> weights of the keys, the last axis",
    },
}


@dataclass(frozen=True)
class Head:
    r"""One attention head as a value: $V Z\, \sigma(\mathrm{score}(K Z, Q X))$ (eq:attn-update).

    Attributes
    ----------
    score, activation : Score, HeadActivation
        From queries and keys to scores, and from these to weights of the keys.
    query, key, value : Projection or Dense
        The matrices.
    separation : float or None
        The paper's delta, for projections that use it; scores of points in other clusters are
        lowered by 2 * separation. None lets the circuit choose it from the data.
    dropout : float
        Fraction of the weights that are set to zero during training; the others are scaled up so
        that the mean is unchanged.
    sharpness : Number or None
        A number of the modulation that multiplies the scores of each query, an inverse temperature.
    beside : tuple of Head
        Further heads of the same slot, whose outputs are added (see `sum_of_heads`).
    """

    score: Score
    activation: HeadActivation
    query: Projection | Dense
    key: Projection | Dense
    value: Projection | Dense
    separation: float | None = None
    dropout: float = 0.0
    sharpness: Number | None = None
    beside: tuple["Head", ...] = ()

    def __post_init__(self) -> None:
        for name in _MEMBERS:
            _check_part(name, getattr(self, name))
        given = self.separation
        require(
            given is None or (isinstance(given, Real) and 0 <= given < math.inf),
            "separation",
            given,
            "pass None (chosen from the data) or a finite number, 0 or more",
        )
        fraction = isinstance(self.dropout, Real) and 0 <= self.dropout < 1
        require(fraction, "dropout", self.dropout, "pass a fraction from 0 to below 1")
        # numbers belong to queries, and all queries share the keys
        require(not self.key.numbers, "key", self.key, "use numbers in query and value only")

    @property
    def projections(self) -> dict[str, Projection | Dense]:
        return {"query": self.query, "key": self.key, "value": self.value}

    @property
    def subspaces(self) -> frozenset[Subspace]:
        """The subspaces that the projections read or write."""
        return frozenset().union(*(p.subspaces for p in self.projections.values()))

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers of a modulation that the head uses."""
        own = (self.sharpness,) if self.sharpness else ()
        return own + tuple(n for p in self.projections.values() for n in p.numbers.values())

    @property
    def separated(self) -> bool:
        """True if a projection depends on the separation."""
        return any(p.power for p in self.projections.values())

    @property
    def cell(self) -> str:
        """The head's cell in the table tab:comp-alg."""
        return f"{self.score.symbol}-{self.activation.short}"

    def __str__(self) -> str:
        parts = ", ".join(f"{name[0].upper()} = {p}" for name, p in self.projections.items())
        return f"{self.cell} ({self.activation.symbol}; {parts})"


def _check_part(name: str, part: object) -> None:
    """Raise a ValueError that lists what the part lacks."""
    if isinstance(part, type):
        raise ValueError(f"{name}: found {part!r}, a class; pass an instance, {part.__name__}()")
    lacking = [f"no {m} ({use})" for m, use in _MEMBERS[name].items() if not hasattr(part, m)]
    if lacking:
        raise ValueError(
            f"{name}: found {part!r}, which has {', '.join(lacking)}; "
            f"pass a part, for example {_EXAMPLES[name]}, or add what is missing"
        )


def sum_of_heads(*heads: Head) -> Head:
    """Return several heads as one slot: their outputs are added."""
    return replace(heads[0], beside=heads[1:])


class Attended(NamedTuple):
    """The intermediates of a head that a traced layer needs: its output, weights and scores."""

    output: Tensor
    attention: Tensor
    scores: Tensor


class Attention(nn.Module):
    """The module of a head, with constructed weights, or with free ones from the generator.

    Every intermediate passes through a hook point (`queries`, `keys`, `scores`, `attention`,
    `values`, `output`, and `tolerance` if scores are uncertain), so an ordinary forward hook can
    read or replace it. The matrices are buffers named `query`, `key` and `value`. The part of a
    matrix that is multiplied by a power of the separation is a buffer of its own, for example
    `query_separated`; so is a bias, for example `query_bias`. Numbers of a modulation multiply the
    queries and the output.

    Parameters
    ----------
    head : Head
        The head.
    space : Space
        The token space.
    generator : torch.Generator or None
        Draws free weights; None is one with seed 0.
    measure : callable or None
        Returns the uncertainty of the scores, from the head, its queries and its keys; None if
        scores are compared exactly.
    """

    def __init__(
        self,
        head: Head,
        space: Space,
        generator: torch.Generator | None = None,
        measure: Callable[[Head, Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.head, self.space, self.measure = head, space, measure
        # looked up once: properties of projections are more than torch.compile can trace
        self.powers = {name: p.power for name, p in head.projections.items()}
        self.numbers = {name: p.numbers for name, p in head.projections.items()}
        for name, projection in head.projections.items():
            for suffix, weight in _weights(projection, space, generator):
                self.register_buffer(name + suffix, weight)
        self.queries, self.keys, self.values = nn.Identity(), nn.Identity(), nn.Identity()
        self.scores, self.attention, self.output = nn.Identity(), nn.Identity(), nn.Identity()
        if measure is not None:
            self.tolerance = nn.Identity()

    def forward(
        self,
        tokens: Float[Tensor, "*b q dim"],
        sources: Float[Tensor, "*b m dim"],
        context: Context = NOTHING,
        separation: float | Tensor = 0.0,
        numbers: Numbers | None = None,
    ) -> Float[Tensor, "*b q dim"]:
        return self.attend(tokens, sources, context, separation, numbers).output

    def attend(
        self,
        tokens: Tensor,
        sources: Tensor,
        context: Context = NOTHING,
        separation: float | Tensor = 0.0,
        numbers: Numbers | None = None,
        columns: slice = ALL_COLUMNS,
    ) -> Attended:
        """Return the output with weights and scores.

        columns: outside of them, queries and keys are 0; the score sees these alone.
        """
        queries = self.project("query", tokens, separation)
        queries = self.queries(self._multiply("query", queries, numbers))
        keys = self.keys(self.project("key", sources, separation))
        values = self.values(self.project("value", sources, separation))
        scores = self.head.score(queries[..., columns], keys[..., columns])
        if self.head.sharpness is not None:
            scores = scores * _value(self.head.sharpness, numbers)
        scores = self.scores(scores)  # (q, m)
        if self.measure is not None:
            # a bound of rounding errors is no function to differentiate
            tolerance = self.tolerance(self.measure(self.head, queries.detach(), keys.detach()))
            context = Context(context.gap, tolerance, context.log_scores, context.noise)
        attention = self.attention(self.head.activation(scores, context))  # (q, m)
        weights = attention
        if self.head.dropout:
            weights = F.dropout(attention, self.head.dropout, self.training)
        output = self._multiply("value", weights @ values, numbers)  # (q, dim)
        return Attended(self.output(output), attention, scores)

    def find_columns(self) -> slice:
        """Return the columns in which queries or keys can differ from 0, by the weights.

        All of them if weights are trained, or if the score depends on the number of columns.
        """
        if not isinstance(self.head.score, Euclidean) or any(True for _ in self.parameters()):
            return ALL_COLUMNS
        names = [n for n, _ in self.named_buffers() if n.startswith(("query", "key"))]
        used = torch.zeros(self.space.dim, dtype=torch.bool)
        for name in names:
            weight: Tensor = getattr(self, name)
            used |= (weight.cpu() != 0).reshape(self.space.dim, -1).any(dim=1)
        places = used.nonzero().flatten().tolist()
        return slice(places[0], places[-1] + 1) if places else slice(0, 0)

    def project(self, name: str, tokens: Tensor, separation: float | Tensor) -> Tensor:
        """Apply a matrix and its bias; `separation` is one number, or one for each problem."""
        bias: Tensor | None = getattr(self, f"{name}_bias", None)
        matrix: Tensor = getattr(self, name)
        out = F.linear(tokens, matrix.to(tokens), None if bias is None else bias.to(tokens))
        if power := self.powers[name]:
            # a product of its own, because the separation may differ between problems of a batch
            apart = F.linear(tokens, getattr(self, f"{name}_separated").to(tokens))
            out = out + separation**power * apart
        return out

    def _multiply(self, name: str, tokens: Tensor, numbers: Numbers | None) -> Tensor:
        """Multiply each subspace by its number."""
        for subspace, number in self.numbers[name].items():
            part = self.space.read(tokens, subspace) * _value(number, numbers)
            tokens = self.space.write(tokens, subspace, part)
        return tokens

    def weight(self, name: str, like: Tensor, separation: float = 0.0) -> Float[Tensor, "e dim"]:
        """Return the matrix `name` with the dtype and device of `like`."""
        matrix: Tensor = getattr(self, name)
        if power := self.powers[name]:
            matrix = matrix + separation**power * getattr(self, f"{name}_separated")
        return matrix.to(like)


def _value(number: Number, numbers: Numbers | None) -> Float[Tensor, "*b q 1"]:
    if numbers is None or number.kind not in numbers:
        raise ValueError(f"numbers: found no {number.kind}; run this head in a layer with numbers")
    return numbers[number.kind][..., number.index : number.index + 1]


def _weights(
    projection: Projection | Dense, space: Space, generator: torch.Generator | None
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of a projection with the suffix of their name."""
    if isinstance(projection, Dense):
        yield from projection.draw(space, generator or torch.Generator().manual_seed(0)).items()
        return
    yield "", Projection(tuple(b for b in projection.blocks if not b.power)).matrix(space)
    if projection.power:
        separated = Projection(tuple(b for b in projection.blocks if b.power))
        yield "_separated", separated.matrix(space)
