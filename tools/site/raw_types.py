"""Types of parameters as docstrings write them; the parser would lose quotes and alternatives."""

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^( *)([\w*, ]+?) : (.+)$")


class RawTypes(griffe.Extension):
    """Replaces parsed types by their text, without the default."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is None or not (obj.is_class or obj.is_function):
            return
        obj.docstring.parser = griffe.Parser.numpy
        obj.docstring.parser_options = {"warn_unknown_params": False, "warn_missing_types": False}
        written = types_in(obj.docstring.value)
        for section in obj.docstring.parsed:
            if section.kind in (
                griffe.DocstringSectionKind.parameters,
                griffe.DocstringSectionKind.attributes,
            ):
                for entry in section.value:
                    entry.annotation = written.get(entry.name, entry.annotation)


def types_in(docstring: str) -> dict[str, str]:
    """The types by name; several names before one colon have the same type."""
    found = {}
    for line in docstring.splitlines():
        match = ENTRY.match(line)
        if match and not match[1]:
            words = re.sub(r", (default=.*|optional)$", "", match[3])
            found |= {name.strip(): words for name in match[2].split(",")}
    return found
