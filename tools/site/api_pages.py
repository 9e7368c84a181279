"""The API reference: a page for every public name."""

import importlib
import inspect
from pathlib import Path
from typing import Any

# Titles, and the modules whose public names they hold.
GROUPS = {
    "Estimators": ("lloydformer.estimators", "lloydformer"),
    "Circuits": ("lloydformer",),
    "Recipes": ("lloydformer.circuits.recipes",),
    "Activations": ("lloydformer.circuits.activations",),
    "Data": ("lloydformer.data",),
    "Learning": ("lloydformer.learning",),
    "Networks": ("lloydformer.nn",),
    "Plots": ("lloydformer.plots", "lloydformer"),
    "Export": ("lloydformer.export",),
    "Interpretability": ("lloydformer.interp",),
}
# Modules that users know by a shorter path.
PUBLIC = {"lloydformer.circuits.recipes": "lloydformer.recipes"}
OF_CIRCUITS = {"Circuit", "Recipe", "Trace", "TopK", "check", "CheckResult", "compile_transformer"}
OF_PLOTS = {"Description", "EmbeddedPage", "describe", "report"}


def public_names() -> dict[str, dict[str, str]]:
    """For each group: short names, and the full names under which they are defined."""
    found: dict[str, dict[str, str]] = {}
    taken: set[str] = set()
    for title, modules in GROUPS.items():
        found[title] = {}
        for module in modules:
            for name, full in _names(importlib.import_module(module)).items():
                if full not in taken and _belongs(title, module, name):
                    taken.add(full)
                    found[title][name] = full
    return found


def _belongs(title: str, module: str, name: str) -> bool:
    if module != "lloydformer":
        return True
    group = "Circuits" if name in OF_CIRCUITS else "Plots" if name in OF_PLOTS else "Estimators"
    return title == group


def _names(module: Any) -> dict[str, str]:
    """Public names of a module that are no modules, and where they are defined."""
    found = {}
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value) or name.startswith("__"):
            continue
        home = getattr(value, "__module__", None) if callable(value) else None
        ours = home is not None and home.startswith("lloydformer")
        found[name] = f"{home}.{value.__qualname__}" if ours else _home_of(module, name)
    return found


def _home_of(module: Any, name: str) -> str:
    """A constant is defined in the submodule that its package imports it from."""
    value = getattr(module, name)
    for submodule in vars(module).values():
        if inspect.ismodule(submodule) and vars(submodule).get(name) is value:
            return f"{submodule.__name__}.{name}"
    return f"{module.__name__}.{name}"


def api_pages(root: Path) -> dict[str, str]:
    """The text of each page, by its path."""
    pages = {"api/index.md": _index()}
    for names in public_names().values():
        for name, full in names.items():
            # The heading is what users import; the file that defines a name may change. Guides come
            # first in the search, as every class has the texts of shared parameters.
            pages[f"api/{name}.md"] = (
                f"---\ntitle: {name}\nsearch:\n  boost: 0.5\n---\n\n::: {full}\n    options:\n"
                f"      heading: {import_path(name, full)}\n      toc_label: {name}\n"
            )
    return pages


def import_path(name: str, full: str) -> str:
    """Return the shortest path under which users import a public name, as lloydformer.KMeans."""
    modules = dict.fromkeys(module for modules in GROUPS.values() for module in modules)
    paths = [
        f"{PUBLIC.get(module, module)}.{name}"
        for module in modules
        if _names(importlib.import_module(module)).get(name) == full
    ]
    return min(paths, key=len)


def api_nav(root: Path) -> list[Any]:
    groups = public_names()
    return [
        "api/index.md",
        *({title: [{name: f"api/{name}.md"} for name in names]} for title, names in groups.items()),
    ]


def _index() -> str:
    lines = ["# API reference", "", "Every public name, with its parameters and an example.", ""]
    for title, names in public_names().items():
        lines += [f"## {title}", "", "| name | |", "| --- | --- |"]
        for name, full in names.items():
            # A phone may break the path after a dot.
            path = import_path(name, full).replace(".", ".<wbr>")
            lines += [f"| [<code>{path}</code>]({name}.md) | {_summary(full)} |"]
        lines += [""]
    return "\n".join(lines)


def _summary(full: str) -> str:
    module, _, name = full.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    own = inspect.isroutine(value) or inspect.isclass(value) or hasattr(value, "__wrapped__")
    first = (inspect.getdoc(value) or "").split("\n\n")[0] if own else ""
    return " ".join(first.split()).replace("|", r"\|")
