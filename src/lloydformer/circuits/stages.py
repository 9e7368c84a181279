"""A layer of several sub-layers, as a value: which tokens ask which, stage by stage.

The layer of `recipe` has four slots. Where an algorithm looks ahead it needs more sets of tokens
than points and centers, and more attentions; here they are listed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import Norm
from lloydformer.circuits.notation import term
from lloydformer.circuits.products import Product
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, ONE, POSITION, Space, Subspace
from lloydformer.circuits.tokens import Tokens

Kind = Literal["position", "code", "number"]
"""How large a subspace is: d, the number of names, or 1."""


@dataclass(frozen=True)
class Read:
    """An attention of a stage: a head, and the sets of tokens that answer, one after the other.

    across: a token asks itself in every proposal, in place of all tokens in its own proposal.
    lots: whose noise the head draws, if it draws. There is a draw for each proposal and key, or
    for each key where there are no proposals; all queries see the same.
    """

    name: str
    head: Head
    sources: tuple[str, ...]
    across: bool = False
    lots: str = ""


@dataclass(frozen=True)
class Stage:
    r"""$T \leftarrow T + \sum_r \mathcal{A}_r(T, S_r)$, then $T \leftarrow T + N(T)$ for each
    network.

    of: the sets that T begins as, joined; none: T goes on from what it is.
    along: T begins anew for each token of this set, an axis of proposals. Along the very set that
    it begins as, every proposal has that token alone.
    """

    name: str
    target: str
    reads: tuple[Read, ...] = ()
    networks: tuple[Product, ...] = ()
    of: tuple[str, ...] = ()
    along: str = ""

    def equation(self) -> str:
        begin = " ∪ ".join(self.of) or self.target
        along = f" for each of {self.along}" if self.along else ""
        terms = [
            term(self.target, " ∪ ".join(r.sources), r.head) + (" across" if r.across else "")
            for r in self.reads
        ]
        return f"{self.target} ← " + " + ".join([begin + along, *terms, *map(str, self.networks)])


@dataclass(frozen=True)
class Sublayer:
    """Stages in a row; `repeated` ones run once for every spare token."""

    name: str
    stages: tuple[Stage, ...]
    repeated: bool = False


@dataclass(frozen=True)
class Counts:
    """How many tokens there are beside points and centers.

    spares: centers that may appear, at most as many as clusters. draws: proposals that a drawn
    point makes. candidates: centers that may vanish, at most as many as there are.
    """

    spares: int
    draws: int
    candidates: int

    def __post_init__(self) -> None:
        for name in ("spares", "draws", "candidates"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}: found {value!r}; pass a whole number above 0")

    def within(self, n_clusters: int) -> dict[str, int]:
        spares = min(self.spares, n_clusters)
        candidates = min(self.candidates, n_clusters + spares)
        return {"spares": spares, "draws": self.draws, "candidates": candidates, "verdict": 1}


@dataclass(frozen=True)
class Staged:
    """A recipe of sub-layers: the tokens that come in and go out, those within, and the stages.

    Sets that are there from the beginning: `points` and `centers`; `spares`, which have names but
    no position; `draws`, `candidates` and `verdict`, which are blank. At the end `centers` are
    the new centers, and `assigned` the points with their assignment.
    """

    name: str
    tokens: Tokens
    inner: tuple[tuple[Subspace, Kind], ...]
    counts: Counts
    sublayers: tuple[Sublayer, ...]
    algorithm: str = ""
    appendix: str = ""

    norm: ClassVar[Norm | None] = None
    embeds_again: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = True
    free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for where, reason in _refusals(self):
            raise ValueError(f"{where}: {reason} (in recipe {self.name!r})")

    @property
    def stages(self) -> dict[str, Stage]:
        return {f"{part.name}.{stage.name}": stage for part in self.sublayers
                for stage in part.stages}  # fmt: skip

    @property
    def heads(self) -> dict[str, Head]:
        return {f"{name}.{read.name}": read.head for name, stage in self.stages.items()
                for read in stage.reads}  # fmt: skip

    def space(self, n_features: int, n_clusters: int) -> Space:
        names = n_clusters + self.counts.within(n_clusters)["spares"]
        sizes = {"position": n_features, "code": names, "number": 1}
        return Space(tuple((subspace, sizes[kind]) for subspace, kind in self.inner))

    def depth(self, n_clusters: int) -> int:
        """The layers that it stands for: noise is numbered by them."""
        spares = self.counts.within(n_clusters)["spares"]
        return sum(spares if part.repeated else 1 for part in self.sublayers)

    def separation(self, reach: float, n_clusters: int, eps: float) -> float:
        """More than any squared distance; the layer takes it once for every point."""
        return 2 * reach

    def row(self) -> dict[str, str]:
        """Its row in the table tab:comp-alg: the first kind of head on each side, … for others."""
        kinds: dict[str, dict[str, None]] = {"Enc-SA": {}, "Enc-CA": {}, "Dec-SA": {}, "Dec-CA": {}}
        for stage in self.stages.values():
            side = "Enc" if self._root(stage.target) == "points" else "Dec"
            for read in stage.reads:
                column = f"{side}-SA" if stage.target in read.sources else f"{side}-CA"
                kinds[column][read.head.cell] = None
        cells = {c: next(iter(k), "-") + " …" * (len(k) > 1) for c, k in kinds.items()}
        return {
            **cells,
            "Norm": "-",
            "NLT": "✓" if any(s.networks for s in self.stages.values()) else "-",
            "Algorithm": self.algorithm,
            "Appendix": self.appendix,
        }

    def _root(self, target: str) -> str:
        """The set that this one first came from."""
        first = next((s for s in self.stages.values() if s.target == target), None)
        return self._root(first.of[0]) if first and first.of else target

    def equation(self) -> str:
        """The updates, one line for each stage."""
        return "\n".join(f"{name}: {stage.equation()}" for name, stage in self.stages.items())

    def __str__(self) -> str:
        return f"{self.name}: {' | '.join(self.row().values())}\n{self.equation()}"


AnyRecipe = Recipe | Staged
"""What a layer can be made of."""


def _refusals(recipe: Staged) -> Iterator[tuple[str, str]]:
    """Every reason why these stages do not go together."""
    has = {subspace for subspace, _ in recipe.inner}
    if missing := {POSITION, ASSIGNMENT, ONE} - has:
        yield "inner", f"tokens need {', '.join(sorted(s.name for s in missing))}"
    sets = {"points", "centers", *recipe.counts.within(1)}
    for name, stage in recipe.stages.items():
        begins = [*stage.of, *filter(None, [stage.along])] or [stage.target]
        for wanted in begins:
            if wanted not in sets:
                yield name, f"there are no tokens {wanted!r} yet; there are {sorted(sets)}"
        sets.add(stage.target)
        for read in stage.reads:
            if absent := set(read.sources) - sets:
                yield f"{name}.{read.name}", f"there are no tokens {sorted(absent)} to read yet"
        parts = [read.head.subspaces for read in stage.reads]
        parts += [network.subspaces for network in stage.networks]
        if unknown := frozenset().union(*parts) - has:
            yield name, f"it uses {sorted(s.name for s in unknown)}, which its tokens do not have"
    if "assigned" not in sets:
        yield "sublayers", "no stage makes the tokens 'assigned'"
