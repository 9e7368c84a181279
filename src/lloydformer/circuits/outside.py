"""Numbers that attention does not compute, but that a layer takes from the data.

For instance the origin, the separation and the tolerances of ties. docs/walk.md lists them and what
each is for. `Circuit(..., as_in_paper=True)` runs without them, as the paper prints its layers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lloydformer.circuits.activations import Gumbel, LimitingSoftmax, Linear, Lots, Reach, Softmax
from lloydformer.circuits.activations.straight_through import forward_of, with_forward
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, rounding_error
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION, Space
from lloydformer.circuits.tokens import Binary, DecoderTokens, EncoderTokens, OneHot
from lloydformer.numerics.clusters import squared_distances

# Returns the uncertainty of scores, from the head, its queries and its keys.
Uncertainty = Callable[[Head, Tensor, Tensor], Tensor]

# Upper bounds of squared distances are raised by this factor, far above their rounding errors.
_ROOM = 1.001


def bound_distances(
    space: Space, encoder: EncoderTokens, decoder: DecoderTokens
) -> Float[Tensor, "*b 1 1"]:
    """Return an upper bound of the squared distances of points and centers, for each problem."""
    far = [space.read(tokens.detach(), POSITION).norm(dim=-1) for tokens in (encoder, decoder)]
    bound = _ROOM * (far[0].amax(dim=-1) + far[1].amax(dim=-1)).square()
    return torch.where(bound > 0, bound, 1.0)[..., None, None]


def measure_reach(
    space: Space, encoder: EncoderTokens, decoder: DecoderTokens
) -> tuple[Reach, Bool[Tensor, "*b k 1"]]:
    """Return the squared distances that a separation depends on, for each problem of a batch.

    Also returns which clusters have all points as their own, as empty ones do: they need no
    separation, and their distances do not count.
    """
    x, c = encoder.detach(), decoder.detach()
    codes = space.read(x, ASSIGNMENT), space.read(c, ASSIGNMENT)
    squares = squared_distances(space.read(x, POSITION), space.read(c, POSITION))  # (n, k)
    near, far, everyone = [], [], []
    # A cluster's own points have the code nearest to its own: by distance, or by product in the
    # lifted form. The two differ if ties are averaged and a cluster is empty; the larger distances
    # cover both. The tolerance is that of `share_uncertainty`.
    for away in (squared_distances(*codes), -codes[0] @ codes[1].mT):
        own = away <= away.amin(dim=-2, keepdim=True) + 1 / (4 * squares.shape[-1] ** 2)
        everyone.append(own.all(dim=-2, keepdim=True))  # (1, k)
        counted = squares.masked_fill(everyone[-1], 0.0)
        near.append(counted.masked_fill(~own, torch.inf).amin(dim=-2, keepdim=True))
        far.append(counted.masked_fill(~own, 0.0).amax(dim=-2, keepdim=True))
    largest = [torch.cat(part, dim=-1).amax(dim=-1, keepdim=True) for part in (near, far)]
    return Reach(*(_ROOM * distance for distance in largest)), everyone[0].mT


def choose_uncertainty(slot: str, head: Head) -> Uncertainty | None:
    """Return the function that measures how uncertain a head's scores are; None if they are exact.

    Self-attention compares exactly: a point is at distance 0 from itself.
    """
    activation = forward_of(head.activation)
    if not isinstance(activation, LimitingSoftmax) or activation.ties == "first":
        return None
    by_code = isinstance(head.score, DotProduct) and head.query.subspaces == {ASSIGNMENT}
    if slot == "decoder_cross" and by_code:
        return share_uncertainty
    return score_uncertainty if slot == "encoder_cross" else None


def score_uncertainty(head: Head, queries: Tensor, keys: Tensor) -> Tensor:
    """Return the rounding error of each score."""
    return rounding_error(head.score, queries, keys)


def share_uncertainty(head: Head, queries: Tensor, keys: Tensor) -> Tensor:
    """Return 1/(4 k^2): different shares, 1/m with m at most k, are 1/k^2 or more apart."""
    *batch, k, _ = queries.shape
    return queries.new_full((*batch, 1, 1), 1 / (4 * k**2))


def has_log_shares(recipe: Recipe) -> bool:
    """Return whether linear attention of the decoder reads the soft-max shares of the encoder.

    Shares can be too small for a float where their ratios are not; a layer then uses their
    logarithms.
    """
    assigns = recipe.encoder_cross
    return (
        isinstance(assigns.activation, Softmax)
        and isinstance(recipe.tokens.codes, OneHot)
        and assigns.value == on(ASSIGNMENT)
        and not assigns.beside
        and any(map(weighs_by_share, recipe.slots["decoder_cross"].values()))
    )


def weighs_by_share(head: Head) -> bool:
    """Return whether the head weighs points by their shares: linear attention on their codes."""
    by_code = isinstance(head.score, DotProduct) and head.query == head.key == on(ASSIGNMENT)
    return by_code and isinstance(head.activation, Linear)


def has_noise(recipe: AnyRecipe) -> bool:
    """Return whether a head of the recipe draws noise."""
    if isinstance(recipe, Recipe):
        activations = (forward_of(head.activation) for head in recipe.heads.values())
        return any(isinstance(activation, Gumbel | Lots) for activation in activations)
    return any(read.lots for stage in recipe.stages.values() for read in stage.reads)


def with_printed_ties(recipe: AnyRecipe) -> Recipe:
    """Return the recipe with the paper's rule for ties, if its codes can be averaged.

    Raise `ValueError` for a staged recipe, which cannot run as printed.
    """
    if not isinstance(recipe, Recipe):
        raise ValueError(
            f"as_in_paper: found True for {recipe.name!r}, whose stages need a separation; use "
            "as_in_paper=False"
        )
    head, average = recipe.encoder_cross, LimitingSoftmax("average")
    first = forward_of(head.activation) == LimitingSoftmax("first")
    if not first or isinstance(recipe.tokens.codes, Binary):
        return recipe
    return replace(
        recipe, encoder_cross=replace(head, activation=with_forward(head.activation, average))
    )


@dataclass(frozen=True)
class Outside:
    """The numbers that one layer used and that attention does not compute.

    Parameters
    ----------
    origin : torch.Tensor of shape (..., 1, d)
        The vector that is subtracted from points and centers.
    ties : str or None
        The rule for tied points, "first" or "average"; None if assignments are soft.
    separation : torch.Tensor of shape (..., 1, 1) or None
        The paper's delta; None if no head uses it.
    gap : torch.Tensor of shape (..., k, 1) or None
        Scores lower than a center's best by more than this belong to other clusters; infinite
        for a center without points of its own, which uses all of them.
    tolerance : torch.Tensor of shape (..., n, k) or None
        Uncertainty of each score of the assignment; None if they are compared exactly.
    share_tolerance : float or None
        Uncertainty of the shares that the decoder compares; None if it compares none.
    log_shares : bool
        Whether the layer has the logarithms of soft shares, for centers with tiny ones.
    noise : int, tuple of int or None
        The seed of the noise; None if the layer draws none.

    See Also
    --------
    lloydformer.Trace : Holds one for each layer, as `outside`.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [5.0], [6.0]])
    >>> trace = lf.Circuit(lf.recipes.trimmed(), 1, 2)(points, points[[0, 3]], n_layers=1)
    >>> print(trace.outside[0])
    origin            [4.0]
    ties              first
    separation        1.001
    gap               1.001, 1.001
    """

    origin: Tensor
    ties: str | None = None
    separation: Tensor | None = None
    gap: Tensor | None = None
    tolerance: Tensor | None = None
    share_tolerance: float | None = None
    log_shares: bool = False
    noise: int | tuple[int, ...] | None = None

    def __str__(self) -> str:
        return "\n".join(f"{name:<18}{words}" for name, words in self.items())

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the value, in words, of each number that the layer used."""
        yield "origin", str(_round(self.origin.squeeze(-2).tolist()))
        if self.ties:
            yield "ties", self.ties
        for name in ("separation", "gap"):
            value: Tensor | None = getattr(self, name)
            if value is not None:
                yield name, ", ".join(f"{v:g}" for v in value.flatten().tolist())
        if self.tolerance is not None:
            yield "tolerance", f"at most {self.tolerance.max().item():.2g}"
        if self.share_tolerance is not None:
            yield "share_tolerance", f"{self.share_tolerance:.2g}"
        if self.log_shares:
            yield "log_shares", "yes"
        if self.noise is not None:
            yield "noise", f"seed {self.noise}"


def _round(numbers: list[Any]) -> list[Any]:
    """Return nested lists of numbers with four digits; adding 0.0 removes the sign of -0.0."""
    return [_round(n) if isinstance(n, list) else float(f"{n:.4g}") + 0.0 for n in numbers]


# What each number of `Outside` is, and what happens in a circuit as printed.
EXPLAINED: dict[str, tuple[str, str]] = {
    "origin": (
        "The median of each column, rounded so that subtracting it is exact. Points and centers "
        "are relative to it; it is added to the result.",
        "Data far from zero lose digits in each layer (docs/errata.md, 8).",
    ),
    "ties": (
        'The rule for a point that is equally near to several centers: "first" is argmin\'s, '
        '"average" is the paper\'s.',
        "Ties are averaged, and a center then ignores the points that it shares.",
    ),
    "separation": (
        "The paper's δ. If the recipe does not give it, each layer takes a value near the smallest "
        "sufficient one, from the distances of the points to their centers.",
        "It is the recipe's own, or 0, and points of other clusters have weight. The paper has 'a "
        "large positive constant'; too large a one costs digits.",
    ),
    "gap": (
        "The difference of scores within which norm-max counts points as a cluster's own.",
        "`keep` is a fraction of all points, not of the cluster. The text itself has one γ: "
        "`trimmed(inverse_temperature=γ)`.",
    ),
    "tolerance": (
        "The rounding error of each score of the assignment, where ties are averaged.",
        "A point exactly midway between two centers is given to one of them by rounding.",
    ),
    "share_tolerance": (
        "1/(4k²), the uncertainty of each share that a center compares: shares that are less than "
        "1/(2k²) apart count as equal.",
        "Duplicates are dropped: m copies of 1/m do not add up to 1.",
    ),
    "log_shares": (
        "The logarithms of soft shares, used for a center whose mean share is below √eps.",
        "A center far from all points is 0/0: its shares are too small for a float.",
    ),
    "noise": (
        "Gumbel noise, a function of seed, layer, head, cluster and row.",
        "The same: the paper's algorithm draws it as well.",
    ),
}
