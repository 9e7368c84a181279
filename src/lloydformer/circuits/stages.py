"""Staged recipes: layers of several sub-layers, which list what tokens attend to, stage by stage.

A `Recipe` has four slots. An algorithm that looks ahead needs more sets of tokens than points and
centers, and more attentions: a `Staged` recipe lists them. `staged_layer` runs it. `AnyRecipe` is
either kind, and `as_schedule` checks a sequence of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from lloydformer.circuits.display import recipe_html, term
from lloydformer.circuits.feedforward import Product
from lloydformer.circuits.heads import Head
from lloydformer.circuits.norms import Norm
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, ONE, POSITION, Space, Subspace
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.checks import check_count

# The size of a subspace: d, the number of codes, or 1.
SizeKind = Literal["position", "code", "number"]


@dataclass(frozen=True)
class Read:
    """An attention of a stage: a head, and the sets of tokens that are its keys, concatenated.

    Attributes
    ----------
    name : str
        Of the attention, within its stage.
    head : Head
        The head.
    sources : tuple of str
        The sets of tokens that are its keys.
    across : bool
        Whether the keys of a token are its own versions in all proposals, instead of all tokens
        of its own proposal.
    lots : str
        Name of the noise that the head draws, if it draws. The noise has one value for each
        proposal and key, or for each key if there are no proposals; all queries share it.
    """

    name: str
    head: Head
    sources: tuple[str, ...]
    across: bool = False
    lots: str = ""


@dataclass(frozen=True)
class Stage:
    r"""The update of one set of tokens T, by attentions and then networks.

    $T \leftarrow T + \sum_r \mathcal{A}_r(T, S_r)$, where all attentions see the same T, then
    $T \leftarrow T + N(T)$ for each network.

    Attributes
    ----------
    name : str
        Of the stage, within its sub-layer.
    target : str
        The set T, which is made or updated.
    reads : tuple of Read
        The attentions; `read` adds one.
    networks : tuple of Product
        The networks; `then` adds some.
    of : tuple of str
        The sets whose concatenation T starts as; if empty, T continues from its current tokens.
    along : str
        T starts once for each token of this set, which adds an axis of proposals. If this set is
        `of` itself, every proposal consists of its one token.
    """

    name: str
    target: str
    reads: tuple[Read, ...] = ()
    networks: tuple[Product, ...] = ()
    of: tuple[str, ...] = ()
    along: str = ""

    def read(
        self, name: str, head: Head, *sources: str, across: bool = False, lots: str = ""
    ) -> "Stage":
        """Return the stage with one more attention; see `Read`."""
        return replace(self, reads=(*self.reads, Read(name, head, sources, across, lots)))

    def then(self, *networks: Product) -> "Stage":
        """Return the stage with more networks."""
        return replace(self, networks=self.networks + networks)

    def equation(self) -> str:
        """Return the update as one line."""
        begin = " ∪ ".join(self.of) or self.target
        along = f" for each of {self.along}" if self.along else ""
        terms = [
            term(self.target, " ∪ ".join(r.sources), r.head) + (" across" if r.across else "")
            for r in self.reads
        ]
        return f"{self.target} ← " + " + ".join([begin + along, *terms, *map(str, self.networks)])


@dataclass(frozen=True)
class Sublayer:
    """A sequence of stages.

    Attributes
    ----------
    name : str
        Of the sub-layer, within its recipe.
    stages : tuple of Stage
        The stages, in the order in which they run.
    repeated : bool or str
        False: the stages run once. The name of an initial set: they run once for each of its
        tokens. True is the set `spares`.
    """

    name: str
    stages: tuple[Stage, ...]
    repeated: bool | str = False

    @property
    def counted(self) -> str:
        """The set whose size is the number of runs; `verdict`, which has one token, for one run."""
        if isinstance(self.repeated, str):
            return self.repeated
        return "spares" if self.repeated else "verdict"

    def rename_sets(self, names: Mapping[str, str]) -> "Sublayer":
        """Return the same stages for sets of tokens with other names."""

        def rename(sets: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names.get(name, name) for name in sets)

        stages = [
            replace(
                stage,
                target=names.get(stage.target, stage.target),
                of=rename(stage.of),
                along=names.get(stage.along, stage.along),
                reads=tuple(replace(read, sources=rename(read.sources)) for read in stage.reads),
            )
            for stage in self.stages
        ]
        return replace(self, stages=tuple(stages))


@dataclass(frozen=True)
class Counts:
    """Numbers of tokens in addition to points and centers.

    Attributes
    ----------
    spares : int
        Centers that can be added, at most as many as clusters.
    draws : int
        Proposals of a drawn point.
    candidates : int
        Centers that can be removed, at most as many as there are.
    """

    spares: int
    draws: int
    candidates: int

    def __post_init__(self) -> None:
        for name in ("spares", "draws", "candidates"):
            check_count(name, getattr(self, name))

    def within(self, n_clusters: int) -> dict[str, int]:
        """Return the size of each of these sets for k clusters."""
        spares = min(self.spares, n_clusters)
        candidates = min(self.candidates, n_clusters + spares)
        return {"spares": spares, "draws": self.draws, "candidates": candidates, "verdict": 1}


@dataclass(frozen=True)
class PairedCounts(Counts):
    """`Counts` where the centers are those of two solutions, one after the other.

    `first` and `second` are the centers with those of the other solution absent; `merges` are
    blank tokens, as many as a solution has centers.
    """

    def within(self, n_clusters: int) -> dict[str, int]:
        """Return the size of each of these sets for 2k centers."""
        if n_clusters % 2:
            raise ValueError(
                f"n_clusters: found {n_clusters}; the centers are those of two solutions, pass an "
                "even number"
            )
        of_one = super().within(n_clusters // 2)
        return of_one | {"first": n_clusters, "second": n_clusters, "merges": n_clusters // 2}


@dataclass(frozen=True)
class Staged:
    """A recipe of sub-layers: the tokens of input and output, the inner tokens, and the stages.

    Initial sets: `points` and `centers`; `spares`, which have names but no position; `draws`,
    `candidates` and `verdict`, which are blank; those of `PairedCounts`. At the end `centers` are
    the new centers, and `assigned` the points with their assignment.
    """

    name: str
    tokens: Tokens
    inner: tuple[tuple[Subspace, SizeKind], ...]
    counts: Counts
    sublayers: tuple[Sublayer, ...]
    algorithm: str = ""
    appendix: str = ""

    # members of `Recipe` that a circuit asks every recipe for
    norm: ClassVar[Norm | None] = None
    embeds_again: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = True
    free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for where, reason in _problems(self):
            raise ValueError(f"{where}: {reason} (in recipe {self.name!r})")

    @property
    def stages(self) -> dict[str, Stage]:
        """The stages by name, in the order in which they run."""
        return {f"{part.name}.{s.name}": s for part in self.sublayers for s in part.stages}

    @property
    def heads(self) -> dict[str, Head]:
        """The heads by name."""
        stages = self.stages.items()
        return {f"{name}.{read.name}": read.head for name, s in stages for read in s.reads}

    def space(self, n_features: int, n_clusters: int) -> Space:
        """Return the space of the inner tokens."""
        names = n_clusters + self.counts.within(n_clusters)["spares"]
        sizes = {"position": n_features, "code": names, "number": 1}
        return Space(tuple((subspace, sizes[kind]) for subspace, kind in self.inner))

    def depth(self, n_clusters: int) -> int:
        """Return the number of layers that it counts as in the numbering of the noise."""
        counts = self.counts.within(n_clusters)
        return sum(counts[part.counted] for part in self.sublayers)

    def row(self) -> dict[str, str]:
        """Return its row in the table tab:comp-alg; … marks columns with several kinds of heads."""
        kinds: dict[str, dict[str, None]]  # the inner dictionaries are ordered sets
        kinds = {"Enc-SA": {}, "Enc-CA": {}, "Dec-SA": {}, "Dec-CA": {}}
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
        """Return the initial set that a set was made from."""
        first = next((s for s in self.stages.values() if s.target == target), None)
        return self._root(first.of[0]) if first and first.of else target

    def equation(self) -> str:
        """Return the updates, one line for each stage."""
        return "\n".join(f"{name}: {stage.equation()}" for name, stage in self.stages.items())

    def __str__(self) -> str:
        return f"{self.name}: {' | '.join(self.row().values())}\n{self.equation()}"

    def _repr_html_(self) -> str:
        return recipe_html(self.name, self.row(), self.equation())


AnyRecipe = Recipe | Staged


def _problems(recipe: Staged) -> Iterator[tuple[str, str]]:
    """Yield every reason why the stages do not fit together."""
    has = {subspace for subspace, _ in recipe.inner}
    if missing := {POSITION, ASSIGNMENT, ONE} - has:
        yield "inner", f"tokens need {', '.join(sorted(s.name for s in missing))}"
    # only the names of the initial sets matter; 2 centers are few and even, as pairs need
    sets = {"points", "centers", *recipe.counts.within(2)}
    for part in recipe.sublayers:
        if part.counted not in sets:
            yield part.name, f"it is repeated for {part.counted!r}; there are {sorted(sets)}"
    for name, stage in recipe.stages.items():
        starts = [*stage.of, *filter(None, [stage.along])] or [stage.target]
        for wanted in starts:
            if wanted not in sets:
                yield name, f"it uses tokens {wanted!r} before they exist; there are {sorted(sets)}"
        sets.add(stage.target)
        for read in stage.reads:
            if absent := set(read.sources) - sets:
                yield f"{name}.{read.name}", f"it reads tokens {sorted(absent)} before they exist"
        parts = [read.head.subspaces for read in stage.reads]
        parts += [network.subspaces for network in stage.networks]
        if unknown := frozenset().union(*parts) - has:
            yield name, f"it uses {sorted(s.name for s in unknown)}, which its tokens do not have"
    if "assigned" not in sets:
        yield "sublayers", "no stage makes the tokens 'assigned'"


def as_schedule(recipe: object) -> tuple[AnyRecipe, ...]:
    """Return the recipes of a schedule; raise ValueError if they cannot run in one circuit.

    recipe: one recipe, or a list or tuple of recipes with the same tokens.
    """
    schedule = tuple(recipe) if isinstance(recipe, (list, tuple)) else (recipe,)
    if not schedule or not all(isinstance(r, AnyRecipe) for r in schedule):
        raise ValueError(f"recipe: found {recipe!r}; pass a recipe, for example lf.recipes.lloyd()")
    if len({r.tokens for r in schedule}) > 1:
        tokens = [
            f"{r.name} has {', '.join(s.name for s in r.tokens.subspaces)} "
            f"({type(r.tokens.codes).__name__})"
            for r in dict.fromkeys(schedule)
        ]
        raise ValueError(
            "recipe: a schedule needs recipes with the same tokens; found several: "
            + "; ".join(tokens)
        )
    return schedule
