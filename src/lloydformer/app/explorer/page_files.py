"""The files of the page: with a first state, or all in one HTML file."""

import json
import re
from base64 import b64encode
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

# The folder of static files, which any web server can serve as it is.
PAGE = Path(__file__).parent / "page"

_STATE = re.compile(r'(<script type="application/json" id="initial-state">).*?(</script>)', re.S)
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
_SCRIPT = re.compile(r'<script type="module" src="([^"]+)"></script>')
# A relative import: at the beginning of a line, or one `import("...")` in a line of code.
_IMPORT = re.compile(
    r"""^((?:import|export)\b[^"';]*?["']|(?!\s*[*/]).*?\bimport\(\s*["'])(\.{1,2}/[^"']+)(?=["'])""",
    re.M,
)


def fill_index(state: dict[str, Any], folder: Path = PAGE) -> str:
    """Return index.html with this state to begin with.

    state: {"recipe": JSON of a recipe, "points": rows, "centers": rows}, or some of these.
    """
    text = (folder / "index.html").read_text(encoding="utf-8")
    if _STATE.search(text) is None:
        raise ValueError(f"{folder / 'index.html'}: found no script with the id initial-state")
    written = json.dumps(state).replace("<", "\\u003c")  # no text of it becomes markup
    return _STATE.sub(lambda found: found[1] + written + found[2], text)


def build_single_file(state: dict[str, Any], folder: Path = PAGE) -> str:
    """Return the whole page as one HTML file that needs no other file and no network.

    Modules become data URLs in an import map, under their paths; imports in them are rewritten to
    these paths, because a relative import has no base inside of a data URL.
    """
    page = fill_index(state, folder)
    modules: dict[str, str] = {}

    def inline_module(found: re.Match[str]) -> str:
        first = _collect_modules(folder, normpath(found[1]), modules)
        urls = {
            name: f"data:text/javascript;base64,{b64encode(source.encode()).decode()}"
            for name, source in modules.items()
        }
        return (
            f'<script type="importmap">{json.dumps({"imports": urls})}</script>\n'
            f'<script type="module">import "{first}";</script>'
        )

    def inline_style(found: re.Match[str]) -> str:
        return f"<style>\n{(folder / found[1]).read_text(encoding='utf-8')}</style>"

    return _SCRIPT.sub(inline_module, _STYLE.sub(inline_style, page))


def _collect_modules(folder: Path, path: str, modules: dict[str, str]) -> str:
    """Read a module and all that it imports into `modules`; return its name in the import map."""
    name = f"page/{path}"
    if name not in modules:
        modules[name] = ""  # modules may import each other: each is read once
        source = (folder / path).read_text(encoding="utf-8")

        def rewrite(found: re.Match[str]) -> str:
            imported = normpath(join(dirname(path), found[2]))
            return found[1] + _collect_modules(folder, imported, modules)

        modules[name] = _IMPORT.sub(rewrite, source)
    return name
