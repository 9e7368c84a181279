"""Pages for files of the repository that pages of docs/ link to: README, scripts, results."""

import re
from pathlib import Path

LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?\)")
ALWAYS = ("CONTRIBUTING.md", "CHANGELOG.md")
LANGUAGES = {".py": "python", ".json": "json", ".toml": "toml", ".hpp": "cpp"}
# Characters of a file that its page shows.
_MOST = 20_000
_UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"


def linked_files(root: Path) -> list[str]:
    """Files and folders that docs/*.md link to, relative to the root; scripts of the gallery apart.

    README links to more of them.
    """
    found = set(ALWAYS)
    texts = [(page, page.parent) for page in (root / "docs").rglob("*.md")]
    texts += [(root / name, root) for name in (*ALWAYS, "README.md")]
    for page, folder in texts:
        for _, target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            path = _inside(root, folder, target)
            if path is not None and not path.startswith(("docs/", "examples/")):
                found.add(path)
    return sorted(found)


def repository_page(root: Path, path: str) -> str:
    """A Markdown file as it is, a folder as a list of its files, another file as code.

    Only Markdown is searched: numbers of results would hide the pages.
    """
    full = root / path
    if full.suffix == ".md":
        return full.read_text(encoding="utf-8")
    if full.is_dir():
        names = sorted(p.name for p in full.iterdir() if not p.name.startswith((".", "__")))
        listed = "".join(f"- `{name}`\n" for name in names)
        return f"{_UNSEARCHED}# {path}\n\nA folder of the repository:\n\n{listed}"
    text = full.read_text(encoding="utf-8")
    shown = text if len(text) <= _MOST else text[:_MOST] + "\n(and so on)\n"
    language = LANGUAGES.get(full.suffix, "text")
    return f"{_UNSEARCHED}# {path}\n\nA file of the repository:\n\n````{language}\n{shown}\n````\n"


def rewritten(root: Path, markdown: str, page: str) -> str:
    """Links of a page to files of the repository, as links to the pages of these files."""
    source = root / page.removeprefix("files/") if page.startswith("files/") else None
    folder = (root / "docs" / page if source is None else source).parent
    up = "../" * page.count("/")

    def link(match: re.Match[str]) -> str:
        before, target, anchor = match[1], match[2], match[3] or ""
        path = _inside(root, folder, target)
        if path is None or (source is None and not target.startswith("../")):
            return match[0]
        if path.startswith("docs/"):
            return f"{before}{up}{path.removeprefix('docs/')}{anchor})"
        if path.startswith("examples/") and path.endswith(".py"):
            return f"{before}{up}gallery/{Path(path).stem}.md{anchor})"
        name = path if path.endswith(".md") else f"{path}.md"
        return f"{before}{up}files/{name}{anchor})"

    return markdown if page.startswith(("api/", "gallery/")) else LINK.sub(link, markdown)


def _inside(root: Path, folder: Path, target: str) -> str | None:
    """The path of a link's target relative to the root; None if it is no file of ours."""
    if not target or "://" in target or target.startswith("mailto:"):
        return None
    full = (folder / target).resolve()
    if not full.exists() or root.resolve() not in full.parents:
        return None
    return full.relative_to(root.resolve()).as_posix()
