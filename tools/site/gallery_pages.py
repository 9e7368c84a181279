"""The gallery: a page for each script of examples/, with its words, its picture and its code."""

import ast
from pathlib import Path
from typing import Any


def examples(root: Path) -> list[Path]:
    return sorted((root / "examples").glob("*.py"))


def title_of(script: Path) -> str:
    """Return the words before the colon of its first line."""
    return _words(script).split("\n")[0].rstrip(".").partition(":")[0]


def gallery_pages(root: Path) -> dict[str, str]:
    scripts = examples(root)
    pages = {f"gallery/{script.stem}.md": _page(root, script) for script in scripts}
    cards = [
        f'<a href="{script.stem}.html"><img src="../pictures/gallery/{script.stem}.png" '
        f'alt=""><br>{title_of(script)}</a>'
        for script in scripts
    ]
    pages["gallery/index.md"] = (
        "# Gallery\n\nScripts of `examples/`, each with what it prints and draws.\n\n"
        f'<div class="gallery">\n{chr(10).join(cards)}\n</div>\n'
    )
    return pages


def gallery_nav(root: Path) -> list[Any]:
    return ["gallery/index.md", *({title_of(s): f"gallery/{s.stem}.md"} for s in examples(root))]


def _page(root: Path, script: Path) -> str:
    text = script.read_text(encoding="utf-8")
    _, _, words = _words(script).partition("\n")
    code = text[text.index('"""', 3) + 3 :].strip()
    return (
        f"# {_words(script).splitlines()[0].rstrip('.')}\n\n{words.strip()}\n\n"
        f"![What the script draws](../pictures/gallery/{script.stem}.png)\n\n"
        f"```python\n{code}\n```\n"
    )


def _words(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or script.stem
