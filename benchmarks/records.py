"""Lists the records in results, tells which are stale and why, and makes those again.

    python benchmarks/records.py              # what is stale, and why
    python benchmarks/records.py --run [NAME ...]   # makes the stale ones again, or these
    python benchmarks/records.py --page       # writes docs/records.md and the notes on other pages

A record is stale if it was made with uncommitted changes, if its commit is not in the history, or
if its command is not the one in records.toml. Records of a GPU are kept where there is none; they
name their commit and machine. A run that is stopped goes on where it was: records that are made
are no longer stale, and a record that was begun is continued by its script.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lloydformer.data.storage.atomic_files import atomic_write_text

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results"
# Records that were begun, and what they replace: a run that is stopped finds them there.
BEGUN = ROOT / "build" / "records"
LIST = ROOT / "docs" / "records.md"
_NOTE = re.compile(r"(<!-- stale records -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_TABLE = re.compile(r"(<!-- records -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Provenance = dict[str, Any]


@dataclass(frozen=True)
class Register:
    """How a record is made, and where it is shown; a table of records.toml.

    Attributes
    ----------
    name : str
        Name of the file in results, without its end.
    commands : tuple of str
        The commands that make it, in this order.
    pages : tuple of str
        The pages that show numbers of it.
    minutes : float
        About how long the commands take on two cores.
    gpu : bool
        True if the commands need a GPU.
    packages : tuple of str
        What else they need.
    made : str
        The file that the commands write, if it is not the record.
    stale : str
        Why a stale record is still shown; empty if it must not be stale.
    """

    name: str
    commands: tuple[str, ...]
    pages: tuple[str, ...]
    minutes: float
    gpu: bool = False
    packages: tuple[str, ...] = ()
    made: str = ""
    stale: str = ""

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.name}.json"


def read_register(path: Path = HERE / "records.toml") -> dict[str, Register]:
    """Return the records of the register by name."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = ("commands", "pages", "packages")
    return {
        name: Register(name, **{k: tuple(v) if k in lists else v for k, v in table.items()})
        for name, table in tables.items()
    }


def read_parts(path: Path) -> dict[str, Provenance]:
    """Return where the numbers of a record come from, by part; "" for a record of one part."""

    def find(node: Any, place: tuple[str, ...]) -> Iterator[tuple[str, Provenance]]:
        if isinstance(node, dict):
            if {"command", "commit"} <= node.keys():
                yield "/".join(word for word in place if word != "provenance"), node
            else:
                for key, value in node.items():
                    yield from find(value, (*place, key))

    return dict(find(json.loads(path.read_text(encoding="utf-8")), ()))


def find_reasons(record: Register) -> list[str]:
    """Return why a record is stale; nothing if it is not."""
    if not record.path.exists():
        return ["there is none"]
    parts = read_parts(record.path)
    reasons = [] if parts else ["it does not say where it comes from"]
    for part, made in parts.items():
        is_known = any(is_same_command(made["command"], command) for command in record.commands)
        found = {
            "made with uncommitted changes": made["changed"],
            "its commit is not in the history": not is_ancestor(made["commit"]),
            f"made by `{shorten(made['command'])}`": not is_known,
        }
        reasons += [f"{part}: {why}" if part else why for why, holds in found.items() if holds]
    # parts that were made together have the same reasons
    return list(dict.fromkeys(reasons))


def is_same_command(made: str, wanted: str) -> bool:
    """Return whether two commands are the same but for where they read, write and stand."""
    return plain_words(made) == plain_words(wanted)


def plain_words(command: str) -> frozenset[str]:
    """Return the program and the options of a command, without folders and files."""
    words = command.split()
    if words[0] == "python":  # a script, or the package by its path
        name = words[1].rsplit("/", 1)[-1]
        words = ["lloydformer" if name == "__main__.py" else name, *words[2:]]
    found, values = [words[0]], iter(words[1:])
    for word in values:
        if word in ("-o", "--output", "--data", "--real"):
            next(values, None)
        elif word not in ("--force", "--json") and "/" not in word and word != "{data}":
            found.append(word)
    return frozenset(found)


@cache
def is_ancestor(commit: str) -> bool:
    """Return whether a commit is in the history of this one."""
    command = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", commit or "none", "HEAD"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def shorten(command: str) -> str:
    return command if len(command) <= 60 else f"{command[:57]}..."


def what_is_missing(record: Register) -> str:
    """Return what the commands of a record need and this machine lacks; empty if nothing."""
    if record.gpu and shutil.which("nvidia-smi") is None:
        return "a GPU"
    if any("{data}" in c for c in record.commands) and not os.environ.get("LLOYDFORMER_DATA"):
        return "LLOYDFORMER_DATA, the folder of data sets"
    absent = [package for package in record.packages if find_spec(package) is None]
    return f"the package {absent[0]}" if absent else ""


def make_record(record: Register) -> None:
    """Run the commands of a record; what was there before is kept until they are done.

    Raises subprocess.CalledProcessError if a command fails.
    """
    marker = BEGUN / f"{record.name.replace('/', '-')}.json"
    if not marker.exists():  # scripts keep what a record has: it must not be what is stale
        marker.parent.mkdir(parents=True, exist_ok=True)
        if record.path.exists():
            record.path.replace(marker)
        else:
            marker.write_text("{}", encoding="utf-8")
    for command in record.commands:
        words = [
            w.format(data=os.environ.get("LLOYDFORMER_DATA", "")) for w in shlex.split(command)
        ]
        # the programs of this environment
        program = Path(sys.executable).with_name(words[0])
        subprocess.run([str(program), *words[1:]], cwd=ROOT, check=True)
    if record.made:
        record.path.write_bytes((ROOT / record.made).read_bytes())
    marker.unlink()


def restore_begun() -> None:
    """Put records back that were begun and not made, so that pages can be filled from them."""
    for record in read_register().values():
        marker = BEGUN / f"{record.name.replace('/', '-')}.json"
        if marker.exists() and not record.path.exists():
            shutil.copy(marker, record.path)


def table_of_records(register: dict[str, Register]) -> str:
    """Return a Markdown table with a row for each record."""
    lines = [
        "| record | shown on | made by | at commit, on | state |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, record in register.items():
        if not record.path.exists():
            continue
        pages = ", ".join(f"[{page.rsplit('/', 1)[-1]}]({link_to(page)})" for page in record.pages)
        parts = read_parts(record.path).values()
        made = dict.fromkeys(
            f"{p['commit'][:8]}, {p['date'][:10]}, {p['versions']['lloydformer']}, "
            f"{p.get('gpu') or p['machine']}"
            for p in parts
        )
        commands = "; ".join(f"`{command}`" for command in record.commands)
        link = f"[{name}](../benchmarks/results/{name}.json)"
        lines.append(f"| {link} | {pages} | {commands} | {'; '.join(made)} | {state_of(record)} |")
    return "\n".join(lines) + "\n"


def link_to(page: str) -> str:
    """Return the address of a page from docs."""
    return page.removeprefix("docs/") if page.startswith("docs/") else f"../{page}"


def state_of(record: Register) -> str:
    """Return the last cell of a row: whether the record is stale, and why."""
    reasons = find_reasons(record)
    if not reasons:
        return "reproducible"
    words = "; ".join(reasons)
    return f"of a GPU: {words}" if record.gpu else f"**stale**: {words}"


def fill_notes(page: str, name: str, register: dict[str, Register]) -> str:
    """Return a page with the note on its stale records, and the table of records."""
    shown = {n: r for n, r in register.items() if name in r.pages and r.path.exists()}
    stale = [n for n, record in shown.items() if not record.gpu and find_reasons(record)]
    note = ""
    if stale:
        listed = ", ".join(f"`{one}`" for one in stale)
        link = f"{'../' * (name.count('/') - 1)}records.md"
        note = (
            f"**Stale records**: {listed}. Their numbers were measured, but not by one command at "
            f"a commit of this history; [Records]({link}) says why, and `make results` measures "
            "them again.\n"
        )
    page = _NOTE.sub(lambda mark: mark[1] + note + mark[3], page)
    return _TABLE.sub(lambda mark: mark[1] + table_of_records(register) + mark[3], page)


def write_pages(register: dict[str, Register]) -> None:
    """Write docs/records.md, and the notes on stale records of other pages."""
    for name in sorted({"docs/records.md", *(p for r in register.values() for p in r.pages)}):
        path = ROOT / name
        atomic_write_text(path, fill_notes(path.read_text(encoding="utf-8"), name, register))


def run_records(records: list[Register]) -> int:
    """Make records, the quickest first; return the number of those that could not be made."""
    if subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "benchmarks/*.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout:
        raise SystemExit("there are uncommitted changes, which records must not have: commit them")
    failed = 0
    for record in sorted(records, key=lambda each: each.minutes):
        if lack := what_is_missing(record):
            print(f"{record.name}: left out, it needs {lack}", flush=True)
            continue
        print(f"{record.name}: about {record.minutes:g} minutes", flush=True)
        try:
            make_record(record)
        except subprocess.CalledProcessError as error:
            print(f"{record.name}: {error}", file=sys.stderr, flush=True)
            failed += 1
    restore_begun()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="records, by default all that are stale")
    parser.add_argument("--run", action="store_true", help="make them again")
    parser.add_argument("--page", action="store_true", help="write docs/records.md and notes")
    asked = parser.parse_args()
    register = read_register()
    if unknown := set(asked.names) - register.keys():
        raise SystemExit(f"found {', '.join(sorted(unknown))}; pass names of records.toml")
    if asked.page:
        return write_pages(register)
    chosen = [register[name] for name in asked.names] or [
        record for record in register.values() if find_reasons(record)
    ]
    for record in chosen:
        lack = what_is_missing(record)
        words = "; ".join(find_reasons(record)) or "not stale"
        print(f"{record.name}: {words}{f' (needs {lack})' if lack else ''}")
    if not chosen:
        print("no record is stale")
    if asked.run and run_records(chosen):
        raise SystemExit(1)
    return None


if __name__ == "__main__":
    main()
