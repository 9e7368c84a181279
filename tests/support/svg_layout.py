"""Where the words, boxes and wires of an SVG are, to find those that are in each other's way."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise
from typing import NamedTuple

from lloydformer.plots.diagrams.svg import FONT_SIZES, text_width

SVG = "{http://www.w3.org/2000/svg}"


class Place(NamedTuple):
    """A rectangle, and what is there."""

    left: float
    top: float
    right: float
    bottom: float
    what: str

    def meets(self, other: "Place") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: "Place") -> bool:
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


def words(root: ElementTree.Element) -> list[Place]:
    """The texts, each as wide as it can be in the fonts of browsers."""
    return [_word(node) for node in root.iter(f"{SVG}text")]


def _word(node: ElementTree.Element) -> Place:
    kind, said = node.get("class", ""), node.text or ""
    x, y, width = float(node.get("x", 0)), float(node.get("y", 0)), text_width(said, kind)
    left = x - width / 2 if node.get("text-anchor") == "middle" else x
    return Place(left, y - 0.76 * FONT_SIZES[kind], left + width, y + 0.2 * FONT_SIZES[kind], said)


def boxes(root: ElementTree.Element, kind: str) -> list[Place]:
    """The rectangles of a class."""
    found = [r for r in root.iter(f"{SVG}rect") if kind in r.get("class", "").split()]
    return [_box(rect) for rect in found]


def _box(rect: ElementTree.Element) -> Place:
    x, y, width, height = (float(rect.get(n, 0)) for n in ("x", "y", "width", "height"))
    return Place(x, y, x + width, y + height, rect.get("class", ""))


def wires(root: ElementTree.Element) -> list[Place]:
    """The straight parts of all wires, two pixels wide."""
    found = []
    for path in root.iter(f"{SVG}path"):
        numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", path.get("d", ""))]
        corners = list(zip(numbers[::2], numbers[1::2], strict=True))
        for (a, b), (c, d) in pairwise(corners):
            if "wire" in path.get("class", ""):
                found.append(
                    Place(
                        min(a, c) - 1,
                        min(b, d) - 1,
                        max(a, c) + 1,
                        max(b, d) + 1,
                        f"wire {path.get('class')}",
                    )
                )
    return found


def collisions(svg: str) -> list[str]:
    """Words over words or wires or edges of cards, and words outside of the picture."""
    root = ElementTree.fromstring(svg)
    said, cards = words(root), boxes(root, "card")
    width, height = (float(root.get(name, 0)) for name in ("width", "height"))
    page = Place(0, 0, width, height, "page")
    found = [f"{a.what!r} over {b.what!r}" for a, b in combinations(said, 2) if a.meets(b)]
    free = [a for a in said if not any(a.within(card) for card in cards)]  # cards hide wires
    found += [f"{a.what!r} over a {b.what}" for a in free for b in wires(root) if a.meets(b)]
    found += [
        f"{a.what!r} over the edge of a card"
        for a in said
        for b in cards
        if a.meets(b) and not a.within(b)
    ]
    found += [f"{a.what!r} outside of the picture" for a in said if not a.within(page)]
    return found + [
        f"cards over each other: {a}, {b}" for a, b in combinations(cards, 2) if a.meets(b)
    ]
