"""The import graph of the package, read from its sources, and the order of its rooms.

Imports inside functions and under `TYPE_CHECKING` count. `from package import module` is an import
of the module, `from package import name` one of the package itself (its `__init__.py`).
"""

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "lloydformer"

# Rooms are the top-level packages. A room imports only from rooms before it in this list.
ROOMS = [
    "fork_safety",
    "user_warnings",
    "renamed",
    "lazy_imports",
    "numerics",
    "circuits",
    "algorithms",
    "data",
    "plans",
    "engines",
    "solving",
    "estimators",
    "learning",
    "nn",
    "export",
    "interp",
    "profiles",
    "plots",
    "paper",
    "app",
    "__main__",
]
# Rooms that may use the public names, `import lloydformer`. The public front itself imports the
# modules that define them when they are first used.
BY_PUBLIC_NAMES = ("plots", "paper", "app")
COMPILED = {"lloydformer.engines.native._kernels"}  # modules without a Python source

Graph = dict[str, set[str]]


def read_sources(package: Path = PACKAGE) -> dict[str, str]:
    """Return the source of each module, by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def imports(source: str, modules: Iterable[str]) -> list[str]:
    """Return the modules of the package that a source imports, in the order of its lines.

    Raises
    ------
    ValueError
        If an import is relative.
    """
    known, names = COMPILED.union(modules), list[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"line {node.lineno}: relative import; write the whole name")
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if name in known else node.module for name in inner]
    return [name for name in names if name.split(".")[0] == PACKAGE.name]


def import_graph(sources: Mapping[str, str]) -> Graph:
    """Return what each module imports."""
    return {name: set(imports(source, sources)) for name, source in sources.items()}


def room_of(module: str) -> str:
    """Return the top-level package or module that holds it; "" for the package's own file."""
    return module.split(".")[1] if "." in module else ""


def wrong_imports(graph: Graph) -> list[str]:
    """Return imports from later rooms, as "module imports module"."""
    found = []
    for module, names in graph.items():
        room = room_of(module)
        if room == "":
            continue  # the public front
        for name in sorted(names):
            other = room_of(name)
            allowed = (
                room in BY_PUBLIC_NAMES if other == "" else ROOMS.index(other) <= ROOMS.index(room)
            )
            if not allowed:
                found.append(f"{module} imports {name}")
    return found


def import_cycle(graph: Graph) -> list[str]:
    """Return modules that import each other in a circle; empty if there is none."""
    inner = {name: found - {PACKAGE.name, name} for name, found in graph.items()}
    inner.pop(PACKAGE.name, None)
    try:
        TopologicalSorter(inner).prepare()
    except CycleError as error:
        return error.args[1]
    return []
