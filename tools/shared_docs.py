"""Copy the docstring texts that several estimators share into their sources.

    python tools/shared_docs.py --check    # exit status 1 if a source differs from the texts
    python tools/shared_docs.py --write    # update the sources

The texts are in `shared_docs.toml`. They are copied because editors read docstrings from the
source, not from what a program composes at run time.
"""

import argparse
import ast
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "lloydformer"
SOURCES = [*sorted((PACKAGE / "estimators").glob("*.py")), PACKAGE / "learning" / "estimator.py"]
TABLES = {"Parameters": "parameters", "Attributes": "attributes"}

Texts = dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class Section:
    """One section of a docstring: which table of texts belongs to it, and where it is."""

    owner: str  # "KMeans" or "KMeans.fit"
    title: str
    table: str
    docstring: ast.Expr


@dataclass(frozen=True)
class Entry:
    """One documented name: lines `start` to `stop` of the source, without blank lines after it."""

    owner: str
    table: str
    name: str
    start: int
    stop: int
    indent: str


def read_texts() -> Texts:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def update(source: str, texts: Texts) -> str:
    """Return the source with every shared entry replaced by its text."""
    lines = source.splitlines()
    for entry in sorted(entries(source), key=lambda entry: -entry.start):
        shared = texts[entry.table].get(entry.name)
        if shared is not None and entry.owner not in shared.get("own", ()):
            lines[entry.start : entry.stop] = write_entry(entry, shared)
    return "\n".join(lines) + "\n"


def write_entry(entry: Entry, shared: dict[str, Any]) -> list[str]:
    text = textwrap.indent(shared["text"].strip("\n"), f"{entry.indent}    ")
    return [f"{entry.indent}{entry.name} : {shared['type']}", *text.splitlines()]


def entries(source: str) -> Iterator[Entry]:
    """Find the documented parameters and attributes of classes and arguments of methods."""
    lines = source.splitlines()
    for section in sections(ast.parse(source)):
        yield from entries_of(section, lines)


def sections(tree: ast.Module) -> Iterator[Section]:
    for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        if (docstring := docstring_of(cls)) is not None:
            for title, table in TABLES.items():
                yield Section(cls.name, title, table, docstring)
        for method in (node for node in cls.body if isinstance(node, ast.FunctionDef)):
            if (docstring := docstring_of(method)) is not None:
                yield Section(f"{cls.name}.{method.name}", "Parameters", "arguments", docstring)


def docstring_of(node: ast.ClassDef | ast.FunctionDef) -> ast.Expr | None:
    first = node.body[0]
    return first if isinstance(first, ast.Expr) and ast.get_docstring(node) else None


def entries_of(section: Section, lines: list[str]) -> Iterator[Entry]:
    indent = " " * section.docstring.col_offset
    first, last = section.docstring.lineno, section.docstring.end_lineno or 0
    headers = [i for i in range(first, last) if is_underline(lines[i])]
    begin = next((i for i in headers if lines[i - 1] == f"{indent}{section.title}"), None)
    if begin is None:
        return
    end = next((i - 1 for i in headers if i > begin), last - 1)
    starts = [i for i in range(begin + 1, end) if lines[i].strip() and not deeper(lines[i], indent)]
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        while not lines[stop - 1].strip():
            stop -= 1
        name = lines[start].split(":")[0].strip()
        yield Entry(section.owner, section.table, name, start, stop, indent)


def is_underline(line: str) -> bool:
    return set(line.strip()) == {"-"}


def deeper(line: str, indent: str) -> bool:
    return line.startswith(f"{indent} ")


def main() -> int:
    parser = argparse.ArgumentParser(description="Copy shared docstring texts into the sources.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="report sources that differ")
    action.add_argument("--write", action="store_true", help="update the sources")
    wanted, texts, stale = parser.parse_args(), read_texts(), 0
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        if (new := update(source, texts)) == source:
            continue
        stale += 1
        if wanted.write:
            path.write_text(new, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {'updated' if wanted.write else 'differs'}")
    if stale and wanted.check:
        print("run: python tools/shared_docs.py --write", file=sys.stderr)
    return int(bool(stale and wanted.check))


if __name__ == "__main__":
    sys.exit(main())
