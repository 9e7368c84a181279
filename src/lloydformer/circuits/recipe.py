"""A recipe: one layer of the transformer, as a value.

`Recipe` is the description; `layer.Layer` is the module that runs it, `circuit.Circuit` runs
several. Parts that do not fit together are refused when a recipe is made (`_problems`).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, cast, runtime_checkable

from torch import nn

from lloydformer.circuits.activations import Activation, Gumbel, LimitingSoftmax, Linear
from lloydformer.circuits.activations.contract import Amount, Reach
from lloydformer.circuits.activations.straight_through import forward_of
from lloydformer.circuits.display import latex_term, plain_term, recipe_html
from lloydformer.circuits.feedforward import FeedForward
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import Norm
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import (
    AFFINITY,
    ASSIGNMENT,
    POSITION,
    QUADRATIC,
    SQUARED_NORM,
    Space,
    Subspace,
)
from lloydformer.circuits.tokens import Binary, Tokens

SLOTS = ("encoder_cross", "encoder_self", "affinity", "decoder_cross", "decoder_self")


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

    def build(self, space: Space) -> nn.Module:
        """Return the module for tokens of this space."""
        ...


@dataclass(frozen=True)
class Stated:
    """The parts for which a recipe's `algorithm` and `appendix` were stated, and these words."""

    parts: tuple[object, ...]
    algorithm: str
    appendix: str


@dataclass(frozen=True)
class Recipe:
    r"""One layer of a transformer as a value: tokens, heads, norm and feed-forward network.

    $X \leftarrow X + \mathrm{encoder\_self}(X, X) + \mathrm{encoder\_cross}(X, C)$, then
    $C \leftarrow C + \mathrm{decoder\_self}(C, C) + \mathrm{decoder\_cross}(C, X)$, then the
    norm and the feed-forward network (eq:l2-trf-updates). `dataclasses.replace` makes another
    recipe; recipes with equal names and parts are equal and hashable.

    `algorithm` and `appendix` are stated for the parts that a recipe is made with. If `replace`
    changes a part, they are cleared, unless new ones are passed.

    Parameters
    ----------
    name : str
        Name of the recipe.
    tokens : Tokens
        The subspaces of a token and the codes of clusters.
    encoder_cross : Head
        Points attend to centers: the assignment.
    encoder_self : Head
        Points attend to points.
    decoder_cross : Head
        Centers attend to points: the update.
    decoder_self : Head
        Centers attend to centers.
    affinity : Head or None, default=None
        The additional encoder attention of the lifted robust circuit (eq rob update).
    norm : Norm or None, default=None
        Normalisation of the new centers.
    feedforward : FeedForward or None, default=None
        Network that acts on each decoder token.
    numbers : Modulation or None, default=None
        Computes, from the points and centers, the numbers that heads leave open.
    algorithm : str, default=""
        The algorithm, as the table tab:comp-alg names it.
    appendix : str, default=""
        Where the construction is proved or explained: a label of the paper, a page, or nothing.
    embeds_again : bool, default=False
        Whether tokens are embedded again before each layer, so that a layer passes on nothing but
        its centers.
    encoder_norm : Norm or None, default=None
        Normalisation of the points, after the encoder's attentions (fig:gen-arch).
    encoder_feedforward : FeedForward or None, default=None
        Network that acts on each encoder token, after the encoder's norm (fig:gen-arch).
    stated : Stated or None, default=None
        The parts that `algorithm` and `appendix` were stated for, which `replace` passes on. Pass
        None in `replace` to state the same words for other parts.

    Attributes
    ----------
    heads : dict of str to Head
        The heads by name, in the order in which a layer runs them.
    slots : dict of str to dict
        The heads of each slot.
    ties : str or None
        The rule for points that are equally near to several centers.
    translation_invariant : bool
        Whether results move along with the data.
    free : bool
        Whether some of the matrices are learned.

    Raises
    ------
    ValueError
        If parts do not fit together. The message names the slot and the reason.

    See Also
    --------
    Circuit : Runs a recipe.
    lloydformer.recipes : The named recipes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import lloydformer as lf
    >>> from lloydformer.circuits.activations import Linear, Softmax
    >>> lloyd = lf.recipes.lloyd()
    >>> soft = replace(
    ...     lloyd,
    ...     name="soft",
    ...     encoder_cross=replace(lloyd.encoder_cross, activation=Softmax(1.0)),
    ...     decoder_cross=replace(lloyd.decoder_cross, activation=Linear()),
    ... )
    >>> soft == lf.recipes.soft(1.0)
    True
    >>> soft.algorithm  # "Lloyd's algorithm" was stated for other parts
    ''
    """

    name: str
    tokens: Tokens
    encoder_cross: Head
    encoder_self: Head
    decoder_cross: Head
    decoder_self: Head
    affinity: Head | None = None
    norm: Norm | None = None
    feedforward: FeedForward | None = None
    numbers: Modulation | None = None
    algorithm: str = field(default="", compare=False)
    appendix: str = field(default="", compare=False)
    embeds_again: bool = False
    # After the fields of 0.2: files of recipes, and calls by position, do not have them.
    encoder_norm: Norm | None = field(default=None, metadata={"later": True})
    encoder_feedforward: FeedForward | None = field(default=None, metadata={"later": True})
    stated: Stated | None = field(default=None, compare=False, repr=False)

    _separated_head: ClassVar[Head | None]  # of each instance; no field, so not a part

    def __hash__(self) -> int:
        # The name alone: every fit looks its plan up by its recipe, and hashing all parts would
        # take 40 of the 650 µs of a small fit.
        return hash(self.name)

    def __post_init__(self) -> None:
        for slot, reason in _problems(self):
            raise ValueError(f"{slot}: {reason} (in recipe {self.name!r})")
        # found once: torch.compile cannot trace the search, and every layer asks
        object.__setattr__(self, "_separated_head", _find_separated(self))
        # `replace` passes `stated` on. If parts differ from those, words that did not change were
        # stated for another algorithm: a variant must not claim its proof.
        other = (self.tokens, self.norm, self.feedforward, self.numbers, self.embeds_again)
        encoder = (self.encoder_norm, self.encoder_feedforward)
        parts = (*(getattr(self, slot) for slot in SLOTS), *other, *encoder)
        if self.stated is not None and self.stated.parts != parts:
            for word in ("algorithm", "appendix"):
                if getattr(self, word) == getattr(self.stated, word):
                    object.__setattr__(self, word, "")
        object.__setattr__(self, "stated", Stated(parts, self.algorithm, self.appendix))

    @property
    def heads(self) -> dict[str, Head]:
        """The heads by name, in the order in which a layer runs them.

        The first head of a slot has its name; further ones are `decoder_cross_1` and so on.

        See Also
        --------
        Recipe.slots : The same heads, grouped by slot.

        Examples
        --------
        >>> import lloydformer as lf
        >>> list(lf.recipes.lloyd().heads)
        ['encoder_cross', 'encoder_self', 'decoder_cross', 'decoder_self']
        """
        return {name: head for slot in self.slots.values() for name, head in slot.items()}

    @property
    def slots(self) -> dict[str, dict[str, Head]]:
        """The heads of each slot that is used, by slot and name.

        See Also
        --------
        Recipe.heads : All heads in one dictionary.

        Examples
        --------
        >>> import lloydformer as lf
        >>> list(lf.recipes.symmetric().slots["encoder_cross"])
        ['encoder_cross', 'encoder_cross_1', 'encoder_cross_2']
        """
        slots = {slot: head for slot in SLOTS if (head := getattr(self, slot)) is not None}
        return {
            slot: {slot: head} | {f"{slot}_{i}": h for i, h in enumerate(head.beside, start=1)}
            for slot, head in slots.items()
        }

    @property
    def ties(self) -> str | None:
        """The rule for tied points, "first" or "average"; None if assignments are soft.

        See Also
        --------
        lloydformer.circuits.activations.LimitingSoftmax : The activation with this rule.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.lloyd().ties, lf.recipes.soft().ties
        ('first', None)
        """
        return getattr(self.encoder_cross.activation, "ties", None)

    @property
    def translation_invariant(self) -> bool:
        """True if results move along with the data; a circuit then centers the data.

        See Also
        --------
        Circuit.embed : Centers the data.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.lloyd().translation_invariant, lf.recipes.spherical().translation_invariant
        (True, False)
        """
        if self.free or self.norm is not None or self.encoder_norm is not None:
            return False
        networks = (self.feedforward, self.encoder_feedforward)
        if not all(getattr(network, "translation_invariant", True) for network in networks):
            return False
        # Heads that read positions must do so by distances: as such, by lifted dot products, or by
        # dot products of statistics with squares, which are log densities of Gaussians.
        readers = [h for h in self.heads.values() if POSITION in h.query.subspaces]
        lifted = {SQUARED_NORM, QUADRATIC}
        return all(isinstance(h.score, Euclidean) or lifted & h.query.subspaces for h in readers)

    @property
    def free(self) -> bool:
        """True if some of the matrices are learned and not constructed.

        See Also
        --------
        lloydformer.recipes.learned : A recipe with learned matrices.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.learned().free, lf.recipes.lloyd().free
        (True, False)
        """
        heads = self.heads.values()
        return any(isinstance(p, Dense) for head in heads for p in head.projections.values())

    @property
    def separated(self) -> bool:
        """True if a head keeps clusters apart by the separation.

        See Also
        --------
        Recipe.separation : The separation of a layer.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.trimmed().separated, lf.recipes.lloyd().separated
        (True, False)
        """
        return self._separated_head is not None

    @property
    def given_separation(self) -> float | None:
        """The separation that the recipe fixes; None if it is chosen from the data.

        See Also
        --------
        Recipe.separation : The separation of a layer.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.medoids().given_separation, lf.recipes.trimmed().given_separation
        (100.0, None)
        """
        return self._separated_head.separation if self._separated_head else None

    def separation(self, reach: Reach, n_clusters: int, eps: float) -> Amount:
        """Return the paper's delta for this layer: the one given, or a value near its lower bound.

        A point that is tied between m centers is lowered only by the factor 1 - 1/m, which needs
        k^2 times the separation.

        Parameters
        ----------
        reach : Reach
            Squared distances of points and centers.
        n_clusters : int
            The number of centers k.
        eps : float
            Relative precision of the scores.

        Returns
        -------
        float or torch.Tensor
            The separation; 0 if no head uses it.

        See Also
        --------
        Recipe.gap : The range of scores of a cluster's own points.

        Examples
        --------
        >>> import lloydformer as lf
        >>> from lloydformer.circuits.activations import Reach
        >>> reach = Reach(nearest=1.0, farthest=50.0)
        >>> lf.recipes.robust(0.5).separation(reach, n_clusters=4, eps=1e-16)
        1.5
        >>> lf.recipes.trimmed().separation(reach, n_clusters=4, eps=1e-16)
        50.0
        """
        if not self.separated:
            return 0.0
        if self.given_separation is not None:
            return self.given_separation
        # `_problems` has refused activations without `lowering`
        activation = cast(Activation, forward_of(self.decoder_cross.activation))
        lowering = activation.lowering(reach, eps)
        # other clusters' scores are lowered by 2 delta, so half of the lowering suffices
        return lowering * n_clusters**2 if self.ties == "average" else lowering / 2

    def gap(self, separation: Amount, n_clusters: int) -> Amount:
        """Return how far below a cluster's best score the scores of its own points can be.

        Scores of points in other clusters are lower.

        Parameters
        ----------
        separation : float or torch.Tensor
            The separation of the layer.
        n_clusters : int
            The number of centers k.

        Returns
        -------
        float or torch.Tensor
            The largest difference; infinity if clusters are not separated by scores.

        See Also
        --------
        Recipe.separation : The separation of the layer.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.trimmed().gap(separation=9.0, n_clusters=4)
        9.0
        """
        if not self.separated:
            return math.inf
        return separation / (2 * n_clusters**2) if self.ties == "average" else separation

    def depth(self, n_clusters: int) -> int:
        """Return the number of layers that the recipe counts as in the numbering of the noise.

        Parameters
        ----------
        n_clusters : int
            The number of centers k.

        Returns
        -------
        int
            Always 1; `Staged.depth` may be larger.

        See Also
        --------
        lloydformer.circuits.stages.Staged : Recipes that count as several layers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.recipes.lloyd().depth(n_clusters=3), lf.recipes.relocating(2).depth(n_clusters=3)
        (1, 5)
        """
        return 1

    def row(self) -> dict[str, str]:
        """Return the recipe's row of the table tab:comp-alg.

        Returns
        -------
        dict of str to str
            The cells by column. A cell that ends in … is that of the first of several heads.

        See Also
        --------
        lloydformer.recipes.table : The recipes of the table.

        Examples
        --------
        >>> import lloydformer as lf
        >>> " | ".join(lf.recipes.trimmed().row().values())
        'ℓ2-LSMA | ℓ2-LSMA | ⟨,⟩-LSMA | ℓ2-NMA | - | - | *Trimmed k-means | sec:methods:robust'
        """
        heads = {
            "Enc-SA": self.encoder_self,
            "Enc-CA": self.encoder_cross,
            "Dec-SA": self.decoder_self,
            "Dec-CA": self.decoder_cross,
        }
        return {
            **{column: h.cell + (" …" if h.beside else "") for column, h in heads.items()},
            "Norm": "✓" if self.norm or self.encoder_norm else "-",
            "NLT": "✓" if self.feedforward or self.encoder_feedforward else "-",
            "Algorithm": self.algorithm,
            "Appendix": self.appendix,
        }

    def equation(self, latex: bool = False) -> str:
        """Return the updates of the layer, one line each.

        Parameters
        ----------
        latex : bool, default=False
            Whether to write LaTeX instead of plain text.

        Returns
        -------
        str
            The equation.

        See Also
        --------
        Recipe.row : The short form, as in the paper's table.

        Examples
        --------
        >>> import lloydformer as lf
        >>> print(lf.recipes.spherical().equation().splitlines()[-1])
        C ← RMS(C)
        """
        center, arrow = (r"\tilde C", r"\gets") if latex else ("C", "←")
        term = latex_term if latex else plain_term
        part = {
            slot: " + ".join(term(slot, head) for head in heads.values())
            for slot, heads in self.slots.items()
        }
        updates = [("X", f"X + {part['encoder_cross']} + {part['encoder_self']}")]
        if self.affinity:
            updates.append(("X", f"X + {part['affinity']}"))
        if self.encoder_norm:
            updates.append(("X", f"{self.encoder_norm.symbol}(X)"))
        if self.encoder_feedforward:
            updates.append(("X", f"X + {self.encoder_feedforward.symbol}(X)"))
        updates.append((center, f"{center} + {part['decoder_cross']} + {part['decoder_self']}"))
        if self.norm:
            updates.append((center, f"{self.norm.symbol}({center})"))
        if self.feedforward:
            # a network of several steps writes its own lines
            steps = getattr(self.feedforward, "updates", None)
            whole = [(center, f"{center} + {self.feedforward.symbol}({center})")]
            updates += whole if steps is None else steps(center, latex)
        lines = [f"{tokens} {arrow} {update}" for tokens, update in updates]
        return (" \\\\\n" if latex else "\n").join(lines)

    def __str__(self) -> str:
        row = " | ".join(filter(None, self.row().values()))
        return f"{self.name}: {row}\n{self.equation()}"

    def _repr_html_(self) -> str:
        return recipe_html(self.name, self.row(), self.equation())


def _find_separated(recipe: Recipe) -> Head | None:
    """Return the first head whose projections depend on the separation."""
    return next((head for head in recipe.heads.values() if head.separated), None)


def _problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield every reason why the parts do not fit together, with the slot to change."""
    yield from _wrong_kinds(recipe)
    has = set(recipe.tokens.subspaces)
    kinds = set(recipe.numbers.kinds if recipe.numbers else ())
    for slot, head in recipe.heads.items():
        activation = forward_of(head.activation)
        if missing := head.subspaces - has:
            lacks = f"it uses {_names(missing)}, which these tokens do not have"
            yield slot, f"{lacks}; use lifted tokens"
        if isinstance(activation, Linear) and (AFFINITY in head.key.subspaces or head.separated):
            yield slot, "linear attention cannot keep clusters apart; use soft-max"
        if isinstance(activation, Gumbel) and slot not in recipe.slots:
            yield slot, "only the first head of a slot can draw noise; use another activation"
        if unset := {number.kind for number in head.numbers} - kinds:
            yield slot, f"no part sets its numbers {sorted(unset)}; pass numbers= that does"
    separated, weighing = _find_separated(recipe), forward_of(recipe.decoder_cross.activation)
    if separated and separated.separation is None and not isinstance(weighing, Activation):
        yield (
            "decoder_cross",
            f"{weighing!r} has no lowering(reach, eps), by which the separation is chosen from the "
            "data; add it, or give the head a separation",
        )
    if recipe.numbers and (missing := recipe.numbers.subspaces - has):
        yield "numbers", f"they write {_names(missing)}, which these tokens do not have"
    if SQUARED_NORM in has and recipe.feedforward is None:
        yield "feedforward", "lifted tokens need one, which updates their squared norm"
    for slot in ("feedforward", "encoder_feedforward"):
        network: FeedForward | None = getattr(recipe, slot)
        if network and (missing := network.subspaces - has):
            lacks = f"it writes {_names(missing)}, which these tokens do not have"
            yield slot, f"{lacks}; use lifted tokens"
    if isinstance(recipe.tokens.codes, Binary) and not recipe.free:
        yield from _binary_problems(recipe)


def _names(subspaces: Iterable[Subspace]) -> str:
    return ", ".join(sorted(subspace.name for subspace in subspaces))


def _wrong_kinds(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield the slots that hold something other than a part of their kind."""
    optional = {"affinity": Head, "norm": Norm, "feedforward": FeedForward, "numbers": Modulation}
    optional |= {"encoder_norm": Norm, "encoder_feedforward": FeedForward}
    required = dict.fromkeys(
        ("encoder_cross", "encoder_self", "decoder_cross", "decoder_self"), Head
    )
    for slot, kind in {"tokens": Tokens, **optional, **required}.items():
        part = getattr(recipe, slot)
        absent = part is None and slot in optional
        if not absent and not isinstance(part, kind):
            yield slot, f"found {part!r}, which is not a {kind.__name__}"


def _binary_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield the heads that use binary codes for more than a comparison for equality."""
    if forward_of(recipe.encoder_cross.activation) != LimitingSoftmax(ties="first"):
        yield (
            "encoder_cross",
            "binary codes cannot hold a point shared by two clusters (averaged codes collide); "
            'use LimitingSoftmax(ties="first") or one-hot codes',
        )
    cross = recipe.decoder_cross
    alone = cross.query.subspaces == {ASSIGNMENT} and isinstance(cross.score, DotProduct)
    if not (alone and forward_of(cross.activation) == LimitingSoftmax()):
        yield (
            "decoder_cross",
            "binary codes can be distinguished only by limiting soft-max of their dot product; "
            "use one-hot codes",
        )
