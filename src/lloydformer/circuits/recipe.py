"""A recipe: one layer of the transformer, as a value."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lloydformer.circuits.activations import Gumbel, LimitingSoftmax, Linear
from lloydformer.circuits.feedforward import FeedForward
from lloydformer.circuits.heads import Head
from lloydformer.circuits.modulation import Modulation
from lloydformer.circuits.norms import Norm
from lloydformer.circuits.notation import latex_term, plain_term
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import Binary, Tokens


@dataclass(frozen=True)
class Recipe:
    r"""One layer: tokens, heads, norm and feed-forward network. Make another by `replace`.

    $X \leftarrow X + \mathrm{encoder\_self}(X, X) + \mathrm{encoder\_cross}(X, C)$, then
    $C \leftarrow C + \mathrm{decoder\_self}(C, C) + \mathrm{decoder\_cross}(C, X)$, then the
    norm and the feed-forward network (eq:l2-trf-updates). `affinity` is the additional encoder
    attention of the lifted robust circuit (eq rob update). `numbers` decides, from the state of
    the problem, the numbers that heads leave open. `embeds_again` makes new tokens of the points
    and the centers before each layer: all that one leaves to the next are its centers.

    A combination that makes no sense raises a `ValueError` that says why.
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
    algorithm: str = ""
    appendix: str = ""
    embeds_again: bool = False

    def __post_init__(self) -> None:
        for slot, reason in _refusals(self):
            raise ValueError(f"{slot}: {reason} (in recipe {self.name!r})")

    @property
    def heads(self) -> dict[str, Head]:
        """The heads by name, in the order in which a layer runs them.

        A head's name is its slot; those beside it are `decoder_cross_1`, `decoder_cross_2`.
        """
        return {name: head for slot in self.slots.values() for name, head in slot.items()}

    @property
    def slots(self) -> dict[str, dict[str, Head]]:
        """The heads of each slot that holds some."""
        slots = ("encoder_cross", "encoder_self", "affinity", "decoder_cross", "decoder_self")
        return {s: _named(s, head) for s in slots if (head := getattr(self, s)) is not None}

    @property
    def ties(self) -> str | None:
        """What becomes of a point between two centers; None where points are shared softly."""
        return getattr(self.encoder_cross.activation, "ties", None)

    @property
    def translation_invariant(self) -> bool:
        """Do its results move along with the data? Then a circuit centers them."""
        if self.free:
            return False
        moved = [h for h in self.heads.values() if POSITION in h.query.subspaces]
        return self.norm is None and all(
            isinstance(h.score, Euclidean) or SQUARED_NORM in h.query.subspaces for h in moved
        )

    @property
    def free(self) -> bool:
        """Are some of its matrices learned, not written by hand?"""
        return any(
            isinstance(p, Dense) for head in self.heads.values() for p in head.projections.values()
        )

    def separation(self, reach: float, n_clusters: int, eps: float) -> float:
        """The number that keeps clusters apart in this layer, chosen near its bound if free.

        reach bounds every squared distance between a point and its own center. A point tied
        between m centers is lowered by 1 - 1/m only, which calls for k^2 times as much.
        """
        head = self._separated_head
        if head is None:
            return 0.0
        if head.separation is not None:
            return head.separation
        lowering = self.decoder_cross.activation.lowering(reach, eps)
        return lowering * n_clusters**2 if self.ties == "average" else lowering / 2

    def gap(self, separation: float, n_clusters: int) -> float:
        """How far below a cluster's best score its own points may be; the others are lower."""
        if self._separated_head is None:
            return math.inf
        return separation / (2 * n_clusters**2) if self.ties == "average" else separation

    @property
    def _separated_head(self) -> Head | None:
        return next((h for h in self.heads.values() if h.separated), None)

    def depth(self, n_clusters: int) -> int:
        """The layers that it stands for: noise is numbered by them."""
        return 1

    def row(self) -> dict[str, str]:
        """Its row in the table tab:comp-alg."""
        return {
            "Enc-SA": _cell(self.encoder_self),
            "Enc-CA": _cell(self.encoder_cross),
            "Dec-SA": _cell(self.decoder_self),
            "Dec-CA": _cell(self.decoder_cross),
            "Norm": "✓" if self.norm else "-",
            "NLT": "✓" if self.feedforward else "-",
            "Algorithm": self.algorithm,
            "Appendix": self.appendix,
        }

    def equation(self, latex: bool = False) -> str:
        """The layer's updates, one line each."""
        arrow, term, center = (
            (r"\gets", latex_term, r"\tilde C") if latex else ("←", plain_term, "C")
        )
        part = {
            slot: " + ".join(term(slot, head) for head in heads.values())
            for slot, heads in self.slots.items()
        }
        lines = [f"X {arrow} X + {part['encoder_cross']} + {part['encoder_self']}"]
        if self.affinity:
            lines.append(f"X {arrow} X + {part['affinity']}")
        lines.append(
            f"{center} {arrow} {center} + {part['decoder_cross']} + {part['decoder_self']}"
        )
        if self.norm:
            lines.append(f"{center} {arrow} {self.norm.symbol}({center})")
        if self.feedforward:
            lines.append(f"{center} {arrow} {center} + {self.feedforward.symbol}({center})")
        return (" \\\\\n" if latex else "\n").join(lines)

    def __str__(self) -> str:
        row = " | ".join(self.row().values())
        return f"{self.name}: {row}\n{self.equation()}"


def _named(slot: str, head: Head) -> dict[str, Head]:
    return {slot: head} | {f"{slot}_{i}": other for i, other in enumerate(head.beside, start=1)}


def _cell(head: Head) -> str:
    return head.cell + (f" and {len(head.beside)} beside" if head.beside else "")


def _refusals(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Every reason why these parts do not go together, with the slot to change."""
    yield from _wrong_parts(recipe)
    has = set(recipe.tokens.subspaces)
    for slot, head in recipe.heads.items():
        if missing := head.subspaces - has:
            names = ", ".join(sorted(s.name for s in missing))
            yield slot, f"it uses {names}, which these tokens do not have; use lifted tokens"
        if isinstance(head.activation, Linear) and (
            isinstance(head.score, Euclidean) or AFFINITY in head.key.subspaces
        ):
            yield slot, "linear attention on negative scores favours far keys; use soft-max"
        if isinstance(head.activation, Gumbel) and slot not in recipe.slots:
            yield slot, "of the heads in a slot only the first can draw; use another activation"
        if open_ := {n.kind for n in head.numbers} - set(
            recipe.numbers.kinds if recipe.numbers else ()
        ):
            yield slot, f"nothing decides its numbers {sorted(open_)}; pass numbers that do"
    if recipe.numbers and (missing := recipe.numbers.subspaces - has):
        names = ", ".join(sorted(s.name for s in missing))
        yield "numbers", f"they write {names}, which these tokens do not have"
    if SQUARED_NORM in has and recipe.feedforward is None:
        yield "feedforward", "lifted tokens need one, or their squared norm goes stale"
    if recipe.feedforward and (missing := recipe.feedforward.subspaces - has):
        names = ", ".join(sorted(s.name for s in missing))
        yield "feedforward", f"it writes {names}, which these tokens do not have; use lifted tokens"
    if isinstance(recipe.tokens.codes, Binary) and not recipe.free:
        yield from _binary_refusals(recipe)


def _wrong_parts(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Slots that hold something else than a part of their kind."""
    kinds = {"tokens": Tokens, "affinity": Head, "norm": Norm, "feedforward": FeedForward,
             "numbers": Modulation}  # fmt: skip
    kinds |= dict.fromkeys(("encoder_cross", "encoder_self", "decoder_cross", "decoder_self"), Head)
    for slot, kind in kinds.items():
        part = getattr(recipe, slot)
        optional = slot in ("affinity", "norm", "feedforward", "numbers") and part is None
        if not optional and not isinstance(part, kind):
            yield slot, f"found {part!r}, which is no {kind.__name__}"


def _binary_refusals(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Binary codes can be compared for equality, and nothing else."""
    if recipe.encoder_cross.activation != LimitingSoftmax(ties="first"):
        yield (
            "encoder_cross",
            (
                "binary codes cannot hold a point shared by two clusters (averaged codes collide); "
                'use LimitingSoftmax(ties="first") or one-hot codes'
            ),
        )
    cross = recipe.decoder_cross
    alone = cross.query.subspaces == {ASSIGNMENT} and isinstance(cross.score, DotProduct)
    if not (alone and cross.activation == LimitingSoftmax()):
        yield (
            "decoder_cross",
            (
                "binary codes are told apart only by limiting soft-max of their dot product; "
                "use one-hot codes"
            ),
        )
