"""Hooks of mkdocs: pages that are made from the package and the repository, links, formulas."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from api_pages import api_nav, api_pages
from formulas import as_mathml
from gallery_pages import gallery_nav, gallery_pages
from repository_pages import linked_files, repository_page, rewritten

ROOT = Path(__file__).parents[2]


def on_config(config: Any) -> Any:
    """Fill in the parts of the navigation that are made, and leave out pages that do not exist."""
    made = {"API": api_nav, "GALLERY": gallery_nav}
    config["nav"] = [_fill_nav(entry, made) for entry in config["nav"]]
    return config


def _fill_nav(entry: Any, made: dict[str, Any]) -> Any:
    """Return an entry of the navigation with the parts that are made, without missing pages."""
    if isinstance(entry, str):
        return made[entry](ROOT) if entry in made else entry
    if isinstance(entry, dict):
        return {title: _fill_nav(value, made) for title, value in entry.items()}
    return [_fill_nav(page, made) for page in entry if _exists(page)]


def _exists(page: Any) -> bool:
    """Return False for a page of docs/ that is missing, as in some source distributions."""
    path = next(iter(page.values())) if isinstance(page, dict) else page
    if not isinstance(path, str) or path.startswith("files/"):
        return True
    return (ROOT / "docs" / path).exists()


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    pages = {**api_pages(ROOT), **gallery_pages(ROOT)}
    for path in linked_files(ROOT):
        pages[f"files/{path}.md".replace(".md.md", ".md")] = repository_page(ROOT, path)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to files of the repository become links to their pages; guides are found first."""
    if page.file.src_uri.startswith(FOUND_LATER):
        page.meta.setdefault("search", {"boost": 0.5})
    return rewritten(ROOT, markdown, page.file.src_uri)


# Pages for contributors, and scripts, come after the guides in the search.
FOUND_LATER = ("notes/", "files/", "gallery/", "architecture.md", "new-algorithm.md")
EXPLORER = "explorer-page.html"
FRAME = f"""
<p><a href="{EXPLORER}">Open the explorer on a page of its own</a>, or use it here:</p>
<iframe src="{EXPLORER}" title="The explorer" loading="lazy"
        style="width: 100%; height: 80vh; border: 1px solid #8888; border-radius: 0.4rem"></iframe>
"""


def on_post_build(config: Any) -> None:
    """The explorer as one file."""
    from lloydformer.app.explorer.page_files import build_single_file

    # the page itself has no addresses: it also works as a file, far from the documentation
    words = "a page on interpretability"
    link = f'<a href="interpretability.html" target="_top">{words}</a>'
    page = build_single_file({})
    assert page.count(words) == 1
    Path(config["site_dir"], EXPLORER).write_text(page.replace(words, link), encoding="utf-8")


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Formulas become MathML, which browsers show without scripts; the explorer is in its page."""
    if page.file.src_uri == "explorer.md":
        html = html.replace("</h1>", f"</h1>{FRAME}", 1)
    return re.sub(
        r'<(span|div) class="arithmatex">(.*?)</\1>', lambda m: as_mathml(m[2]), html, flags=re.S
    )


# A script of another server that the theme loads so that search works in files.
SHIM = "https://unpkg.com/iframe-worker/shim"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Our own script takes the place of the shim."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace(SHIM, f"{up}site/frame-worker.js")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The page for wrong addresses is shown by servers alone, and needs no shim."""
    return re.sub(rf'<script src="?{re.escape(SHIM)}"?></script>', "", output_content)
