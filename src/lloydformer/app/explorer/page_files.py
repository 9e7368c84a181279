"""The files of the page: with a state to begin with, or all in one HTML file."""

import json
import re
from base64 import b64encode
from pathlib import Path, PurePosixPath
from typing import Any

PAGE = Path(__file__).parent / "page"
"""The folder of static files, which any web server can serve as it is."""

_STATE = re.compile(r'(<script type="application/json" id="initial-state">).*?(</script>)', re.S)
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_SCRIPT = re.compile(r'<script type="module" src="([^"]+)"></script>')
_IMPORT = re.compile(
    r"""^((?:import|export)\b[^"';]*?["']|(?!\s*[*/]).*?\bimport\(\s*["'])(\.{1,2}/[^"']+)(?=["'])""",
    re.M,
)
"""A relative import: at the beginning of a line, or one `import("...")` in a line of code."""


def index_page(state: dict[str, Any], folder: Path = PAGE) -> str:
    """Return index.html with this state to begin with.

    state: {"recipe": JSON of a recipe, "points": rows, "centers": rows}, or some of these.
    """
    text = (folder / "index.html").read_text(encoding="utf-8")
    if _STATE.search(text) is None:
        raise ValueError(f"{folder / 'index.html'}: found no script with the id initial-state")
    written = json.dumps(state).replace("<", "\\u003c")  # no text of it becomes markup
    return _STATE.sub(lambda found: found[1] + written + found[2], text)


def self_contained(state: dict[str, Any], folder: Path = PAGE) -> str:
    """Return the whole page as one HTML file that needs no other file and no network.

    Modules become data URLs in an import map, under their paths; imports in them are rewritten to
    these paths.
    """
    page = index_page(state, folder)
    modules: dict[str, str] = {}

    def inline_module(found: re.Match[str]) -> str:
        first = _collect(folder, _path("", found[1]), modules)
        urls = {name: _data_url(source) for name, source in modules.items()}
        return (
            f'<script type="importmap">{json.dumps({"imports": urls})}</script>\n'
            f'<script type="module">import "{first}";</script>'
        )

    def inline_style(found: re.Match[str]) -> str:
        return f"<style>\n{(folder / found[1]).read_text(encoding='utf-8')}</style>"

    return _SCRIPT.sub(inline_module, _STYLE.sub(inline_style, page))


def _collect(folder: Path, path: str, modules: dict[str, str]) -> str:
    """Read a module and all that it imports; return its name in the import map."""
    name = f"page/{path}"
    if name not in modules:
        modules[name] = ""  # modules may import each other
        source = (folder / path).read_text(encoding="utf-8")
        modules[name] = _IMPORT.sub(
            lambda found: found[1] + _collect(folder, _path(path, found[2]), modules), source
        )
    return name


def _path(importer: str, relative: str) -> str:
    """Return the path of an imported file in the page's folder."""
    parts: list[str] = []
    for part in (PurePosixPath(importer).parent / relative).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _data_url(source: str) -> str:
    return f"data:text/javascript;base64,{b64encode(source.encode()).decode()}"
