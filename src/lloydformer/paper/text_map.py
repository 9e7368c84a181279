"""Every label of the paper: what it is, where it is in the package, and what measures it.

The entries are in text_map.toml. Statements of `lloydformer verify` and claims of `lloydformer
reproduce` name the labels that they are about, so they are found from the code.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from lloydformer.paper.artefact import LABELS, TextTable
from lloydformer.paper.verdict import read_label_texts

# How an entry is in the package, in the words of the page.
HOW = {
    "literal": "literal",
    "repair": "literal, with a stated repair",
    "measured": "measured",
    "picture": "drawn from the recipes",
    "absent": "not in software",
}


@dataclass(frozen=True)
class Entry:
    """One label, or one sentence that promises or restricts something.

    Attributes
    ----------
    label, what : str
        The LaTeX label, and in a few words what stands there.
    how : str
        A key of HOW.
    where : tuple of str
        Modules and objects of the package.
    note : str
        The repair, or the reason why it is not in software.
    """

    label: str
    what: str
    how: str
    where: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.how not in HOW:
            raise ValueError(f"how: found {self.how!r} for {self.label}; pass one of {list(HOW)}")
        if self.how in ("repair", "absent") and not self.note:
            raise ValueError(f"note: {self.label} is {HOW[self.how]!r}, and nothing says why")
        if not self.where and self.how != "absent":
            raise ValueError(f"where: {self.label} is {HOW[self.how]!r}, and nothing says where")


@cache
def read_entries() -> tuple[Entry, ...]:
    """Return the entries of text_map.toml, in the order of the text."""
    path = Path(__file__).with_name("text_map.toml")
    found = tomllib.loads(path.read_text(encoding="utf-8"))["entry"]
    return tuple(Entry(**{**one, "where": tuple(one["where"])}) for one in found)


def resolve(name: str) -> Any:
    """Return the module or object of this dotted name; raise ImportError or AttributeError."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found
    raise ImportError(f"name: found {name!r}, which is not a module or object of the package")


@cache
def measured_by() -> dict[str, list[str]]:
    """Return what measures each label: numbers of statements of `verify`, labels of `reproduce`."""
    found: dict[str, list[str]] = {}
    for label in LABELS:
        texts = read_label_texts()[label]
        claims = texts.get("claims", {}).values()
        # a claim on a section is about no single label
        named = {*texts["cites"], *(said["label"] for said in claims)}
        for name in named:
            found.setdefault(name, []).append(f"reproduce {label}")
    for label, count in _count_statements().items():
        words = f"verify ({count})" if count > 1 else "verify"
        found.setdefault(label, []).insert(0, words)
    return found


def _count_statements() -> dict[str, int]:
    """Return the number of statements of `verify` about each label, without measuring them."""
    from lloydformer.paper.verify import statements

    counts: dict[str, int] = {}
    for statement in statements.STATEMENTS:
        label = statement_label(statement)
        counts[label] = counts.get(label, 0) + 1
    return counts


def statement_label(statement: Any) -> str:
    """Return the label that a statement is about, which its maker has stored with it."""
    label: str = getattr(statement, "label", "")
    # 'tab:comp-alg, star' and 'thm:l2-clus ip (end)' are about their first words
    return label.split(",")[0].split(" (")[0].removeprefix("proof of ")


def text_map_table() -> TextTable:
    """Return the table of docs/paper.md."""
    rows = []
    for entry in read_entries():
        where = ", ".join(f"`{name.removeprefix('lloydformer.')}`" for name in entry.where)
        how = HOW[entry.how] + (f": {entry.note}" if entry.note else "")
        checked = ", ".join(measured_by().get(entry.label, []))
        rows.append([entry.label, entry.what, how, where, checked])
    return TextTable("", ("label", "what it is", "how", "where", "checked by"), rows)
