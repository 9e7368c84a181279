"""Find sentences that puzzle readers, in the documentation, docstrings, help texts and errors.

    python tools/prose.py             # all of them; status 1 if there are any
    python tools/prose.py README.md   # of some files

It knows patterns, not grammar: each is a turn of phrase that made readers stop, with what to write
instead. A sentence that is right as it is, for instance a quotation, is entered in `ALLOWED`.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "lloydformer"
PAPER = SOURCE / "paper"
# Names in backquotes, examples, and the names of parameters before their types.
_CODE_IN_DOCSTRING = re.compile(r"`[^`\n]*`|^ *(>>>|\.\.\.).*$|^ *[\w*, ]+ : ", re.MULTILINE)
# Parts of sentences that are right in spite of a pattern.
ALLOWED = (
    "time stands still",
    "stand for a missing value",
    "stand for missing values",
    "stands for several",
)

# Patterns of any prose, and what to write instead.
PATTERNS = {
    r"\bstands? (in|beside|before|below|outside|together|for|alone|on|at|still)\b": "is, or a verb",
    r"\b(hears?|heard)\b": "receives, is called with",
    r"\b(is|are|was|were) told\b": "is passed, is informed",
    r"\b(nobody|somebody|whoever|no one|someone who)\b": "name the person or the program",
    r"\b(for want of|at hand|for ever|dearer)\b": "for lack of, available, forever, slower",
    r"\bseldom\b": "rarely",
    r"\banew\b": "again",
    r"(^|[.;:] )Hence\b": "So, Therefore",
    r"\b(bears? out|comes? of it|came of it)\b": "a usual verb",
    r"\b(goes|go|went|going) on\b": "continues",
    r"\b(wipe[sd]?|wiping)\b": "erase",
    r"\bmend(s|ed|ing)?\b": "repair, fix",
    r"\b([Mm]ade|[Mm]akes?|[Mm]aking) (it |them |these |[\w' ]{0,30})?again\b": "recompute",
    r"\b(the )?same bits\b": "bit-identical",
    r"\bno bit\b": "bit-identical",
    r"\bbeside\b": "next to, compared with, in addition to",
    r"(^|[.:;] )Of (?!course)": "begin with the subject",
    r", (too|also)[.,;:)]": "put it before the verb, or leave it out",
    r", also (of|one|on|in|with|for|if|by|from|a|an|the)\b": "including, even",
    r"\b(?!next|this|that|each)\w+ one (sees|thinks|would|wants|likes|says|looks)\b": "you",
    r"\b(lets?|letting) (it|them|a \w+|the \w+) go\b": "a usual verb",
    r"(?<!\w)(?![Tt]here\b)\w+ (is|are) (none|no (?!longer|more|better|worse|\w+er))": "is not a",
    r"\b(what|those) (there (is|are)|are there)\b": "existing",
    r"\bso many \w+[.;]": "this number of",
    r"\b(numbers?|bytes|tasks|passes|places|distances|synchronisation|[kMGT]B|ms|µs) an? "
    r"(iteration|row|point|second|step|token|worker|cluster|rank|fit|layer)\b": "per",
    r"\bno more than it\b": "a usual phrase",
    r"\bthe like\b": "similar",
    r"\bas long as one likes\b": "for any length of time",
    r"\bworth the name\b": "leave it out",
}
# Patterns of the first sentence of a docstring.
FIRST = {
    r"^(What|Where|Those|Whether|How|Which|Of|They|It) ": "say what it is or returns",
    r"\?$": "a statement, not a question",
    r"^The same\b": "say what it is",
}


@dataclass(frozen=True)
class Text:
    """A piece of prose: its file, the line where it begins, and if it is a first sentence."""

    path: Path
    line: int
    words: str
    is_first: bool = False


@dataclass(frozen=True)
class Finding:
    """A phrase that matches a pattern, and what to write instead."""

    path: Path
    line: int
    phrase: str
    instead: str

    def __str__(self) -> str:
        name = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{name}:{self.line}: {self.phrase!r}; write: {self.instead}"


def examine(text: Text) -> Iterator[Finding]:
    """Yield the phrases of a text that match a pattern."""
    for pattern, instead in (PATTERNS | (FIRST if text.is_first else {})).items():
        # Sentences go over line ends, so a blank of a pattern is any white space.
        for match in re.finditer(pattern.replace(" ", r"\s+"), text.words, re.MULTILINE):
            start, end = max(match.start() - 20, 0), match.end() + 20
            around = text.words[start:end]
            if any(allowed in " ".join(around.split()) for allowed in ALLOWED):
                continue
            line = text.line + text.words.count("\n", 0, match.start())
            yield Finding(text.path, line, " ".join(around.split()), instead)


def page_text(path: Path) -> Text:
    """Return the prose of a Markdown page: no code, no addresses, no comments, lines kept."""
    words = path.read_text(encoding="utf-8")
    for pattern in (r"^```.*?^```", r"<!--.*?-->", r"\]\([^)]*\)", r"`[^`]*`"):
        # A blank of the same number of lines, so that line numbers stay those of the file.
        words = re.sub(
            # Not a backquote: it would pair with the next one.
            *(pattern, lambda m: "¤" + "\n" * m[0].count("\n"), words),
            flags=re.DOTALL | re.MULTILINE,
        )
    return Text(path, 1, words)


def docstring_texts(path: Path) -> Iterator[Text]:
    """Yield the first sentence of each docstring, help texts, and messages of errors."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            doc = ast.get_docstring(node)
            if doc:
                line, (first, _, rest) = getattr(node, "lineno", 1), doc.partition("\n")
                yield Text(path, line, first, is_first=True)
                # Public ones are pages of the reference, or the help of a command. The paper's
                # tables and claims have no page there.
                if not getattr(node, "name", "").startswith("_") and PAPER not in path.parents:
                    yield Text(path, line + 1, re.sub(_CODE_IN_DOCSTRING, "`", rest))
        if isinstance(node, ast.keyword) and node.arg == "help":
            yield Text(path, node.value.lineno, _constant(node.value))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            words = " ".join(_constant(argument) for argument in node.exc.args)
            yield Text(path, node.lineno, words)


def _constant(node: ast.expr) -> str:
    """Return the text of a string or of an f-string, with a mark for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_constant(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "`"


def sources() -> list[Path]:
    """Return the pages and the modules that are examined."""
    names = ("README.md", "CONTRIBUTING.md")
    pages = [*(ROOT / name for name in names), *sorted((ROOT / "docs").rglob("*.md"))]
    return [*pages, *sorted((ROOT / "examples").glob("*.py")), *sorted(SOURCE.rglob("*.py"))]


def findings(paths: list[Path]) -> list[Finding]:
    """Return the findings in pages and modules."""
    found = list[Finding]()
    for path in paths:
        texts = docstring_texts(path) if path.suffix == ".py" else [page_text(path)]
        found += [finding for text in texts for finding in examine(text)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    found = findings([path.resolve() for path in parser.parse_args().paths] or sources())
    for finding in found:
        print(finding)
    print(f"{len(found)} phrases", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
