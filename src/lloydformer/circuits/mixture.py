r"""EM of mixtures as a circuit: one layer is one iteration, exactly.

A point's token holds its sufficient statistic $\phi(x) = (x, x \otimes x, 1)$, a component's its
natural parameters $\theta_j$. Their dot product is $\log \pi_j p_j(x)$, so soft-max attention is
the E-step. Linear attention averages the statistic by responsibilities, and a head with uniform
attention averages the responsibilities themselves, which are the new weights: the M-step. A network
of gated units then turns mean statistics into natural parameters, each component by itself.
docs/mixtures.md goes through it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lloydformer.circuits.activations import LimitingSoftmax, Linear, Softmax
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.display import latex_term, plain_term
from lloydformer.circuits.feedforward import TokenNetwork
from lloydformer.circuits.heads import Attention, Head, sum_of_heads
from lloydformer.circuits.projections import copy, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import (
    ASSIGNMENT,
    CONSTANT,
    COVARIANCE,
    LINEAR,
    MOMENT,
    ONE,
    POSITION,
    QUADRATIC,
    SHARES,
    WEIGHT,
    Space,
    Subspace,
)
from lloydformer.circuits.tokens import DecoderTokens, EncoderTokens, OneHot, Tokens
from lloydformer.numerics.checks import require

Covariance = Literal["full", "tied", "diag", "spherical", "shared"]
Family = Literal["gaussian", "bernoulli", "poisson"]
Weights = Literal["free", "equal"]
Gate = Literal["product", "reciprocal", "logarithm"]

GATES: tuple[Gate, ...] = ("product", "reciprocal", "logarithm")
COVARIANCES = ("full", "tied", "diag", "spherical", "shared")
# Covariances that all components share: their mean needs an attention between components.
POOLED = ("tied", "shared")
# Arguments of logarithms are not below this, so that hidden units stay finite: 0 * inf would not be
# a number. A weight this small belongs to a component without points.
TINY = torch.finfo(torch.float64).tiny
LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class MixtureKind:
    """The member of the family: what is estimated of a component.

    Attributes
    ----------
    covariance : {"full", "tied", "diag", "spherical", "shared"} or float
        The restriction of the covariance matrices, or the fixed variance of all components.
    family : {"gaussian", "bernoulli", "poisson"}
        The distribution of a component.
    weights : {"free", "equal"}
        Whether the weights of the components are estimated.
    """

    covariance: Covariance | float = "full"
    family: Family = "gaussian"
    weights: Weights = "free"

    def __post_init__(self) -> None:
        given = self.covariance
        if isinstance(given, int | float) and not isinstance(given, bool):
            known = 0 <= given < math.inf
        else:
            known = given in COVARIANCES
        words = ", ".join(f'"{name}"' for name in COVARIANCES)
        repair = f"pass one of {words}, or a variance of at least 0"
        require(known, "covariance", given, repair)
        families = ("gaussian", "bernoulli", "poisson")
        require(
            self.family in families, "family", self.family, f"pass one of {', '.join(families)}"
        )
        known = self.weights in ("free", "equal")
        require(known, "weights", self.weights, 'pass "free" or "equal"')
        if self.family != "gaussian":
            require(
                given == "full",
                "covariance",
                given,
                f"a {self.family} component has none; leave it out",
            )
        if self.is_limit:
            require(
                self.weights == "equal",
                "weights",
                self.weights,
                'they have no effect in the limit of variance 0; pass "equal"',
            )

    @property
    def is_limit(self) -> bool:
        """True for the limit of variance 0, where every point belongs to its nearest mean."""
        return self.covariance == 0

    @property
    def is_fixed(self) -> bool:
        """True if the variance is given and not estimated."""
        return not isinstance(self.covariance, str)

    @property
    def is_estimated(self) -> bool:
        """True for Gaussian components with covariances to estimate."""
        return self.family == "gaussian" and not self.is_fixed

    @property
    def has_weights(self) -> bool:
        """True if a layer needs the weights: to estimate them, or to pool covariances by them."""
        return self.weights == "free" or self.is_pooled

    @property
    def is_pooled(self) -> bool:
        """True if all components share one covariance."""
        return self.is_estimated and self.covariance in POOLED

    @property
    def subspaces(self) -> tuple[Subspace, ...]:
        """The subspaces of a token, in order."""
        moment = (MOMENT,) if self.family == "gaussian" else ()
        weights = (SHARES, WEIGHT) if self.has_weights else ()
        covariance = (COVARIANCE,) if self.is_estimated else ()
        quadratic = (QUADRATIC,) if self.family == "gaussian" else ()
        natural = (LINEAR, *quadratic, CONSTANT)
        return (POSITION, *moment, ONE, ASSIGNMENT, *weights, *covariance, *natural)

    @property
    def natural(self) -> tuple[Subspace, ...]:
        """The subspaces of the natural parameters."""
        return tuple(s for s in (LINEAR, QUADRATIC, CONSTANT) if s in self.subspaces)

    @property
    def statistic(self) -> tuple[Subspace, ...]:
        """The subspaces of the sufficient statistic of a point, in the order of `natural`."""
        return tuple(s for s in (POSITION, MOMENT, ONE) if s in self.subspaces)

    def pairs(self, n_features: int) -> list[tuple[int, int]]:
        """Return the columns whose products are in MOMENT; none if it is the squared norm."""
        d = range(n_features)
        if self.covariance == "diag":
            return [(p, p) for p in d]
        return (
            [(p, q) for p in d for q in d if p <= q] if self.covariance in ("full", "tied") else []
        )

    def space(self, n_features: int, n_clusters: int) -> Space:
        """Return the token space."""
        moment = len(self.pairs(n_features)) or 1
        sizes = {
            **dict.fromkeys((POSITION, LINEAR), n_features),
            **dict.fromkeys((MOMENT, COVARIANCE, QUADRATIC), moment),
            **dict.fromkeys((ASSIGNMENT, SHARES), n_clusters),
        }
        return Space(tuple((s, sizes.get(s, 1)) for s in self.subspaces))

    def second_moments(self, rows: Tensor) -> Tensor:
        """Return the second part of the statistic of rows (..., d)."""
        pairs = self.pairs(rows.shape[-1])
        if not pairs:
            return rows.square().sum(dim=-1, keepdim=True)
        first, second = torch.tensor(pairs, device=rows.device).unbind(dim=1)
        return rows[..., first] * rows[..., second]


# --- tokens ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MixtureTokens(Tokens):
    """Tokens of points with their statistic, and of components with their parameters.

    Attributes
    ----------
    kind : MixtureKind
        The member of the family.
    variance : float
        Variance of the components of a start that gives none.
    regularisation : float
        As in `NaturalParameters`; the covariances of a start include it.
    """

    kind: MixtureKind = MixtureKind()
    variance: float = 1.0
    regularisation: float = 1e-6

    def space(self, n_features: int, n_clusters: int) -> Space:
        """Return the token space for d features and k components."""
        return self.kind.space(n_features, n_clusters)

    def encoder(self, points: Tensor, assignments: Tensor) -> EncoderTokens:
        """Return the statistic of the points, and their current responsibilities."""
        parts = {POSITION: points, ASSIGNMENT: assignments, ONE: torch.ones_like(points[..., :1])}
        if self.kind.family == "gaussian":
            parts[MOMENT] = self.kind.second_moments(points)
        return self._fill(parts, points, assignments.shape[-1])

    def decoder(self, centers: Tensor, start: Mapping[str, Tensor] | None = None) -> DecoderTokens:
        """Return the components of a start, with natural parameters by definition.

        start: "weights" (..., k), equal ones by default, and "covariances" in the shape of
        scikit-learn's `covariances_` ((..., k, d, d), (..., d, d), (..., k, d) or (..., k); of
        "shared" (...,)), by default `variance` times the identity.
        """
        kind, (*batch, k, d) = self.kind, centers.shape
        start = self._check_start({} if start is None else start, (*batch,), k, d)
        codes = torch.eye(k).to(centers).expand(*batch, k, k)
        parts = {POSITION: centers, ASSIGNMENT: codes, ONE: torch.ones_like(centers[..., :1])}
        weights = start.get("weights", centers.new_full((*batch, k), 1 / k)).to(centers)
        if kind.has_weights:
            parts[SHARES] = weights.unsqueeze(-2).expand(*batch, k, k)
            parts[WEIGHT] = weights.unsqueeze(-1)
        log_weights = weights.clamp(min=TINY).log().unsqueeze(-1)
        constant = log_weights if kind.weights == "free" else torch.zeros_like(log_weights)
        if kind.family == "bernoulli":
            yes, no = centers.clamp(min=TINY).log(), (1 - centers).clamp(min=TINY).log()
            parts[LINEAR] = yes - no
            parts[CONSTANT] = constant + no.sum(dim=-1, keepdim=True)
        elif kind.family == "poisson":
            parts[LINEAR] = centers.clamp(min=TINY).log()
            parts[CONSTANT] = constant - centers.sum(dim=-1, keepdim=True)
        else:
            parts |= self._gaussian_parts(centers, constant, start.get("covariances"))
        return self._fill(parts, centers, k)

    def _gaussian_parts(
        self, means: Tensor, constant: Tensor, covariances: Tensor | None
    ) -> dict[Subspace, Tensor]:
        """Return moments, covariances and natural parameters of Gaussian components."""
        kind, d = self.kind, means.shape[-1]
        if kind.is_limit:  # scores are minus squared distances, less those of the points
            squares = means.square().sum(dim=-1, keepdim=True)
            return {LINEAR: 2 * means, QUADRATIC: -torch.ones_like(squares), CONSTANT: -squares}
        identity = torch.eye(d).to(means)
        if covariances is None:
            variance = kind.covariance if not isinstance(kind.covariance, str) else self.variance
            dense = (variance * identity).expand(*means.shape, d)
        else:
            dense = _dense_covariances(covariances.to(means), kind, means.shape)
        # by definition, so that the network's result can be compared with it
        precisions = torch.linalg.inv(dense)
        linear = (precisions @ means.unsqueeze(-1)).squeeze(-1)
        log_det = torch.linalg.slogdet(dense)[1].unsqueeze(-1)
        squares = (means * linear).sum(dim=-1, keepdim=True)
        parts = {
            LINEAR: linear,
            QUADRATIC: self._pack(precisions, by=-0.5, twice=2.0),
            CONSTANT: constant - 0.5 * (squares + log_det + d * LOG_2_PI),
        }
        if kind.is_estimated:
            parts[COVARIANCE] = self._pack(dense)
            # of the points of this component, whose covariance has no regularisation yet
            away = self._pack(dense - self.regularisation * identity)
            moments = away if kind.pairs(d) else d * away
            parts[MOMENT] = kind.second_moments(means) + moments
        return parts

    def _pack(self, matrices: Tensor, by: float = 1.0, twice: float = 1.0) -> Tensor:
        """Return the entries (..., s) of matrices (..., d, d) that belong to MOMENT, times `by`.

        twice: a further factor of entries off the diagonal.
        """
        pairs = self.kind.pairs(matrices.shape[-1])
        if not pairs:
            return by * matrices[..., :1, 0]
        factors = torch.tensor([by if p == q else by * twice for p, q in pairs]).to(matrices)
        first, second = torch.tensor(pairs, device=matrices.device).unbind(dim=1)
        return factors * matrices[..., first, second]

    def _check_start(
        self, start: Mapping[str, Tensor], batch: tuple[int, ...], k: int, d: int
    ) -> dict[str, Tensor]:
        """Return the start as tensors; raise ValueError for other names and shapes."""
        kind = self.kind
        shapes = {"weights": (*batch, k)} if kind.weights == "free" else {}
        of_kind = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
        if kind.is_estimated:
            shapes["covariances"] = (*batch, *of_kind.get(str(kind.covariance), ()))
        tensors = {name: torch.as_tensor(value) for name, value in start.items()}
        for name, value in tensors.items():
            if name not in shapes:
                has = " and ".join(shapes) or "no other parameters"
                raise ValueError(f"start: found {name!r}; components of this recipe have {has}")
            require(
                tuple(value.shape) == shapes[name],
                f"start[{name!r}]",
                tuple(value.shape),
                f"pass the shape {shapes[name]}",
            )
        return tensors

    def parameters(self, space: Space, tokens: DecoderTokens) -> dict[str, Tensor]:
        """Return the parameters that decoder tokens hold: means, and "weights", "covariances".

        Means are relative to the origin of the circuit. Covariances have scikit-learn's shape.
        """
        found = {"means": space.read(tokens, POSITION)}
        if self.kind.has_weights:
            found["weights"] = space.read(tokens, WEIGHT).squeeze(-1)
        if not self.kind.is_estimated:
            return found
        packed, d = space.read(tokens, COVARIANCE), space.size(POSITION)
        covariance = self.kind.covariance
        if covariance in ("full", "tied"):
            matrices = packed.new_zeros(*packed.shape[:-1], d, d)
            for i, (p, q) in enumerate(self.kind.pairs(d)):
                matrices[..., p, q] = matrices[..., q, p] = packed[..., i]
            packed = matrices[..., 0, :, :] if covariance == "tied" else matrices
        elif covariance == "spherical":
            packed = packed.squeeze(-1)
        elif covariance == "shared":
            packed = packed[..., 0, 0]
        return {**found, "covariances": packed}

    def _fill(self, parts: dict[Subspace, Tensor], rows: Tensor, n_clusters: int) -> Tensor:
        """Return tokens of these parts; the others are 0 until a layer writes them."""
        space = self.space(rows.shape[-1], n_clusters)
        blank = {s: rows.new_zeros(*rows.shape[:-1], space.size(s)) for s in space.subspaces}
        return space.assemble(blank | parts)


def _dense_covariances(given: Tensor, kind: MixtureKind, shape: torch.Size) -> Tensor:
    """Return covariances in scikit-learn's shape as matrices (..., k, d, d)."""
    d = shape[-1]
    if kind.covariance == "full":
        return given
    if kind.covariance == "tied":
        return given.unsqueeze(-3).expand(*shape, d)
    if kind.covariance == "shared":
        given = given[..., None].expand(shape[:-1])
    if kind.covariance != "diag":
        given = given.unsqueeze(-1).expand(shape)
    return torch.diag_embed(given)


# --- the network ----------------------------------------------------------------------------------
class Unit(NamedTuple):
    r"""One hidden unit: adds factor * gate(L z) * (R z) to a coordinate of the token.

    Attributes
    ----------
    gate : {"product", "reciprocal", "logarithm"}
        The function of the left reading: itself, 1/z, or log z.
    left : tuple of (int, float)
        The coordinates whose sum, times these numbers, is the left reading L z.
    right : int or None
        The coordinate R z; None is the constant 1, a bias.
    target : int
        The coordinate that the unit writes.
    factor : float
        Its outgoing weight.
    """

    gate: Gate
    left: tuple[tuple[int, float], ...]
    right: int | None
    target: int
    factor: float = 1.0


class GatedNetwork(TokenNetwork):
    r"""A layer of gated units: $W\,(f(L z) \circ (R z + b))$.

    f is the identity, the reciprocal or the logarithm, in this order of the units (`counts` of
    each). With the identity, it is a bilinear unit, as in `Quadratic` and `Product`.
    """

    left: Tensor
    right: Tensor
    bias: Tensor
    outward: Tensor

    def __init__(self, units: list[Unit], dim: int) -> None:
        units = sorted(units, key=lambda unit: GATES.index(unit.gate))
        left, right = (torch.zeros(len(units), dim, dtype=torch.float64) for _ in range(2))
        bias = torch.zeros(len(units), dtype=torch.float64)
        outward = torch.zeros(dim, len(units), dtype=torch.float64)
        for i, unit in enumerate(units):
            for place, number in unit.left:
                left[i, place] += number
            if unit.right is None:
                bias[i] = 1.0
            else:
                right[i, unit.right] = 1.0
            outward[unit.target, i] = unit.factor
        super().__init__(left=left, right=right, bias=bias, outward=outward)
        # units of a gate are neighbours
        self.counts = tuple(sum(unit.gate == gate for unit in units) for gate in GATES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return what the units add to tokens (..., k, dim)."""
        read = F.linear(tokens, self.left.to(tokens))  # (k, units)
        same, inverted, logs = torch.split(read, list(self.counts), dim=-1)
        logs = logs.clamp(min=torch.finfo(read.dtype).tiny).log()
        gated = torch.cat([same, inverted.reciprocal(), logs], dim=-1)
        factors = F.linear(tokens, self.right.to(tokens), self.bias.to(tokens))
        hidden = self.hidden(gated * factors)
        return self.output(F.linear(hidden, self.outward.to(tokens)))

    def extra_repr(self) -> str:
        """Return how many units of each gate there are."""
        counts = zip(GATES, self.counts, strict=True)
        return ", ".join(f"{gate}: {count}" for gate, count in counts if count)


@dataclass(frozen=True)
class NaturalParameters:
    r"""The network that turns mean statistics into natural parameters, component by component.

    Its units are products, reciprocals and logarithms: no function is hidden in it. `updates`
    prints what it computes, `units` lists every unit. For "full" and "tied", d sweeps of
    Gauss-Jordan elimination invert the covariance matrix in place, and the pivots give its
    determinant. For "tied" and "shared", components attend to each other once, between two of its
    layers, to average their covariances by weight.

    Attributes
    ----------
    kind : MixtureKind
        The member of the family.
    regularisation : float
        Added to variances: a weight of the network, from the constant 1.
    """

    kind: MixtureKind = MixtureKind()
    regularisation: float = 1e-6
    symbol = "N"

    def __post_init__(self) -> None:
        number = isinstance(self.regularisation, int | float)
        good = number and 0 <= self.regularisation < math.inf
        require(good, "regularisation", self.regularisation, "pass a number of at least 0")

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset(self.kind.subspaces)

    @property
    def pooling(self) -> tuple[Head, ...]:
        """The attentions between components: the mean covariance in place of their own."""
        if not self.kind.is_pooled:
            return ()
        own, by_weight = on(ASSIGNMENT), copy(WEIGHT, ONE)
        return (
            Head(DotProduct(), Linear(), on(ONE), by_weight, on(COVARIANCE)),
            Head(DotProduct(), LimitingSoftmax(), own, own, -on(COVARIANCE)),
        )

    def build(self, space: Space) -> "MixtureNetwork":
        """Return the module for tokens of this space."""
        return MixtureNetwork(self, space)

    def units(self, space: Space) -> tuple[list[list[Unit]], list[list[Unit]]]:
        """Return the units, layer by layer: those before and those after the pooling."""
        return [list(self._moment_units(space))], [list(u) for u in self._natural_units(space)]

    def updates(self, center: str, latex: bool = False) -> list[tuple[str, str]]:
        """Return the lines of the recipe's equation: what is updated, and by what."""
        term = latex_term if latex else plain_term
        first, second = self._formulas
        if latex:
            first, second = "N_1" if first else "", "N_2"
        pooled = " + ".join(term("decoder_self", head) for head in self.pooling)
        middle = [f"{center} + {pooled}"] if pooled else []
        lines = [f"{center} + {first}({center})"] if first else []
        lines = [*lines, *middle, f"{center} + {second}({center})"]
        return [(center, line) for line in lines]

    @property
    def _formulas(self) -> tuple[str, str]:
        """Formulas of the two networks, in the symbols of the subspaces."""
        kind = self.kind
        first = ["w ← ρ·y"] if kind.has_weights else []
        products = {"diag": ("M − x∘x", ""), "full": ("M − x⊗x", ""), "tied": ("M − x⊗x", "")}
        of_moment, divided = products.get(str(kind.covariance), ("(M − x·x)", "/d"))
        if kind.is_estimated:
            first.append(f"S ← {of_moment}{divided} + {self.regularisation:g}")
        log_weight = "log w + " if kind.weights == "free" else ""
        if kind.family == "bernoulli":
            second = ["η ← log x − log(1−x)", f"κ ← {log_weight}Σ log(1−x)"]
        elif kind.family == "poisson":
            second = ["η ← log x", f"κ ← {log_weight or '0 '}− Σ x".replace("+ −", "−")]
        elif kind.is_limit:
            second = ["η ← 2x", "Λ ← −1", "κ ← −x·x"]
        else:
            variance = "S" if kind.is_estimated else f"{kind.covariance:g}"
            matrix = kind.covariance in ("full", "tied")
            inverse = "S⁻¹x" if matrix else f"x/{variance}"
            det = "log|S|" if matrix else f"Σ log {variance}"
            second = [
                f"η ← {inverse}",
                "Λ ← −½S⁻¹" if matrix else f"Λ ← −½/{variance}",
                f"κ ← {log_weight or '0 '}− ½({det} + x·η + d log 2π)".replace("+ −", "−"),
            ]
        names = [f"N[{', '.join(formulas)}]" if formulas else "" for formulas in (first, second)]
        return names[0], names[1]

    def _moment_units(self, space: Space) -> Iterator[Unit]:
        """Yield units for: weight = <shares, own code>; covariance = moment - mean x mean + reg."""
        kind = self.kind
        x, one = _places(space, POSITION), _places(space, ONE)[0]
        if kind.has_weights:
            (weight,) = _places(space, WEIGHT)
            shares, code = _places(space, SHARES), _places(space, ASSIGNMENT)
            for share, own in zip(shares, code, strict=True):
                yield _product(share, own, weight)
        if not kind.is_estimated:
            return
        moment, covariance, d = _places(space, MOMENT), _places(space, COVARIANCE), len(x)
        pairs = kind.pairs(d)
        for i, (p, q) in enumerate(pairs):
            yield _product(moment[i], None, covariance[i])
            yield _product(x[p], x[q], covariance[i], -1.0)
            if p == q:
                yield _product(one, None, covariance[i], self.regularisation)
        if not pairs:  # the mean of the variances, |x|^2 being their sum
            yield _product(moment[0], None, covariance[0], 1 / d)
            for p in x:
                yield _product(p, p, covariance[0], -1 / d)
            yield _product(one, None, covariance[0], self.regularisation)

    def _natural_units(self, space: Space) -> Iterator[Iterator[Unit]]:
        """Yield the layers of units that write the natural parameters."""
        kind = self.kind
        x, one = _places(space, POSITION), _places(space, ONE)[0]
        linear, (constant,) = _places(space, LINEAR), _places(space, CONSTANT)
        log_weight = iter(
            [_logarithm(_places(space, WEIGHT)[0], constant)] if kind.weights == "free" else []
        )
        normaliser = iter([_product(one, None, constant, -0.5 * len(x) * LOG_2_PI)])
        if kind.family == "bernoulli":
            complements = [((one, 1.0), (p, -1.0)) for p in x]
            yield chain(
                (_logarithm(p, target) for p, target in zip(x, linear, strict=True)),
                (
                    Unit("logarithm", left, None, target, -1.0)
                    for left, target in zip(complements, linear, strict=True)
                ),
                (Unit("logarithm", left, None, constant) for left in complements),
                log_weight,
            )
        elif kind.family == "poisson":
            logs = (_logarithm(p, target) for p, target in zip(x, linear, strict=True))
            yield chain(logs, (_product(p, None, constant, -1.0) for p in x), log_weight)
        elif kind.is_fixed:
            yield chain(self._fixed_units(space), log_weight)
        elif kind.covariance in ("full", "tied"):
            yield from self._sweeps(space)
            # the matrix is now minus the precision
            cell, quadratic = _cells(kind, space), _places(space, QUADRATIC)
            d = range(len(x))
            yield (_product(cell[p, q], x[q], linear[p], -1.0) for p in d for q in d)
            yield chain(
                (_product(p, q, constant, -0.5) for p, q in zip(x, linear, strict=True)),
                # an entry off the diagonal stands for two of the matrix
                (_product(cell[p, p], None, cell[p, p], -0.5) for p in d),
                normaliser,
                log_weight,
            )
            assert len(quadratic) == len(set(cell.values()))
        else:
            variances, quadratic = _places(space, COVARIANCE), _places(space, QUADRATIC)
            of_column = variances if len(variances) == len(x) else variances * len(x)
            pairs = zip(variances, quadratic, strict=True)
            columns = list(zip(of_column, x, linear, strict=True))
            yield chain(
                (_reciprocal(v, None, target, -0.5) for v, target in pairs),
                (_reciprocal(v, p, target) for v, p, target in columns),
                (_logarithm(v, constant, -0.5) for v, _, _ in columns),
            )
            products = (_product(p, target, constant, -0.5) for _, p, target in columns)
            yield chain(products, normaliser, log_weight)

    def _fixed_units(self, space: Space) -> Iterator[Unit]:
        """Yield units for the natural parameters of a given variance, which are polynomials."""
        assert not isinstance(self.kind.covariance, str)
        variance, limit = float(self.kind.covariance), self.kind.is_limit
        # in the limit the scores are minus squared distances, as with the variance 1/2
        precision = 2.0 if limit else 1 / variance
        x, (one,) = _places(space, POSITION), _places(space, ONE)
        (quadratic,), (constant,) = _places(space, QUADRATIC), _places(space, CONSTANT)
        yield _product(one, None, quadratic, -0.5 * precision)
        for p, target in zip(x, _places(space, LINEAR), strict=True):
            yield _product(p, None, target, precision)
            yield _product(p, p, constant, -0.5 * precision)
        if not limit:
            log_det = len(x) * (LOG_2_PI + math.log(variance))
            yield _product(one, None, constant, -0.5 * log_det)

    def _sweeps(self, space: Space) -> Iterator[Iterator[Unit]]:
        """Yield the layers of d sweeps, which turn S into minus its inverse (Gauss-Jordan).

        A sweep takes three layers: the first divides the pivot's column by the pivot, into LINEAR,
        which is free yet; the second subtracts products of columns and clears that column; the
        third moves LINEAR there. Clearing and moving in one layer would add numbers of the size of
        S to numbers of the size of its inverse, and lose the smaller ones. Pivots of a positive
        definite matrix are positive, so that no rows need be exchanged.
        """
        cell, d = _cells(self.kind, space), range(space.size(POSITION))
        covariance, quadratic = _places(space, COVARIANCE), _places(space, QUADRATIC)
        column, (constant,) = _places(space, LINEAR), _places(space, CONSTANT)
        yield (_product(s, None, t) for s, t in zip(covariance, quadratic, strict=True))
        for k in d:
            pivot, others = cell[k, k], [p for p in d if p != k]
            yield chain(
                (_reciprocal(pivot, cell[p, k], column[p]) for p in others),
                iter([_reciprocal(pivot, None, column[k]), _logarithm(pivot, constant, -0.5)]),
            )
            yield chain(
                (
                    _product(column[p], cell[k, q], cell[p, q], -1.0)
                    for p in others
                    for q in others
                    if p <= q
                ),
                (_product(cell[p, k], None, cell[p, k], -1.0) for p in d),
            )
            yield chain(
                (_product(column[p], None, cell[p, k]) for p in others),
                iter([_product(column[k], None, pivot, -1.0)]),
                (_product(place, None, place, -1.0) for place in column),
            )


def _places(space: Space, subspace: Subspace) -> list[int]:
    """Return the coordinates of a subspace."""
    span = space.span(subspace)
    return list(range(span.start, span.stop))


def _cells(kind: MixtureKind, space: Space) -> dict[tuple[int, int], int]:
    """Return the coordinate of each entry of the symmetric matrix in QUADRATIC."""
    pairs = kind.pairs(space.size(POSITION))
    upper = dict(zip(pairs, _places(space, QUADRATIC), strict=True))
    return upper | {(q, p): place for (p, q), place in upper.items()}


def _product(left: int, right: int | None, target: int, factor: float = 1.0) -> Unit:
    return Unit("product", ((left, 1.0),), right, target, factor)


def _reciprocal(left: int, right: int | None, target: int, factor: float = 1.0) -> Unit:
    return Unit("reciprocal", ((left, 1.0),), right, target, factor)


def _logarithm(left: int, target: int, factor: float = 1.0) -> Unit:
    return Unit("logarithm", ((left, 1.0),), None, target, factor)


class MixtureNetwork(nn.Module):
    """The module of `NaturalParameters`: networks, and the attentions between two of them.

    Each step adds to the tokens, as a residual; `forward` returns the sum of what they add.
    """

    def __init__(self, part: NaturalParameters, space: Space) -> None:
        super().__init__()
        before, after = part.units(space)
        self.before = nn.ModuleList(GatedNetwork(units, space.dim) for units in before if units)
        self.pooling = nn.ModuleList(Attention(head, space) for head in part.pooling)
        self.after = nn.ModuleList(GatedNetwork(units, space.dim) for units in after)
        self.output = nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return what is added to decoder tokens (..., k, dim)."""
        c = tokens
        for network in self.before:
            c = c + network(c)
        if len(self.pooling):
            # both attentions see the same tokens, as the heads of a layer do
            c = c + sum(head(c, c) for head in self.pooling)
        for network in self.after:
            c = c + network(c)
        return self.output(c - tokens)


# --- the recipe -----------------------------------------------------------------------------------
def mixture(
    covariance: Covariance | float = "full",
    family: Family = "gaussian",
    weights: Weights = "free",
    regularisation: float = 1e-6,
) -> Recipe:
    r"""Return the recipe of EM for a mixture of Gaussian, Bernoulli or Poisson components.

    The encoder's dot product of statistic and natural parameters is $\log \pi_j p_j(x)$, so its
    soft-max is the E-step. The decoder averages the statistic by responsibilities and, by a head
    with uniform attention, the responsibilities themselves; its network computes the natural
    parameters: the M-step.

    Parameters
    ----------
    covariance : {"full", "tied", "diag", "spherical", "shared"} or float, default="full"
        The covariance matrices of Gaussian components: any, one for all, diagonal, a multiple of
        the identity, or one such multiple for all. A number is the variance of all components and
        never changes; 0 is the limit, Lloyd's algorithm.
    family : {"gaussian", "bernoulli", "poisson"}, default="gaussian"
        The distribution of a component. Columns of the last two are independent within it.
    weights : {"free", "equal"}, default="free"
        Whether the weights of the components are estimated, or equal.
    regularisation : float, default=1e-6
        Added to estimated variances, as `reg_covar` of scikit-learn: a weight of the network.

    Returns
    -------
    Recipe
        The recipe. Weights and covariances of the first layer are passed to the circuit as
        `start`.

    See Also
    --------
    soft : The same with a fixed variance 1 / (2 gamma) and equal weights.
    lloyd : The limit of variance 0.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> recipe = lf.recipes.mixture("diag")
    >>> print(recipe.equation().splitlines()[0])
    X ← X + A⟨⟩[1](X, C; I[η←x Λ←M κ←1], I[η Λ κ], I[y]) + A₂[∞](X, X; I[x], I[x], −I[y])
    >>> points = torch.tensor([[-1.0], [1.0], [9.0], [11.0]], dtype=torch.float64)
    >>> circuit = lf.Circuit(recipe, n_features=1, n_clusters=2)
    >>> trace = circuit(points, points[[0, 3]], n_layers=8, names_filter="layers.7.decoder_next")
    >>> found = circuit.tokens.parameters(circuit.space, trace["layers.7.decoder_next"])
    >>> trace.centers[-1].flatten().round(decimals=6).tolist()
    [0.0, 10.0]
    >>> found["covariances"].flatten().round(decimals=5).tolist()
    [1.0, 1.0]
    """
    kind = MixtureKind(covariance, family, weights)
    own, position = on(ASSIGNMENT), on(POSITION)
    statistic, natural = kind.statistic, kind.natural
    phi = sum((copy(one, other) for one, other in zip(statistic, natural, strict=True)), start=on())
    assigns: HeadActivation = LimitingSoftmax("first") if kind.is_limit else Softmax(1.0)
    averages: HeadActivation = LimitingSoftmax() if kind.is_limit else Linear()
    # what the decoder writes again: everything but the constant and the codes
    written = tuple(s for s in kind.subspaces if s not in (ONE, ASSIGNMENT))
    means = tuple(s for s in statistic if s != ONE)
    heads = [Head(DotProduct(), averages, own, own, on(*means))]
    if kind.has_weights:
        heads.append(Head(DotProduct(), Linear(), on(ONE), on(ONE), copy(ASSIGNMENT, SHARES)))
    names = {"gaussian": "Gaussian", "bernoulli": "Bernoulli", "poisson": "Poisson"}
    return Recipe(
        name="mixture",
        tokens=MixtureTokens(
            kind.subspaces, OneHot(), kind=kind, regularisation=float(regularisation)
        ),
        encoder_cross=Head(DotProduct(), assigns, phi, on(*natural), own),
        encoder_self=Head(Euclidean(), LimitingSoftmax(), position, position, -own),
        decoder_cross=sum_of_heads(*heads),
        decoder_self=Head(DotProduct(), LimitingSoftmax(), own, own, -on(*written)),
        feedforward=NaturalParameters(kind, float(regularisation)),
        algorithm=f"EM of a {names[family]} mixture",
        appendix="docs/mixtures.md",
    )
