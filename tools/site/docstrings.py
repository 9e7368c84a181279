"""Docstrings as the site shows them: types as written, names and references as lists."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from api_pages import public_names

ENTRY = re.compile(r"^([\w*, ]+?) : (.+)$")
LISTED = griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes


class Docstrings(griffe.Extension):
    """Rewrites two sections, and replaces parsed types by their text, without the default."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None or not (obj.is_class or obj.is_function or obj.is_attribute):
            return
        obj.docstring.value = with_lists(obj.docstring.value)
        obj.docstring.parser = griffe.Parser.numpy
        obj.docstring.parser_options = {"warn_unknown_params": False, "warn_missing_types": False}
        written = types_in(obj.docstring.value)
        for section in obj.docstring.parsed:
            for entry in section.value if section.kind in LISTED else ():
                entry.annotation = written.get(entry.name, entry.annotation)


def types_in(docstring: str) -> dict[str, str]:
    """The types by name; several names before one colon have the same type.

    The parser would lose their quotes, and what stands after braces.
    """
    found = {}
    for match in filter(None, map(ENTRY.match, docstring.splitlines())):
        words = re.sub(r", (default=.*|optional)$", "", match[2])
        found |= {name.strip(): words for name in match[1].split(",")}
    return found


def with_lists(docstring: str) -> str:
    """See Also and References as lists, with links to pages of the reference."""
    section, lines = "", docstring.splitlines()
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            section = line
        if section == "See Also" and (match := re.match(r"^(\S+) : (.*)", line)):
            lines[i] = f"- {_link_name(match[1])}: {match[2]}"
        if section == "References":
            lines[i] = re.sub(r"^\.\. \[\d+\] ", "- ", line)
    return "\n".join(lines)


def _link_name(name: str) -> str:
    short = name.removeprefix("lloydformer.").rpartition(".")[2]
    full = _pages().get(short)
    return f"`{name}`" if full is None else f"[`{name}`][{full}]"


@cache
def _pages() -> dict[str, str]:
    return {name: full for group in public_names().values() for name, full in group.items()}
