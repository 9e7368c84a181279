"""One table or figure of the paper: how to measure it, how to judge it, how to show it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lloydformer.paper.scope import Scope
from lloydformer.paper.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
"""A JSON object: the output of one piece, or the result of a whole label."""
Piece = Callable[[], Record]
"""One part of the work. It runs in one go, and its output is saved when it ends."""


@dataclass(frozen=True)
class TextTable:
    """A table whose cells are formatted text."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure, the stem of its file name, and its caption, which is also the alternative text."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True)
class Artefact:
    """One label of the paper and the functions that reproduce it.

    label: its name on the command line. cites: its LaTeX labels. about: what the paper shows
    there, in one or two sentences. pieces: for a scope, the parts of the work by name, in order;
    each takes minutes at most. result: combines the outputs of all pieces; `rows` has the keys of
    the paper's table, if there is one. verdicts, tables, pictures: need only the result, so a saved
    file is enough for them.
    """

    label: str
    cites: tuple[str, ...]
    title: str
    about: str
    pieces: Callable[[Scope], Mapping[str, Piece]]
    result: Callable[[Mapping[str, Record]], Record]
    verdicts: Callable[[Record], Sequence[Verdict]]
    tables: Callable[[Record], Sequence[TextTable]] = lambda result: ()
    pictures: Callable[[Record], Sequence[Picture]] = lambda result: ()
