"""Draw docs/pictures/architecture.svg: the rooms, their imports, and the two walks of the data.

    python tools/architecture.py --check    # exit status 1 if the picture is out of date
    python tools/architecture.py --write    # draw it again

Grey arrows are read from the import graph. Where rooms and steps are placed is written here; a room
without a place, or a step without a file, is an error.
"""

import argparse
import sys
from dataclasses import dataclass

from boxes_and_arrows import (
    STYLE,
    Box,
    Points,
    arrow,
    facing,
    horizontal,
    rectangle,
    tip,
    vertical,
)
from import_graph import PACKAGE, ROOT, Graph, import_graph, read_sources, reduced, room_graph

PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
WIDTH, HEIGHT = 1020, 978
ROOMS = {
    "__main__": (Box(30, 70, 200), "python -m"),
    "cli": (Box(280, 70, 320), "one file for each command"),
    "paper": (Box(670, 70, 320), "one folder for each label"),
    "jobs": (Box(30, 148, 960), "what fit, predict, bench and the other commands do"),
    "nn": (Box(30, 304, 70), ""),
    "verify": (Box(120, 304, 110, 58), "the theorems"),
    "lloydformer": (Box(30, 226, 570), "the public names"),
    "explorer": (Box(670, 226, 148, 58), "page in JavaScript"),
    "report": (Box(842, 226, 148, 58), "HTML pages"),
    "learning": (Box(280, 304, 320), "training, LearnedKMeans"),
    "plots": (Box(670, 304, 320), "pictures"),
    "estimators": (Box(30, 382, 960), "one class for each algorithm"),
    "storage": (Box(692, 840, 176), "atomic writes"),
    "solving": (Box(280, 466, 530), "loop, rules, seeding"),
    "engines": (Box(430, 550, 380), ""),
    "plans": (Box(280, 634, 390), "folds"),
    "algorithms": (Box(850, 634, 140, 58), "the oracle"),
    "circuits": (Box(30, 718, 570, 84), "the parts of a layer"),
    "data": (Box(630, 718, 180, 84), "files"),
    "numerics": (Box(30, 918, 960), "noise, distances, the tree of sums"),
    "lazy_imports": (Box(390, 840, 270), "PEP 562"),
}
"""Where each room is drawn, and what it holds."""


@dataclass(frozen=True)
class Step:
    """A step of a walk, and the file that does it; no file: what goes in."""

    walk: str
    word: str
    box: Box
    file: str | None = None


STEPS = {
    "input": Step("literal", "points, centers", Box(40, 760, 108, 30)),
    "tokens": Step("literal", "tokens", Box(176, 760, 62, 30), "circuits/tokens.py"),
    "heads": Step("literal", "heads", Box(264, 760, 56, 30), "circuits/heads.py"),
    "layer": Step("literal", "layer", Box(347, 760, 56, 30), "circuits/layer.py"),
    "circuit": Step("literal", "circuit", Box(429, 760, 60, 30), "circuits/circuit.py"),
    "trace": Step("literal", "Trace", Box(516, 760, 60, 30), "circuits/trace.py"),
    "recipe": Step("fast", "recipe", Box(286, 724, 60, 28), "circuits/recipe.py"),
    "plan": Step("fast", "plan", Box(286, 642, 60, 30), "plans/lower.py"),
    "points": Step("fast", "points", Box(634, 760, 60, 30)),
    "blocks": Step("fast", "blocks", Box(722, 760, 70, 30), "data/blocks.py"),
    "open": Step("fast", "open", Box(727, 558, 60, 30), "engines/contract.py"),
    "session": Step("fast", "session", Box(560, 558, 76, 30), "plans/session.py"),
    "solve": Step("fast", "solve", Box(560, 474, 76, 30), "solving/solve.py"),
    "fitted": Step(
        "fast", "cluster_centers_, labels_", Box(498, 390, 200, 30), "estimators/base.py"
    ),
}

WALKS = [
    ("literal", "input", "tokens"),
    ("literal", "tokens", "heads"),
    ("literal", "heads", "layer"),
    ("literal", "layer", "circuit"),
    ("literal", "circuit", "trace"),
    ("fast", "points", "blocks"),
    ("fast", "blocks", "open"),
    ("fast", "open", "session"),
    ("fast", "recipe", "plan"),
    ("fast", "plan", "solve"),
    ("fast", "session", "solve"),
    ("fast", "solve", "session"),
    ("fast", "solve", "fitted"),
]
"""Which step follows which. `solve` and `session` speak with each other."""

LEGEND = [
    (30, "imports", "imports; what another path implies is left out"),
    (400, "literal", "literal walk: a circuit, layer by layer"),
    (725, "fast", "fast walk: a plan on an engine"),
]


def drawn(rooms: Graph) -> str:
    """The picture of rooms and what each imports, as SVG."""
    missing = set(rooms) ^ set(ROOMS)
    if missing:
        raise LookupError(f"{', '.join(sorted(missing))}: in ROOMS or in the package, not in both")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        "<title>The rooms of lloydformer, their imports, and the two walks of the data</title>",
        f"<style>{STYLE}</style>",
        *(tip(kind) for kind in ("imports", "literal", "fast")),
        rectangle(Box(0, 0, WIDTH, HEIGHT), "page", 0),
        *legend(),
        *(line for name in ROOMS for line in room(name)),
        *imports_between(rooms),
        *(line for step in STEPS.values() for line in pill(step)),
        *(arrow(kind, route(first, last)) for kind, first, last in WALKS),
        '<text class="fast-word" x="640" y="536">folds, tasks ↓  summaries ↑</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def legend() -> list[str]:
    lines = []
    for x, kind, words in LEGEND:
        lines.append(arrow(kind, [(x, 35), (x + 40, 35)]))
        lines.append(f'<text class="note" x="{x + 50}" y="40">{words}</text>')
    return lines


def room(name: str) -> list[str]:
    box, note = ROOMS[name]
    x, y = box.x + (88 if name == "plans" else 14), box.y + 28
    below = f'x="{x}" dy="20"' if box.width < 150 else 'dx="12"'
    return [
        rectangle(box, "room", 8),
        f'<text x="{x}" y="{y}"><tspan class="name">{name}</tspan>'
        f'<tspan class="note" {below}>{note}</tspan></text>',
    ]


def imports_between(rooms: Graph) -> list[str]:
    few = reduced(rooms)
    pairs = ((name, other) for name in ROOMS for other in sorted(few[name]))
    return [
        f"<!-- {name} imports {other} -->\n"
        + arrow("imports", facing(ROOMS[name][0], ROOMS[other][0]))
        for name, other in pairs
    ]


def route(first: str, last: str) -> Points:
    """The line between two steps of a walk."""
    one, other = STEPS[first].box, STEPS[last].box
    if one.y == other.y:
        return horizontal(one, other)
    if (first, last) == ("plan", "solve"):  # into the room, past the engines
        other = ROOMS["solving"][0]
    shift = {("solve", "session"): -12, ("session", "solve"): 12}.get((first, last), 0)
    return vertical(one, other, one.middle[0] + shift)


def pill(step: Step) -> list[str]:
    x, y = step.box.middle
    text = f'x="{x}" y="{y + 5}" text-anchor="middle">{step.word}</text>'
    if step.file is None:
        return [f'<text class="{step.walk}-word" {text}']
    if not (PACKAGE / step.file).is_file():
        raise LookupError(f"{step.file}: the step {step.word!r} of the walk has no such file")
    return [rectangle(step.box, f"step {step.walk}-step", 14), f'<text class="word" {text}']


def current() -> str:
    """The picture of the package as it is."""
    return drawn(room_graph(import_graph(read_sources())))


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the rooms of the package and their imports.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="report a picture that is out of date")
    action.add_argument("--write", action="store_true", help="draw the picture")
    wanted, picture = parser.parse_args(), current()
    if wanted.write:
        PICTURE.write_text(picture, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture:
        print("docs/pictures/architecture.svg is out of date", file=sys.stderr)
        print("run: python tools/architecture.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
