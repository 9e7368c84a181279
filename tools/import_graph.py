"""Who imports what: the import graph of the package, read from its sources.

Imports inside functions and under `TYPE_CHECKING` count. `from package import module` is an import
of the module, `from package import name` one of the package itself (its `__init__.py`).
"""

import ast
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "lloydformer"
FRONT = "__init__"
"""The place of a package's own file in the order of the package."""

LABEL = "<label>"
"""Stands for every folder of a table or figure of the paper."""
COMPILED = {"lloydformer.engines.native._kernels"}
"""Modules without a Python source."""

Order = dict[str, list[str]]
Graph = dict[str, set[str]]


def read_order() -> Order:
    """The order inside each package: import_order.toml, with every label of the paper."""
    text = (ROOT / "tools" / "import_order.toml").read_text(encoding="utf-8")
    order: Order = tomllib.loads(text)
    paper, inside = f"{PACKAGE.name}.paper", order.pop(f"{PACKAGE.name}.paper.{LABEL}")
    labels = sorted(path.parent.name for path in (PACKAGE / "paper").glob(f"*/{FRONT}.py"))
    place = order[paper].index(LABEL)
    order[paper][place : place + 1] = labels
    return order | {f"{paper}.{label}": inside for label in labels}


def read_sources(package: Path = PACKAGE) -> dict[str, str]:
    """The source of each module, by its dotted name."""
    paths = sorted(package.rglob("*.py"))
    return {module_name(path, package): path.read_text(encoding="utf-8") for path in paths}


def module_name(path: Path, package: Path = PACKAGE) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == FRONT else parts)


def imports(source: str, modules: Iterable[str]) -> list[str]:
    """The modules of the package that a source imports, in the order of its lines.

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
    """What each module imports."""
    return {name: set(imports(source, sources)) for name, source in sources.items()}


def listed(order: Order, package: str) -> list[str]:
    """The children of a package in their order; its own file is the last unless listed."""
    children = order.get(package, [])
    return children if FRONT in children else [*children, FRONT]


def place(order: Order, module: str) -> tuple[int, ...]:
    """Where a module stands: its position in each package that holds it, the outermost first.

    Raises
    ------
    LookupError
        If it is not listed.
    """
    names = [*module.split("."), *([FRONT] if module in order else [])]
    found = []
    for depth, name in enumerate(names[1:], start=1):
        children = listed(order, ".".join(names[:depth]))
        if name not in children:
            raise LookupError(
                f"{module} has no place in the order: add it to tools/import_order.toml"
            )
        found.append(children.index(name))
    return tuple(found)


def wrong_imports(order: Order, module: str, imported: Iterable[str]) -> list[str]:
    """What a module imports although it stands after it, or is the module itself."""
    here = place(order, module)
    return [name for name in imported if place(order, name) >= here]


def room_of(module: str) -> str:
    """The top-level package or module that holds it; `lloydformer` for the package's own file."""
    return module.split(".")[1] if "." in module else PACKAGE.name


def room_graph(graph: Graph) -> Graph:
    """What each room imports from other rooms."""
    rooms: Graph = {room_of(module): set() for module in graph}
    for module, names in graph.items():
        rooms[room_of(module)] |= {room_of(name) for name in names} - {room_of(module)}
    return rooms


def reduced(graph: Graph) -> Graph:
    """The graph without the edges that a longer path replaces. It must have no cycle."""
    return {
        name: {other for other in found if not any(other in reach(graph, via) for via in found)}
        for name, found in graph.items()
    }


def reach(graph: Graph, start: str) -> set[str]:
    """Everything that `start` imports, directly or through others."""
    return graph[start].union(*(reach(graph, name) for name in graph[start]))
