"""A table or figure of the paper: how it is measured, what the paper claims of it, how it looks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lloydformer.paper.scope import Scope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Found = dict[str, Any]
"""What a piece or a whole measurement came to, as JSON."""
Piece = Callable[[], Found]
"""A part of the work that is done in one go and kept when it is done."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and what was found.

    says: the statement, in a sentence. paper, ours: the two numbers, or words where there is no
    one number. holds: the verdict. note: a sentence, where they differ or more is to be said.
    """

    says: str
    paper: float | str
    ours: float | str
    holds: bool
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where both are numbers."""
        if isinstance(self.paper, str) or isinstance(self.ours, str):
            return None
        return self.ours - self.paper

    def written(self) -> Found:
        return {**asdict(self), "difference": self.difference}


@dataclass(frozen=True)
class Table:
    """Cells as they are shown; the paper's form, then what is ours beyond it."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure by a name that files can have, with its caption; alt says what is seen."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True)
class Artefact:
    """One label of the paper.

    cites: its LaTeX labels. about: what the paper shows there, in a sentence or two. needs: names
    of data sets. pieces: by name, in order, no more than minutes each; result: what all pieces
    found, put together, with `rows` keyed as in the paper's numbers where it has such. claims,
    tables and pictures read the result alone, so that a file of it is enough to show it again.
    """

    label: str
    cites: tuple[str, ...]
    title: str
    about: str
    pieces: Callable[[Scope], Mapping[str, Piece]]
    result: Callable[[Mapping[str, Found]], Found]
    claims: Callable[[Found], Sequence[Claim]]
    tables: Callable[[Found], Sequence[Table]] = lambda result: ()
    pictures: Callable[[Found], Sequence[Picture]] = lambda result: ()
