"""The parts of a reproduced table or figure of the paper, and the register of all labels.

The command line imports this file for its help, so it imports nothing heavy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lloydformer.paper.verdict import Verdict, read_label_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In the order of the paper. The module of trf-train is trf_train.
LABELS = (
    *("numerical-validation", "trf-train", "lrn-weights", "lrn-attn-map", "parameter-sweep"),
    *("tr-cvg-lambda", "tr-cvg-vary", "mix-res", "openml-trf", "comp-alg", "rob-res"),
    *("outliers", "med-res"),
)

# Labels that can also be made by the authors' public code: `reproduce LABEL --authors`.
AUTHORS = ("numerical-validation", "trf-train", "mix-res")
# The end of the names of their results, beside which those by the text are kept.
BY_AUTHORS = "-authors"

# A JSON object: the output of one piece, or the result of a whole label.
Record = dict[str, Any]
# One part of the work. It runs in one go, and its output is saved when it ends.
Piece = Callable[[], Record]


@dataclass(frozen=True)
class Scope:
    """The amount of work: quick or full protocol, number of trials, device and seed.

    Attributes
    ----------
    full : bool
        Run the paper's protocol as far as the text gives it, training included. Otherwise a short
        version that takes minutes and uses the weights and training logs in the package.
    trials : int or None
        Number of trials of each setting; None for the default of the label.
    device : str
        Device of torch.
    seed : int
        Seed of all random numbers.
    authors : bool
        Follow the authors' public code where it differs from the text: data, tasks and ways of
        evaluation. Only the labels of AUTHORS have such a protocol.
    """

    full: bool = False
    trials: int | None = None
    device: str = "cpu"
    seed: int = 0
    authors: bool = False

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise ValueError(f"trials: found {self.trials}; pass a number above 0")
        import torch  # not above: see the module's docstring

        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError):  # which of the two depends on the build of torch
            raise ValueError(
                f"device: found {self.device!r}, which is not available; pass cpu, or see "
                "lloydformer doctor"
            ) from None

    def count(self, quick: int, full: int) -> int:
        """Return the number of trials: `trials` if set, else `quick` or `full`."""
        return self.trials or (full if self.full else quick)

    def name_of(self, label: str) -> str:
        """Return the stem of a label's files; by the authors' code it is LABEL-authors."""
        return f"{label}{BY_AUTHORS}" if self.authors else label

    def as_dict(self) -> Record:
        """Return the fields as JSON values; `authors` only where it is set."""
        # results of earlier versions, which are compared with this, have no such field
        return {key: value for key, value in asdict(self).items() if key != "authors" or value}


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

    Attributes
    ----------
    label : str
        Its name on the command line.
    cites : tuple of str
        Its LaTeX labels.
    title, about : str
        A heading, and in one or two sentences what the paper shows there.
    pieces : callable
        For a scope, the parts of the work by name, in order; each takes minutes at most.
    combine : callable
        Returns the result, from the outputs of all pieces. `rows` has the keys of the paper's
        table, if there is one.
    verdicts, tables, pictures : callable
        Need only the result, so a saved file is enough for them.
    """

    label: str
    cites: tuple[str, ...]
    title: str
    about: str
    pieces: Callable[[Scope], Mapping[str, Piece]]
    combine: Callable[[Mapping[str, Record]], Record]
    verdicts: Callable[[Record], Sequence[Verdict]]
    tables: Callable[[Record], Sequence[TextTable]] = lambda result: ()
    pictures: Callable[[Record], Sequence[Picture]] = lambda result: ()


def load_artefact(label: str) -> Artefact:
    """Return the artefact of a label: its texts, and the functions of its module.

    A name of results, LABEL-authors, is that of its label.

    Raises ValueError if there is no such label.
    """
    name, label = label, label.removesuffix(BY_AUTHORS)
    if label not in LABELS:
        raise ValueError(f"label: found {label!r}; pass one of {', '.join(LABELS)}, or all")
    # a label without such texts serves both protocols with one module
    name = name if name in read_label_texts() else label
    module = import_module(f"lloydformer.paper.{name.replace('-', '_')}")
    steps = ("pieces", "combine", "verdicts", "tables", "pictures")
    # tables and pictures are optional
    functions = {name: getattr(module, name) for name in steps if hasattr(module, name)}
    texts = read_label_texts()[name]
    return Artefact(label, tuple(texts["cites"]), texts["title"], texts["about"], **functions)
